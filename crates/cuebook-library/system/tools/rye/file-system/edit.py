# rye:signed:2026-11-17T04:37:23Z:b4eee0394ad286066780f7dd14df8e230a8a9530f9501ab12c81210ac818335d:mjA_zPFYJHlAJiZvRtuXqHr2oJZUipaHS6y5nW6EYUMGD-4aehW1t6zoZPigYfrw6pNqiBZb1WIxBRUSsuYGDA==:c6c547bee16d153f|cuebook@tool/rye/file-system/edit.py
"""Replaces a passage of a text file of the project."""

from _cuebook import Refused, inside, read_text, run, shown, text, write_text

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = (
    "Replace a passage in a text file of the project. The passage must occur exactly once, unless `all` is true."
    " Changes nothing outside the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "the file, relative to the project"},
        "old": {"type": "string", "description": "the passage, exactly as in the file"},
        "new": {"type": "string", "description": "the new text"},
        "all": {"type": "boolean", "description": "replace every occurrence"},
    },
    "required": ["path", "old", "new"],
    "additionalProperties": False,
}

LARGEST = 8 << 20


def edit(params, project):
    path = inside(project, text(params, "path"))
    old, new = text(params, "old"), text(params, "new")
    if not old:
        raise Refused("`old` is empty")
    content, more = read_text(project, path, LARGEST)
    if more or "\ufffd" in content:
        raise Refused("the file is too large or not UTF-8")
    count = content.count(old)
    if count == 0:
        raise Refused("the passage is not there")
    if count > 1 and not params.get("all"):
        raise Refused(f"the passage is there {count} times: give more of what is around it, or say all")
    write_text(project, path, content.replace(old, new))
    return {"path": shown(project, path), "replaced": count}


if __name__ == "__main__":
    run(edit)
