# rye:signed:2026-11-17T04:37:23Z:b3865f489f8ddf2b4abd2824e06bdfb1a5b98f98e1c0bbf187c3141dce5e154f:BazMVwsFl4_1VHzfOEBvBTlnDFI86LGzeA3VmRidvxhuzSZZnnubMW313sgSFPIwS67y3virm3cwZ9ZMH7AmCA==:c6c547bee16d153f|cuebook@tool/rye/file-system/list.py
"""Lists a folder of the project."""

import os

from _cuebook import Refused, inside, open_in, run, shown, text

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = "List a folder of the project: names, kinds and sizes. Shows nothing outside the project."

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "the folder, relative to the project; default: the project"}},
    "additionalProperties": False,
}

MOST = 5000


def entry(item):
    kind = "link" if item.is_symlink() else "folder" if item.is_dir(follow_symlinks=False) else "file"
    size = item.stat(follow_symlinks=False).st_size if kind == "file" else None
    return {"name": item.name, "kind": kind, "size": size}


def list_folder(params, project):
    path = inside(project, text(params, "path", "."))
    try:
        folder = open_in(project, path, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        raise Refused("there is no such folder") from None
    try:
        with os.scandir(folder) as items:
            found = sorted(items, key=lambda item: item.name)
        entries = [entry(item) for item in found[:MOST]]
    finally:
        os.close(folder)
    return {"path": shown(project, path), "entries": entries, "truncated": len(found) > MOST}


if __name__ == "__main__":
    run(list_folder)
