"""The interface of WINK: typed trees of sections, built in Python and rendered by the engine.

>>> from dataclasses import dataclass
>>> from cuebook.wink import MarkdownSection, Prompt
>>> @dataclass
... class Task:
...     goal: str
>>> prompt = Prompt(ns="docs", key="helper", sections=[
...     MarkdownSection[Task](title="Task", key="task", template="Find out about $goal."),
... ])
>>> prompt.bind(Task(goal="prices")).render().text
'# Task\\n\\nFind out about prices.'
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from . import errors
from ._native import plain, render_sections
from ._parts import Span
from ._rendered import _span
from .errors import CuebookError, PromptOverridesError

__all__ = [
    "MarkdownSection",
    "Prompt",
    "PromptOverridesError",
    "PromptRenderError",
    "PromptRenderer",
    "PromptTemplate",
    "PromptValidationError",
    "RegistrySnapshot",
    "RenderedPrompt",
    "Section",
    "SectionNode",
    "SectionOverride",
    "SectionVisibility",
    "Session",
    "StructuredOutputConfig",
    "Tool",
    "ToolOverride",
    "VisibilityExpansionRequired",
    "VisibilityOverrides",
]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ParamsT = TypeVar("ParamsT", default=Any)
    OutputT = TypeVar("OutputT", default=Any)
else:
    from typing import TypeVar

    ParamsT = TypeVar("ParamsT")
    OutputT = TypeVar("OutputT")

SectionPath = tuple[str, ...]

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class SectionVisibility(enum.Enum):
    """How much of a section shows."""

    FULL = "full"
    SUMMARY = "summary"


class _Placed:
    section_path: SectionPath
    placeholder: str | None
    dataclass_type: type | None

    def _place(self, section_path: SectionPath | None, dataclass_type: type | None, placeholder: str | None) -> None:
        self.section_path = section_path or ()
        self.dataclass_type = dataclass_type
        self.placeholder = placeholder


class PromptValidationError(errors.PromptValidationError, _Placed):
    """A tree, its parameters or its tools are invalid."""

    def __init__(
        self,
        message: str,
        *,
        section_path: SectionPath | None = None,
        dataclass_type: type | None = None,
        placeholder: str | None = None,
    ) -> None:
        super().__init__(message)
        self._place(section_path, dataclass_type, placeholder)


class PromptRenderError(errors.PromptRenderError, _Placed):
    """A section cannot be rendered."""

    def __init__(
        self,
        message: str,
        *,
        section_path: SectionPath | None = None,
        dataclass_type: type | None = None,
        placeholder: str | None = None,
    ) -> None:
        super().__init__(message)
        self._place(section_path, dataclass_type, placeholder)


class VisibilityExpansionRequired(errors.VisibilityExpansionRequired):
    """A model asks to see more: render again with `requested_overrides`."""

    def __init__(
        self,
        message: str,
        *,
        requested_overrides: Mapping[SectionPath, SectionVisibility],
        reason: str = "",
        section_keys: Sequence[str] = (),
    ) -> None:
        super().__init__(
            message,
            requested_overrides=dict(requested_overrides),
            reason=reason,
            section_keys=tuple(section_keys),
        )


@dataclass(frozen=True)
class VisibilityOverrides:
    """Sections whose visibility is set, whatever the tree says."""

    overrides: Mapping[SectionPath, SectionVisibility] = field(default_factory=dict)

    def get(self, path: SectionPath) -> SectionVisibility | None:
        """What is set for a path."""
        return self.overrides.get(path)

    def with_override(self, path: SectionPath, visibility: SectionVisibility) -> VisibilityOverrides:
        """The same and one more."""
        return VisibilityOverrides({**self.overrides, path: visibility})


class _Slot:
    def __init__(self) -> None:
        self._values: list[Any] = []

    def seed(self, value: Any) -> None:
        """Replaces the values."""
        self._values = list(value) if isinstance(value, (list, tuple)) else [value]

    def append(self, value: Any) -> None:
        """Adds a value."""
        self._values.append(value)

    def latest(self) -> Any:
        """The last value, or `None`."""
        return self._values[-1] if self._values else None

    def all(self) -> tuple[Any, ...]:
        """Every value, oldest first."""
        return tuple(self._values)


class Session:
    """Values by type: `session[VisibilityOverrides].seed(...)`."""

    def __init__(self) -> None:
        self._slots: dict[type, _Slot] = {}

    def __getitem__(self, kind: type) -> Any:
        return self._slots.setdefault(kind, _Slot())


class _Specialized:
    """A class that is made for a type, as in `MarkdownSection[Task]`. Its objects pickle if what they hold does."""

    _base: ClassVar[type]
    _types: ClassVar[Any]

    @classmethod
    def _of(cls, types: Any, **members: Any) -> Any:
        more = {"_base": cls, "_types": types, "__module__": cls.__module__, **members}
        return type(cls.__name__, (cls,), more)

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        if "_types" in kind.__dict__:
            return (_restored, (kind._base, (kind._types,), self.__dict__))
        return (_restored, (kind, (), self.__dict__))


def _restored(base: Any, types: tuple[Any, ...], state: dict[str, Any]) -> Any:
    kind = base[types[0]] if types else base
    made = object.__new__(kind)
    made.__dict__.update(state)
    return made


@dataclass(frozen=True)
class Tool(_Specialized, Generic[ParamsT, OutputT]):
    """A tool that a section offers. `Tool[Params, Result](...)` has its parameters from a dataclass, as `params=Params` does."""

    params_type: ClassVar[type | None] = None
    result_type: ClassVar[Any] = None

    name: str
    description: str = ""
    handler: Callable[..., Any] | None = None
    params: type | None = None
    accepts_overrides: bool = True

    def __class_getitem__(cls, types: Any) -> Any:
        params, result = types if isinstance(types, tuple) else (types, None)
        if isinstance(params, TypeVar) or isinstance(result, TypeVar):
            return super().__class_getitem__(types)  # type: ignore[misc]
        if params is not None and not dataclasses.is_dataclass(params):
            raise PromptValidationError("Tool ParamsT must be a dataclass type.", dataclass_type=params)
        return cls._of(types, params_type=params, result_type=result)

    def __post_init__(self) -> None:
        if self.params is None:
            object.__setattr__(self, "params", self.params_type)
        if not re.fullmatch(r"[a-z0-9_-]{1,64}", self.name):
            raise PromptValidationError(
                "Tool name must match the OpenAI function name constraints (pattern: ^[a-z0-9_-]{1,64}$).",
                placeholder=self.name,
            )

    def schema(self, descriptions: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON schema of its parameters."""
        properties: dict[str, Any] = {}
        required = []
        for one in dataclasses.fields(self.params) if self.params else ():
            said = (descriptions or {}).get(one.name) or one.metadata.get("description")
            properties[one.name] = {**_json_type(one.type), **({"description": said} if said else {})}
            if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
                required.append(one.name)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


