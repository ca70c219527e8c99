"""Tools of sections: what a model may call, with examples, results, policies and skills."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from ._base import ParamsT, PromptValidationError, ResultT, Specialized
from ._serde import schema, to_json

_NAME = re.compile(r"[a-z0-9_-]{1,64}")
_LONGEST_DESCRIPTION = 200


@dataclass
class ToolResult(Generic[ResultT]):
    """What a tool answers: a message for the model, and a value."""

    message: str
    value: ResultT | None = None
    success: bool = True
    exclude_value_from_context: bool = False

    @classmethod
    def ok(cls, value: ResultT, message: str = "") -> ToolResult[ResultT]:
        """An answer with a value."""
        return cls(message=message, value=value)

    @classmethod
    def error(cls, message: str) -> ToolResult[Any]:
        """A failure."""
        return cls(message=message, success=False)

    def render(self) -> str:
        """What the model sees of the value."""
        return render_result(self.value)


@dataclass(frozen=True)
class ToolContext:
    """What a tool knows when it is called."""

    prompt: Any
    rendered_prompt: Any = None
    adapter: Any = None
    session: Any = None
    deadline: Any = None
    budget_tracker: Any = None

    @property
    def resources(self) -> Any:
        """The resources of the prompt."""
        return self.prompt.resources


_ParamsT = TypeVar("_ParamsT", contravariant=True)
_ResultT = TypeVar("_ResultT", covariant=True)


class ToolHandler(Protocol[_ParamsT, _ResultT]):
    """What runs a tool: `handler(params, *, context)`."""

    def __call__(self, params: _ParamsT, *, context: ToolContext) -> Any:
        """Runs the tool and returns a `ToolResult`."""


@dataclass(frozen=True)
class ToolExample(Generic[ParamsT, ResultT]):
    """A call of a tool as it should be, and its answer."""

    description: str
    input: Any
    output: Any


@dataclass(frozen=True)
class PolicyDecision:
    """Whether a tool may be called."""

    allowed: bool
    reason: str | None = None

    @classmethod
    def allow(cls) -> PolicyDecision:
        """It may be called."""
        return cls(True)

    @classmethod
    def deny(cls, reason: str) -> PolicyDecision:
        """It may not be called."""
        return cls(False, reason)


class ToolPolicy:
    """Decides whether tools may be called. The program that runs tools asks it."""

    def check(self, tool: Tool[Any, Any], params: Any, *, context: ToolContext) -> PolicyDecision:
        """Whether a call is allowed."""
        raise NotImplementedError

    def on_result(self, tool: Tool[Any, Any], params: Any, result: ToolResult[Any], *, context: ToolContext) -> None:
        """Learns what a call gave."""


@dataclass(frozen=True)
class SkillMount:
    """A skill that a section brings: a folder or a file."""

    source: Path
    name: str | None = None

    @property
    def resolved_name(self) -> str:
        """Its name: the given one, or that of its folder or file."""
        return self.name or (self.source.stem if self.source.is_file() else self.source.name)


def _is_dataclass(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind)


@dataclass(eq=False)
class Tool(Specialized, Generic[ParamsT, ResultT]):
    """A tool that a section offers. `Tool[Params, Result](...)` has its types from dataclasses; `params=Params` names one."""

    _arguments: ClassVar[tuple[Any, Any] | None] = None

    name: str
    description: str | None = None
    handler: Callable[..., Any] | None = None
    params: type | None = None
    examples: Sequence[ToolExample[Any, Any]] = ()
    accepts_overrides: bool = True
    params_type: type | None = field(init=False, repr=False, default=None)
    result_type: type | None = field(init=False, repr=False, default=None)
    result_container: Literal["object", "array"] = field(init=False, repr=False, default="object")

    def __class_getitem__(cls, types: Any) -> Any:
        if not isinstance(types, tuple) or len(types) != 2:
            raise TypeError("Tool[...] expects two type arguments (ParamsT, ResultT).")
        if any(isinstance(one, TypeVar) for one in types):
            return super().__class_getitem__(types)  # type: ignore[misc]
        if types[0] is not None and not isinstance(types[0], type):
            raise TypeError("Tool ParamsT type argument must be a type.")
        return cls._of(types, _arguments=types)

    def __post_init__(self) -> None:
        params, result = self._arguments or (self.params, None)
        if params is type(None):
            params = None
        if params is not None and not _is_dataclass(params):
            raise PromptValidationError(
                "Tool ParamsT must be a dataclass type or None.", dataclass_type=params, placeholder="ParamsT"
            )
        self.params_type = self.params = params
        self.result_type, self.result_container = self._normalize_result_annotation(result, params)
        if not _NAME.fullmatch(self.name):
            raise PromptValidationError(
                f"Tool name must match the OpenAI function name constraints (pattern: ^{_NAME.pattern}$).",
                dataclass_type=params,
                placeholder=self.name.strip(),
            )
        if self.description is not None:
            self.description = self.description.strip()
            if not (0 < len(self.description) <= _LONGEST_DESCRIPTION) or not self.description.isascii():
                raise PromptValidationError(
                    f"Tool description must be 1-{_LONGEST_DESCRIPTION} ASCII characters.",
                    dataclass_type=params,
                    placeholder="description",
                )
        self.examples = tuple(self.examples)

    @staticmethod
    def _normalize_result_annotation(annotation: Any, params_type: Any) -> tuple[Any, Literal["object", "array"]]:
        """The dataclass of a result, and whether it is one or many of it."""
        wrong = PromptValidationError(
            "Tool ResultT must be a dataclass type, a sequence of it, or None.",
            dataclass_type=params_type,
            placeholder="ResultT",
        )
        if annotation is None or annotation is type(None):
            return None, "object"
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is None:
            if not dataclasses.is_dataclass(annotation):
                raise wrong
            return annotation, "object"
        if not isinstance(origin, type) or not issubclass(origin, Sequence):
            raise wrong
        inner = arguments[:1] if origin is not tuple or arguments[1:] == (Ellipsis,) else ()
        if not inner or not isinstance(inner[0], type) or not dataclasses.is_dataclass(inner[0]):
            raise wrong
        return inner[0], "array"

    def schema(self, descriptions: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON schema of its parameters."""
        made = schema(self.params_type, extra="forbid")
        del made["title"]
        for name, said in (descriptions or {}).items():
            if name in made["properties"]:
                made["properties"][name] = {**made["properties"][name], "description": said}
        return {**made, "required": made.get("required", [])}

    def copy(self, **changes: Any) -> Tool[Any, Any]:
        """The same with other values."""
        given = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.init}
        return type(self)(**{**given, **changes})


