# rye:signed:2026-11-17T03:06:55Z:150b31c1a19e403758147fdc871beec89127d233a8e92ee2c1e152a3403de0c6:SKlkj1GW1HuuuevVoI3Tge7GIXAKvko1lmOdUgIC_mvgJcWDmFrfepA0cCwpzS5Hq2bpQWC5sG1X9xXgZFPMCg==:ff6a99a405acf5a0|cuebook@tool/rye/file-system/edit.py
"""Replaces a passage of a text file of the project."""

from _cuebook import Refused, inside, read_text, run, shown, text, write_text

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/file-system"
__tool_description__ = (
    "Replace a passage of a text file of the project by another. The passage must be there exactly once, unless all of"
    " them are to be replaced. Changes nothing outside of the project."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "the file, relative to the project"},
        "old": {"type": "string", "description": "the passage, as it stands there"},
        "new": {"type": "string", "description": "what is to stand there instead"},
        "all": {"type": "boolean", "description": "replace every one of them"},
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