def _json_type(kind: Any) -> dict[str, Any]:
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    known = _JSON_TYPES.get(name.split("[")[0])
    return {"type": known} if known else {}


@dataclass(frozen=True)
class ToolOverride:
    """Another description of a tool and of its fields."""

    description: str | None = None
    field_descriptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SectionOverride:
    """Another body of a section."""

    body: str


@dataclass(frozen=True)
class StructuredOutputConfig(Generic[OutputT]):
    """The dataclass that a reply is read into."""

    dataclass_type: type[OutputT]
    container: str = "object"
    allow_extra_keys: bool = False


Selector = Any


class Section(_Specialized, Generic[ParamsT]):
    """A section: a title, a body, sections below it, and tools."""

    params_type: type | None = None

    def __class_getitem__(cls, params: Any) -> Any:
        if isinstance(params, TypeVar) or not isinstance(params, type):
            return super().__class_getitem__(params)  # type: ignore[misc]
        return cls._of(params, params_type=params)

    def __init__(
        self,
        *,
        title: str,
        key: str,
        default_params: ParamsT | None = None,
        children: Sequence[Section[Any]] = (),
        enabled: Callable[..., bool] | None = None,
        tools: Sequence[Tool] = (),
        accepts_overrides: bool = True,
        summary: str | None = None,
        visibility: SectionVisibility | Callable[..., SectionVisibility] = SectionVisibility.FULL,
    ) -> None:
        if not _KEY.fullmatch(key):
            raise PromptValidationError(f"Section key must match ^{_KEY.pattern}$.", placeholder=key)
        self.title = title
        self.key = key
        self.default_params = default_params
        self.children = tuple(children)
        self.enabled = enabled
        self._tools = tuple(tools)
        self.accepts_overrides = accepts_overrides
        self.summary = textwrap.dedent(summary).strip() if summary is not None else None
        self.visibility = visibility

    def tools(self) -> tuple[Tool, ...]:
        """Its tools."""
        return self._tools

    def template_text(self) -> str:
        """The template of its body."""
        raise NotImplementedError

    def is_enabled(self, params: ParamsT | None, *, session: Session | None = None) -> bool:
        """Whether it shows at all."""
        return True if self.enabled is None else bool(_ask(self.enabled, params, session))

    def effective_visibility(self, params: ParamsT | None, *, session: Session | None = None) -> SectionVisibility:
        """How much of it shows."""
        chosen = self.visibility
        if callable(chosen):
            chosen = _ask(chosen, params, session)
        if not isinstance(chosen, SectionVisibility):
            raise TypeError("Visibility selector must return SectionVisibility.")
        return chosen

    def render_body(self, params: ParamsT | None = None, *, path: SectionPath = (), session: Session | None = None) -> str:
        """Its heading and its body, without what is below it."""
        alone = Prompt(ns="section", key="section", sections=[_Alone(self)])
        return alone.bind(*([params] if params is not None else [])).render(session=session).text

    def render_override(self, override_body: str, params: ParamsT | None = None, *, path: SectionPath = ()) -> str:
        """The body that replaces its own."""
        return override_body


