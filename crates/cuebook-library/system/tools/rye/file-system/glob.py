# rye:signed:2026-11-17T04:37:23Z:61bc9db069286376ed20d49eb55d76a3ba6c996830ac1928e26fb1402606a3c3:Cs4UuPTFX-YtNHRTfK9y4fMrfvZskmEkds3NVQCpcitc7IWDmRVnq8M7ObXKtogw1G3-J1vjvlSlJb7yxJPMBA==:c6c547bee16d153f|cuebook@tool/rye/file-system/glob.py
"""Finds files of the project by their names."""

import fnmatch
import os

from _cuebook import inside, run, shown, text, walk, whole

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = (
    "Find files of the project by a pattern such as *.py or src/**/test_*.py; a pattern without / searches every"
    " folder. Finds nothing outside the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "the pattern: *, ?, [abc], and ** for any folders"},
        "path": {"type": "string", "description": "the folder to search, relative to the project"},
        "limit": {"type": "integer", "description": "the most files to return; default 1000"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def matches(parts, pattern):
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(matches(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and matches(parts[1:], pattern[1:])


def glob(params, project):
    start = inside(project, text(params, "path", "."))
    pattern = text(params, "pattern").strip("/")
    wanted = pattern.split("/") if "/" in pattern else ["**", pattern]
    # Several of them in a row say no more than one, and cost much more.
    wanted = [part for at, part in enumerate(wanted) if part != "**" or at == 0 or wanted[at - 1] != "**"]
    limit = whole(params, "limit", 1000, 1)
    found, more = [], False
    for path in walk(project, start):
        parts = os.path.relpath(path, start).split(os.sep)
        if matches(parts, wanted):
            if len(found) == limit:
                more = True
                break
            found.append(shown(project, path))
    return {"files": found, "truncated": more}


if __name__ == "__main__":
    run(glob)
