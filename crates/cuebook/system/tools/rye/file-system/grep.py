# rye:signed:2026-11-17T03:06:55Z:3d5e58b474c0430b0a55ced2e1a123c488263cc6561caf47d14b69046f21c28e:hm4bkeHYpVRd49Q_U6l480EHIowDtrXtbcCsnZyKAFxPBTuh69TIxN0WlYTqwCLCed0HxiYVJGxq-0Mg-3AADA==:ff6a99a405acf5a0|cuebook@tool/rye/file-system/grep.py
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
    "Find the lines in text files of the project that a regular expression (that of Python) matches. Looks at nothing"
    " outside of the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "the regular expression"},
        "path": {"type": "string", "description": "the file or folder to look in, relative to the project"},
        "include": {"type": "string", "description": "only files whose name fits this pattern, such as *.py"},
        "ignore_case": {"type": "boolean", "description": "take upper and lower case as the same"},
        "limit": {"type": "integer", "description": "how many lines at most; 200 without it"},
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