class MarkdownSection(Section[ParamsT]):
    """A section whose body is a template with `$name` and `${name}`."""

    def __init__(self, *, title: str, template: str, key: str, **more: Any) -> None:
        super().__init__(title=title, key=key, **more)
        self.template = textwrap.dedent(template).strip()

    def template_text(self) -> str:
        return self.template


class _Alone(Section[Any]):
    """A section without those below it."""

    def __init__(self, whole: Section[Any]) -> None:
        super().__init__(title=whole.title, key=whole.key, default_params=whole.default_params)
        self.params_type = whole.params_type
        self._whole = whole

    def template_text(self) -> str:
        return self._whole.template_text()


def _ask(selector: Callable[..., Any], params: Any, session: Session | None) -> Any:
    parameters = inspect.signature(selector).parameters.values()
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    named = {"session": session} if any(one.name == "session" for one in parameters) else {}
    takes_params = any(one.name != "session" for one in positional)
    return selector(*([params] if takes_params else []), **named)


@dataclass(frozen=True)
class SectionNode(Generic[ParamsT]):
    """A section with its place in the tree."""

    section: Section[ParamsT]
    path: SectionPath
    depth: int


class RegistrySnapshot:
    """The sections of a tree, in order."""

    def __init__(self, sections: Sequence[Section[Any]]) -> None:
        self.roots = tuple(sections)
        self.nodes: tuple[SectionNode[Any], ...] = tuple(self._walk(self.roots, (), 0))
        seen: set[SectionPath] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.path in seen:
                raise PromptValidationError("Section path already registered.", section_path=node.path)
            seen.add(node.path)
            for tool in node.section.tools():
                if tool.name in names:
                    raise PromptValidationError("Duplicate tool name registered for prompt.", section_path=node.path)
                names.add(tool.name)
        self.params_types = tuple(
            dict.fromkeys(node.section.params_type for node in self.nodes if node.section.params_type is not None)
        )
        #: Whether a section that names no type reads parameters: then it gets those of the one type that no section names.
        self.has_untyped = any(_reads_untyped(node.section) for node in self.nodes)

    def _walk(self, sections: Sequence[Section[Any]], above: SectionPath, depth: int) -> Iterator[SectionNode[Any]]:
        for section in sections:
            path = (*above, section.key)
            yield SectionNode(section, path, depth)
            yield from self._walk(section.children, path, depth + 1)


