# rye:signed:2026-11-17T04:37:23Z:8dfb8b75e2a606c9befc0d55435caf18f6866ae6e0b33ccacf820aaa910f5d87:qLXtrJ1vCzOXr9c2FwbnVmk-W54uhEpya-rCqQv7kWxvpQheNTU_daKQkFbmTR_zkzPzSRN_HKPj0g1m_dFkAQ==:c6c547bee16d153f|cuebook@tool/rye/file-system/grep.py
"""Finds lines in files of the project."""

import fnmatch
import os
import re

from _cuebook import Refused, inside, read_text, run, shown, text, walk, whole

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = (
    "Find lines in text files of the project with a Python regular expression. Searches nothing"
    " outside the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "the regular expression"},
        "path": {"type": "string", "description": "the file or folder to search, relative to the project"},
        "include": {"type": "string", "description": "only files whose name matches this pattern, such as *.py"},
        "ignore_case": {"type": "boolean", "description": "ignore upper and lower case"},
        "limit": {"type": "integer", "description": "the most lines to return; default 200"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}

LARGEST = 4 << 20
LONGEST = 500


def grep(params, project):
    start = inside(project, text(params, "path", "."))
    try:
        pattern = re.compile(text(params, "pattern"), re.IGNORECASE if params.get("ignore_case") else 0)
    except re.error as error:
        raise Refused(f"the pattern is not a regular expression: {error}") from None
    include = text(params, "include", "*")
    limit = whole(params, "limit", 200, 1)
    if not os.path.exists(start):
        raise Refused("there is no such file or folder")
    found, more = [], False
    for path in [start] if os.path.isfile(start) else walk(project, start):
        if not fnmatch.fnmatchcase(os.path.basename(path), include):
            continue
        try:
            content, _ = read_text(project, os.path.realpath(path), LARGEST)
        except (OSError, Refused):
            continue
        for number, line in enumerate(content.splitlines(), 1):
            if pattern.search(line):
                if len(found) == limit:
                    return {"matches": found, "truncated": True}
                found.append({"path": shown(project, path), "line": number, "text": line[:LONGEST]})
    return {"matches": found, "truncated": more}


if __name__ == "__main__":
    run(grep)
