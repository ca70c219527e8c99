"""Parts of a loaded `.prompty` file as Prompty 2 has them: records by kind, and references to the environment and to files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import IoError, PromptReadError


class Record(dict[str, Any]):
    """A part of a definition: `part["kind"]` and `part.kind` are the same. What is missing is `None`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        first, *others = name.split("_")
        return record(self.get(name, self.get(first + "".join(word.title() for word in others))))


class Connection(Record):
    """How a model or a tool is reached."""


class ApiKeyConnection(Connection):
    """A connection with a key."""


class ReferenceConnection(Connection):
    """A connection that the program registered under a name."""


class Tool(Record):
    """A tool that the model may call."""


class FunctionTool(Tool):
    """A function of the program."""


class McpTool(Tool):
    """The tools of an MCP server."""


class OpenApiTool(Tool):
    """The operations of an OpenAPI interface."""


class CustomTool(Tool):
    """A tool of another kind."""


class TextPart(Record):
    """A text in a message."""


_CONNECTIONS: dict[Any, type[Connection]] = {"key": ApiKeyConnection, "reference": ReferenceConnection}
_TOOLS: dict[Any, type[Tool]] = {"function": FunctionTool, "mcp": McpTool, "openapi": OpenApiTool}


def record(value: Any) -> Any:
    """A value whose members are attributes."""
    if isinstance(value, dict) and not isinstance(value, Record):
        return Record(value)
    if isinstance(value, list):
        return [record(one) for one in value]
    return value


def connection(value: dict[str, Any]) -> Connection:
    """A connection of its kind."""
    return _CONNECTIONS.get(value.get("kind"), Connection)(value)


def tool(value: dict[str, Any]) -> Tool:
    """A tool of its kind, with its connection."""
    made = _TOOLS.get(value.get("kind"), CustomTool)(value)
    return type(made)({**made, "connection": connection(made["connection"])}) if made.get("connection") else made


# References


class MissingFileError(IoError, FileNotFoundError):
    """A file is missing."""


class LoadError(PromptReadError):
    """A file cannot be loaded."""


_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")

#: As in the engine: files that one value refers to, files that refer to each other in a row, and bytes of one of them.
_MAX_FILES, _MAX_DEPTH, _MAX_BYTES = 100, 8, 4 << 20


def resolved(value: Any, folder: Path, roots: Sequence[Path]) -> Any:
    """A value with what its references `${env:NAME:default}` and `${file:path}` stand for."""
    count = 0

    def put(value: Any, depth: int) -> Any:
        nonlocal count
        if isinstance(value, dict):
            return type(value)({name: put(one, depth) for name, one in value.items()})
        if isinstance(value, list):
            return [put(one, depth) for one in value]
        found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return value
        if found[1] == "env":
            return _variable(found[2])
        count += 1
        if count > _MAX_FILES or depth >= _MAX_DEPTH:
            message = f"the file `{found[2]}` is one of too many that refer to each other"
            hint = f"refer to at most {_MAX_FILES} files, and in a row to at most {_MAX_DEPTH}"
            raise LoadError(message, code="CB419", hint=hint)
        return put(_file(found[2], folder, roots), depth + 1)

    return put(value, 0)


def _variable(said: str) -> str:
    name, _, default = said.partition(":")
    value = os.environ.get(name, default if ":" in said else None)
    if value is None:
        hint = f"set `{name}`, or write `${{env:{name}:default}}`"
        raise LoadError(f"the environment variable `{name}` is not set", code="CB418", hint=hint)
    return value


def _file(said: str, folder: Path, roots: Sequence[Path]) -> Any:
    path = (folder / said).resolve()
    if not any(path.is_relative_to(root.resolve()) for root in (folder, *roots)):
        raise LoadError(f"the file `{said}` is outside allowed roots", code="CB419", hint="pass `allowed_file_roots`")
    if not path.is_file():
        raise MissingFileError(f"the file `{said}` was not found", code="CB419", file=str(path))
    if path.stat().st_size > _MAX_BYTES:
        raise LoadError(f"the file `{said}` has more than {_MAX_BYTES} bytes", code="CB112", file=str(path))
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


def references(text: str) -> list[tuple[str, str]]:
    """The references of a text: kind and what they name."""
    return _REFERENCE.findall(text)