@dataclass(frozen=True)
class RenderedPrompt(Generic[OutputT]):
    """A rendered tree: its text, where its characters came from, and the tools that a model may call."""

    text: str
    structured_output: StructuredOutputConfig[OutputT] | None = None
    deadline: Any = None
    descriptor: Any = None
    _tools: tuple[Tool, ...] = ()
    _tool_param_descriptions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of enabled sections that show in full, and those that open summarized ones."""
        return self._tools

    @property
    def tool_param_descriptions(self) -> Mapping[str, Mapping[str, str]]:
        """Descriptions that replace those of tools, by tool and field."""
        return self._tool_param_descriptions

    @property
    def output_type(self) -> type[OutputT] | None:
        """The dataclass that a reply is read into."""
        return self.structured_output.dataclass_type if self.structured_output else None

    def __str__(self) -> str:
        return self.text


class PromptRenderer:
    """Renders a snapshot with parameters, a session and overrides."""

    def __init__(
        self,
        *,
        registry: RegistrySnapshot,
        structured_output: StructuredOutputConfig[Any] | None = None,
        ns: str = "prompt",
        key: str = "prompt",
    ) -> None:
        self._registry = registry
        self._structured_output = structured_output
        self._ns, self._key = ns, key

    def build_param_lookup(self, params: Sequence[Any]) -> dict[type, Any]:
        """The parameters by type."""
        lookup: dict[type, Any] = {}
        for one in params:
            kind = type(one)
            if isinstance(one, type) or not dataclasses.is_dataclass(one):
                raise PromptValidationError("Prompt expects dataclass instances.", dataclass_type=kind)
            if kind in lookup:
                raise PromptValidationError("Duplicate params type supplied to prompt.", dataclass_type=kind)
            untyped = [known for known in lookup if known not in self._registry.params_types]
            is_known = kind in self._registry.params_types
            if not is_known and (untyped or not self._registry.has_untyped):
                raise PromptValidationError("Unexpected params type supplied to prompt.", dataclass_type=kind)
            lookup[kind] = one
        return lookup

    def render(
        self,
        param_lookup: Mapping[type, Any] | None = None,
        overrides: Mapping[SectionPath, SectionOverride | str] | None = None,
        tool_overrides: Mapping[str, ToolOverride] | None = None,
        *,
        session: Session | None = None,
    ) -> RenderedPrompt[Any]:
        """Renders the tree."""
        lookup = dict(param_lookup or {})
        tools: dict[str, Tool] = {}
        sections = [self._spec(one, (one.key,), lookup, overrides or {}, tools, session) for one in self._registry.roots]
        bound = [{"type": kind.__qualname__, "values": _fields(one)} for kind, one in self._all(lookup).items()]
        spec = {"ns": self._ns, "key": self._key, "sections": sections, "bound": bound}
        try:
            answer = render_sections(spec)
        except errors.PromptRenderError as error:
            raise _placed(PromptRenderError, error) from error
        except CuebookError as error:
            raise _placed(PromptValidationError, error) from error
        said = tool_overrides or {}
        shown = tuple(_described(tools.get(name) or _opener(name), said.get(name)) for name in answer["tools"])
        fields = {name: one.field_descriptions for name, one in said.items() if one.field_descriptions}
        spans = tuple(_span(answer["text"], one) for one in answer["spans"])
        return RenderedPrompt(answer["text"], self._structured_output, None, None, shown, fields, spans)

    def _all(self, lookup: Mapping[type, Any]) -> dict[type, Any]:
        known = dict(lookup)
        for node in self._registry.nodes:
            kind = node.section.params_type
            params = self._params(node.section, lookup)
            if params is not None:
                known.setdefault(kind or type(params), params)
        return known

    def _params(self, section: Section[Any], lookup: Mapping[type, Any]) -> Any:
        if section.params_type is None:
            named = self._registry.params_types
            return next((one for kind, one in lookup.items() if kind not in named), section.default_params)
        return _params(section, lookup)

    def _spec(
        self,
        section: Section[Any],
        path: SectionPath,
        lookup: Mapping[type, Any],
        overrides: Mapping[SectionPath, SectionOverride | str],
        tools: dict[str, Tool],
        session: Session | None,
    ) -> dict[str, Any]:
        params = self._params(section, lookup)
        if section.params_type is not None and params is None:
            raise PromptRenderError("Missing parameters for section.", section_path=path, dataclass_type=section.params_type)
        try:
            enabled = section.is_enabled(params, session=session)
            visibility = section.effective_visibility(params, session=session) if enabled else SectionVisibility.FULL
        except CuebookError:
            raise
        except Exception as error:
            raise PromptRenderError("Section selector raised an exception.", section_path=path) from error
        opened = session[VisibilityOverrides].latest() if session is not None else None
        visibility = (opened.get(path) if opened is not None else None) or visibility
        override = overrides.get(path)
        template = section.template_text()
        if override is not None and section.accepts_overrides:
            body = override.body if isinstance(override, SectionOverride) else override
            # A body that replaces another is text, and a template in which every dollar is doubled.
            template = section.render_override(body, params, path=path).replace("$", "$$")
        for tool in section.tools():
            tools[tool.name] = tool
        return {
            "key": section.key,
            "title": section.title,
            "template": template,
            "summary": section.summary,
            "visibility": visibility.value,
            "enabled": enabled,
            "params": (section.params_type or type(params)).__qualname__ if params is not None else None,
            "tools": [{"name": one.name, "description": one.description or one.name} for one in section.tools()],
            "children": [
                self._spec(one, (*path, one.key), lookup, overrides, tools, session) if enabled else _disabled(one)
                for one in section.children
            ],
        }


def _disabled(section: Section[Any]) -> dict[str, Any]:
    return {"key": section.key, "title": section.title, "template": "", "enabled": False}


def _reads_untyped(section: Section[Any]) -> bool:
    selectors = (section.enabled, section.visibility)
    asks = any(callable(one) and inspect.signature(one).parameters for one in selectors)
    return section.params_type is None and (asks or "$" in section.template_text())


def _params(section: Section[Any], lookup: Mapping[type, Any]) -> Any:
    kind = section.params_type
    assert kind is not None
    if kind in lookup:
        return lookup[kind]
    if section.default_params is not None:
        return section.default_params
    try:
        return kind()
    except TypeError:
        return None


def _fields(params: Any) -> dict[str, Any]:
    values = plain(params, type(params).__name__)
    # WINK prints what Python prints.
    return {name: one if isinstance(one, str) else str(getattr(params, name)) for name, one in values.items()}


def _placed(kind: Any, error: CuebookError) -> Any:
    path = error.details.get("section_path")
    path = tuple(path) if isinstance(path, list) else tuple(str(path).split(".")) if path else ()
    made = kind(error.message, section_path=path, placeholder=error.details.get("placeholder"))
    made.details, made._report = error.details, error._report
    return made


def _described(tool: Tool, override: ToolOverride | None) -> Tool:
    if override is None or override.description is None or not tool.accepts_overrides:
        return tool
    return dataclasses.replace(tool, description=override.description)


_OPENERS = {
    "open_sections": "Open summarized sections, so that their text and tools show.",
    "read_section": "Read a summarized section.",
}


def _opener(name: str) -> Tool:
    return Tool(name=name, description=_OPENERS.get(name, name), accepts_overrides=False)


class PromptTemplate(_Specialized, Generic[OutputT]):
    """A tree of sections under a namespace and a key."""

    output_type: type | None = None

    def __class_getitem__(cls, output: Any) -> Any:
        if isinstance(output, TypeVar) or not isinstance(output, type):
            return super().__class_getitem__(output)  # type: ignore[misc]
        return cls._of(output, output_type=output)

    def __init__(
        self,
        *,
        ns: str,
        key: str,
        name: str | None = None,
        sections: Sequence[Section[Any]] = (),
        structured_output: StructuredOutputConfig[Any] | None = None,
        allow_extra_keys: bool = False,
    ) -> None:
        for what, said in (("namespace", ns), ("key", key)):
            if not said.strip():
                raise PromptValidationError(f"Prompt {what} must be a non-empty string.")
        self.ns, self.key, self.name = ns.strip(), key.strip(), name
        self.sections = tuple(sections)
        self._registry = RegistrySnapshot(self.sections)
        if structured_output is None and self.output_type is not None and dataclasses.is_dataclass(self.output_type):
            structured_output = StructuredOutputConfig(self.output_type, allow_extra_keys=allow_extra_keys)
        self.structured_output = structured_output

    def bind(self, *params: Any) -> BoundPrompt:
        """The tree with parameters, ready to render."""
        return BoundPrompt(self, self._renderer().build_param_lookup(params))

    def render(self, *params: Any, session: Session | None = None) -> RenderedPrompt[Any]:
        """Binds and renders in one step."""
        return self.bind(*params).render(session=session)

    def _renderer(self) -> PromptRenderer:
        return PromptRenderer(
            registry=self._registry, structured_output=self.structured_output, ns=self.ns, key=self.key
        )


class Prompt(PromptTemplate[OutputT]):
    """A tree of sections; also what binds a template: `Prompt(template).bind(params)`."""

    def __init__(self, template: PromptTemplate[Any] | None = None, **more: Any) -> None:
        if template is not None:
            more = {
                "ns": template.ns,
                "key": template.key,
                "name": template.name,
                "sections": template.sections,
                "structured_output": template.structured_output,
                **more,
            }
        super().__init__(**more)


class BoundPrompt:
    """A tree with parameters."""

    def __init__(self, prompt: PromptTemplate[Any], lookup: dict[type, Any]) -> None:
        self.prompt = prompt
        self.params: tuple[Any, ...] = tuple(lookup.values())
        self._lookup = lookup
        self._registry = prompt._registry

    def bind(self, *params: Any) -> BoundPrompt:
        """The same with further parameters; those of the same type are replaced."""
        return BoundPrompt(self.prompt, {**self._lookup, **self.prompt._renderer().build_param_lookup(params)})

    def render(
        self,
        *,
        session: Session | None = None,
        overrides: Mapping[SectionPath, SectionOverride | str] | None = None,
        tool_overrides: Mapping[str, ToolOverride] | None = None,
    ) -> RenderedPrompt[Any]:
        """Renders the tree."""
        return self.prompt._renderer().render(self._lookup, overrides, tool_overrides, session=session)

    def open_sections(self, sections: Sequence[str], reason: str = "") -> None:
        """What the tool `open_sections` does: asks the caller to render again with these sections in full."""
        wanted = [self._path(one) for one in sections]
        raise VisibilityExpansionRequired(
            "Visibility expansion required",
            requested_overrides={path: SectionVisibility.FULL for path in wanted},
            reason=reason,
            section_keys=tuple(sections),
        )

    def read_section(self, section: str, *, session: Session | None = None) -> str:
        """What the tool `read_section` does: the full text of a section."""
        path = self._path(section)
        opened = Session()
        known = session[VisibilityOverrides].latest() if session is not None else None
        overrides = dict(known.overrides if known is not None else {})
        overrides.update({path[:end]: SectionVisibility.FULL for end in range(1, len(path) + 1)})
        opened[VisibilityOverrides].seed(VisibilityOverrides(overrides))
        rendered = self.render(session=opened)
        wanted = ".".join(path)
        inside = [one for one in rendered.spans if one.section and (one.section + ".").startswith(wanted + ".")]
        return rendered.text[inside[0].start : inside[-1].end].strip() if inside else ""

    def _path(self, dotted: str) -> SectionPath:
        for node in self._registry.nodes:
            if ".".join(node.path) == dotted:
                return node.path
        raise PromptValidationError(f"Section not found: {dotted}", placeholder=dotted)
