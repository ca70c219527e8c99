# rye:signed:2026-11-17T04:37:23Z:87a9ca2923e4abb58b2659596ec9002aebc67a9557e5ae8d22a90dad79493245:V37nv9jFEmYpr5pNI1C_cHuUmagD_300uwjrQyQCfvqNClwzWFmYwmgwiO2UhcNGGBpK9jFUgn_xGL0BMWuaDA==:c6c547bee16d153f|cuebook@tool/rye/file-system/write.py
"""Writes a text file of the project."""

import os

from _cuebook import inside, run, shown, text, write_text

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = (
    "Write a whole text file of the project; creates folders as needed. Writes nothing outside the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "the file, relative to the project"},
        "content": {"type": "string", "description": "the whole text of the file"},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}


def write(params, project):
    path = inside(project, text(params, "path"))
    content = text(params, "content")
    created = not os.path.exists(path)
    write_text(project, path, content)
    return {"path": shown(project, path), "bytes": len(content.encode("utf-8")), "created": created}


if __name__ == "__main__":
    run(write)
