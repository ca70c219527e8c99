"""Parts of a loaded `.prompty` file as Prompty 2 has them: records by kind, and references to the environment and to files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import IoError, PromptReadError


class Record(dict[str, Any]):
    """A part of a definition: `part["apiType"]` and `part.api_type` are the same. What is missing is `None`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        key = _key(self, name)
        found = self.get(key)
        made = record(found)
        if made is not found:
            # A change of the part is a change of the whole.
            self[key] = made
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        self[_key(self, name)] = value


def _key(of: dict[str, Any], name: str) -> str:
    return name if name in of else camel(name)


def camel(name: str) -> str:
    """The name in a file: `apiType` for `api_type`."""
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


class Connection(Record):
    """How a model or a tool is reached."""


class ApiKeyConnection(Connection):
    """A connection with a key."""


class ReferenceConnection(Connection):
    """A connection that the program registered under a name."""


class FoundryConnection(Connection):
    """A project of Azure AI Foundry, with the identity of the program."""


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


class Property(Record):
    """An input, an output or a parameter."""

    @classmethod
    def load(cls, data: dict[str, Any]) -> Property:
        """A property from its definition."""
        return cls(data)


class ContentPart(Record):
    """A part of a message."""

    _kind = ""

    def __init__(self, given: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        super().__init__(given or {}, **{camel(name): value for name, value in more.items() if value is not None})
        if self._kind:
            self.setdefault("kind", self._kind)


class TextPart(ContentPart):
    """A text in a message: `value`."""

    _kind = "text"


class ImagePart(ContentPart):
    """A picture in a message: `source`, `media_type` and `detail`."""

    _kind = "image"


class FilePart(ContentPart):
    """A file in a message: `source` and `media_type`."""

    _kind = "file"


class AudioPart(ContentPart):
    """A sound in a message: `source` and `media_type`."""

    _kind = "audio"


_PARTS: dict[Any, type[ContentPart]] = {"text": TextPart, "image": ImagePart, "file": FilePart, "audio": AudioPart}


def part(value: str | Mapping[str, Any]) -> ContentPart:
    """A part of its kind. A string is a text."""
    if isinstance(value, str):
        return TextPart(value=value)
    return value if isinstance(value, ContentPart) else _PARTS.get(value.get("kind"), ContentPart)(value)


_CONNECTIONS: dict[Any, type[Connection]] = {
    "key": ApiKeyConnection,
    "reference": ReferenceConnection,
    "foundry": FoundryConnection,
}
_TOOLS: dict[Any, type[Tool]] = {"function": FunctionTool, "mcp": McpTool, "openapi": OpenApiTool}


def record(value: Any) -> Any:
    """A value whose members are attributes."""
    if isinstance(value, dict) and not isinstance(value, Record):
        return Record(value)
    if isinstance(value, list):
        made = [record(one) for one in value]
        return made if any(one is not other for one, other in zip(made, value)) else value
    return value


def connection(value: dict[str, Any]) -> Connection:
    """A connection of its kind."""
    return _CONNECTIONS.get(value.get("kind"), Connection)(value)


def tool(value: dict[str, Any]) -> Tool:
    """A tool of its kind, with its connection."""
    made = _TOOLS.get(value.get("kind"), CustomTool)(value)
    return type(made)({**made, "connection": connection(made["connection"])}) if made.get("connection") else made


class Message(Record):
    """A message: its `role`, its `parts` and its `metadata`."""

    def __init__(
        self,
        role: str | Mapping[str, Any] = "",
        parts: str | Sequence[str | Mapping[str, Any]] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        if not isinstance(role, str):
            super().__init__(role, **more)
            return
        super().__init__(role=role, **more)
        if parts is not None:
            self["content"] = [part(one) for one in ([parts] if isinstance(parts, str) else parts)]
        if metadata is not None:
            self["metadata"] = dict(metadata)

    @property
    def parts(self) -> list[ContentPart]:
        """The parts: texts, pictures, files and sounds."""
        content = self.get("content")
        if isinstance(content, str):
            return [TextPart(value=content)]
        return [part(one) for one in content or []]

    @property
    def text(self) -> str:
        """The texts of its parts."""
        return "".join(one["value"] for one in self.parts if one.get("kind") == "text")

    @property
    def metadata(self) -> dict[str, Any]:
        """What else its role line says, and the calls of an assistant or the call that a tool answers."""
        return self.get("metadata") or {}

    def to_text_content(self) -> str | list[Any]:
        """The text, if it has nothing else; else its parts."""
        return self.text if all(one.get("kind") == "text" for one in self.parts) else self.parts


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


#: A reference that is a whole value of a front matter.
_VALUE = re.compile(r"""[:\-\[,{]\s*["']?\$\{(env|file):([^}]*)\}(?=["']?\s*(?:$|[,\]}]))""", re.MULTILINE)


def references(text: str) -> list[tuple[str, str]]:
    """The references of a front matter: kind and what they name."""
    return _VALUE.findall(text)
