# rye:signed:2026-11-17T03:06:55Z:2979658c56d03b4695170fee66c90b8212ea2b1708c299769811bb04e61fd278:daTWP3Xs1Q8ubjc8f720ny2q0N_XkMdmW0WcOAr0aIHNKbDKA2xzZLpT31YI4ixshTR3p6DQJpm-L3DPlmXSBQ==:ff6a99a405acf5a0|cuebook@tool/rye/file-system/write.py
"""Writes a text file of the project."""

import os

from _cuebook import inside, run, shown, text, write_text

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = (
    "Write a text file of the project, whole; folders are made as needed. Writes nothing outside of the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "the file, relative to the project"},
        "content": {"type": "string", "description": "the whole new text"},
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