# Texts


def render_result(value: Any) -> str:
    """What a model sees of a result: what its `render()` gives, or JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        parts = [render_result(one) for one in value]
        try:
            return json.dumps([json.loads(part) for part in parts], ensure_ascii=False)
        except ValueError:
            return "\n\n".join(part for part in parts if part)
    if callable(getattr(value, "render", None)):
        return str(value.render())
    return to_json(value)


def fenced(language: str, text: str) -> str:
    """A text between fences."""
    return f"```{language}\n{text}\n```"


def render_examples(tools: Sequence[Tool[Any, Any]]) -> str:
    """The examples of tools; empty if no tool has any."""
    blocks = [_examples_of(tool) for tool in tools if tool.examples]
    return "\n".join(["Tools:", *blocks]) if blocks else ""


def _examples_of(tool: Tool[Any, Any]) -> str:
    lines = [f"- {tool.name}: {tool.description}", f"  - {tool.name} examples:"]
    for one in tool.examples:
        given = fenced("json", to_json(one.input))
        answer = fenced("", render_result(one.output))
        lines += [
            f"    - description: {one.description}",
            "      input:",
            _indented(given),
            "      output:",
            _indented(answer),
        ]
    return "\n".join(lines)


def _indented(text: str) -> str:
    # Blank lines are indented less, as in WINK.
    return "\n".join(" " * (8 if line.strip() else 6) + line for line in text.split("\n"))


def indented(text: str, by: int) -> str:
    """A text with white space before its lines."""
    return textwrap.indent(text, " " * by)
