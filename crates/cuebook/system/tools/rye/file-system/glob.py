# rye:signed:2026-11-17T03:06:55Z:7d84ab1f47c4976c73fa30acdd508c715f36fa16a75355f60d49911bc9c98f35:e9RVso6YiAw8UQX09ukErntDMM3JbJ9MuMsQVehBZUrPZpjn-6ViaS_rq7ptzmJO20XnGxLcZGFq6KjsBbVvBA==:ff6a99a405acf5a0|cuebook@tool/rye/file-system/glob.py
"""Finds files of the project by their names."""

import fnmatch
import os

from _cuebook import inside, run, shown, text, walk, whole

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = (
    "Find files of the project by a pattern such as *.py or src/**/test_*.py; a pattern without / is looked for in every"
    " folder. Finds nothing outside of the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "the pattern: *, ?, [abc], and ** for any folders"},
        "path": {"type": "string", "description": "the folder to look in, relative to the project"},
        "limit": {"type": "integer", "description": "how many files at most; 1000 without it"},
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
