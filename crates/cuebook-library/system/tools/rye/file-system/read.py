# rye:signed:2026-11-17T04:37:23Z:74b1cf204bc9cc6c7a1841a29bf73af89c10806be498992a8da92df9b9b4ddcb:lC4Csnk2LcjhgJVZEmkLxVpTBL4oTvUbMqxolAhURIFDyLYYXzuMyj3uFT6KhnnXQgFdaAR8mFFBqVlbOyVBCQ==:c6c547bee16d153f|cuebook@tool/rye/file-system/read.py
"""Reads a text file of the project."""

from _cuebook import Refused, inside, read_text, run, shown, text, whole

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = "Read a text file of the project, or some of its lines. Reads nothing outside the project."

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "the file, relative to the project"},
        "offset": {"type": "integer", "description": "the first line, from 1"},
        "limit": {"type": "integer", "description": "the most lines to return"},
    },
    "required": ["path"],
    "additionalProperties": False,
}

LARGEST = 8 << 20


def read(params, project):
    path = inside(project, text(params, "path"))
    content, more = read_text(project, path, LARGEST)
    lines = content.splitlines(keepends=True)
    first = whole(params, "offset", 1, 1)
    count = whole(params, "limit", len(lines), 1)
    if first > 1 and first > len(lines):
        raise Refused(f"the file has {len(lines)} lines")
    part = lines[first - 1 : first - 1 + count]
    return {
        "path": shown(project, path),
        "content": "".join(part),
        "first_line": first,
        "lines": len(part),
        "total_lines": len(lines),
        "truncated": more or first - 1 + len(part) < len(lines),
    }


if __name__ == "__main__":
    run(read)
