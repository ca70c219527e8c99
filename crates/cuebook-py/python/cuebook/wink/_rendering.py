"""Renders a tree of sections."""

from __future__ import annotations

import dataclasses
import functools
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from .._parts import Span
from ._base import (
    OutputT,
    PromptRenderError,
    PromptValidationError,
    SectionPath,
    SectionVisibility,
    VisibilityExpansionRequired,
    accepts_keyword,
)
from ._disclosure import create_open_sections_handler, create_read_section_handler, summary_suffix
from ._registry import RegistrySnapshot, SectionNode
from ._section import Attributed, frame, parts_of
from ._tool import SkillMount, Tool

if TYPE_CHECKING:
    from ._overrides import SectionOverride, ToolOverride

#: What is between two sections.
_GAP = Attributed.of([frame("\n\n", "heading")])
_COLOURS = {"value": "#fde68a80", "hook": "#fbcfe880", "frame": "#d1d5db80"}


@dataclass(frozen=True)
class StructuredOutputConfig(Generic[OutputT]):
    """The dataclass that a reply is read into."""

    dataclass_type: type[OutputT]
    container: Literal["object", "array"] = "object"
    allow_extra_keys: bool = False


@dataclass(frozen=True)
class RenderedPrompt(Generic[OutputT]):
    """A rendered tree: its text, where its characters came from, and the tools that a model may call."""

    text: str
    structured_output: StructuredOutputConfig[OutputT] | None = None
    deadline: Any = None
    descriptor: Any = None
    _tools: tuple[Tool[Any, Any], ...] = ()
    _skills: tuple[SkillMount, ...] = ()
    _tool_param_descriptions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: The texts of sections, each with what it is called if it has no parts, and its section.
    _written: tuple[tuple[str, str, SectionPath], ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @functools.cached_property
    def spans(self) -> tuple[Span, ...]:
        """Where its characters came from."""
        spans: list[Span] = []
        at = 0
        for text, label, path in self._written:
            dotted = ".".join(path)
            for part in parts_of(text, label):
                origin: dict[str, Any] = {"kind": part.kind}
                if part.kind == "value":
                    origin["variables"] = [{"path": part.label, "layer": "caller"}]
                elif part.line is not None:
                    origin["line"] = part.line
                end = at + len(part.text)
                spans.append(Span(at, end, part.text, part.kind, part.label, origin, dotted))
                at = end
        return tuple(spans)

    def _repr_html_(self) -> str:
        shown = (
            f'<span title="{html.escape(one.label)}" style="background:{_COLOURS.get(one.kind, "transparent")}">'
            f"{html.escape(one.text)}</span>"
            for one in self.spans
        )
        return f'<pre style="white-space:pre-wrap">{"".join(shown)}</pre>'

    @property
    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """The tools that a model may call."""
        return self._tools

    @property
    def skills(self) -> tuple[SkillMount, ...]:
        """The skills of the sections that show in full."""
        return self._skills

    @property
    def tool_param_descriptions(self) -> Mapping[str, Mapping[str, str]]:
        """Other descriptions of parameters, by tool."""
        return self._tool_param_descriptions

    @property
    def output_type(self) -> type[OutputT] | None:
        """The dataclass that a reply is read into."""
        return self.structured_output.dataclass_type if self.structured_output else None

    @property
    def container(self) -> Literal["object", "array"] | None:
        """Whether a reply is one object or many."""
        return self.structured_output.container if self.structured_output else None

    @property
    def allow_extra_keys(self) -> bool | None:
        """Whether a reply may have other keys."""
        return self.structured_output.allow_extra_keys if self.structured_output else None


class PromptRenderer:
    """Renders a snapshot of sections."""

    def __init__(
        self, *, registry: RegistrySnapshot, structured_output: StructuredOutputConfig[Any] | None = None
    ) -> None:
        self._registry = registry
        self._structured_output = structured_output

    def build_param_lookup(self, params: Sequence[Any]) -> dict[type, Any]:
        """The parameters by type."""
        lookup: dict[type, Any] = {}
        known = self._registry.params_registry
        for one in params:
            kind = one if isinstance(one, type) else type(one)
            if isinstance(one, type) or not dataclasses.is_dataclass(one):
                raise PromptValidationError("Prompt expects dataclass instances.", dataclass_type=kind)
            if kind in lookup:
                raise PromptValidationError("Duplicate params type supplied to prompt.", dataclass_type=kind)
            has_untyped = any(other not in known for other in lookup)
            if kind not in known and (has_untyped or not self._registry.asks_untyped):
                raise PromptValidationError("Unexpected params type supplied to prompt.", dataclass_type=kind)
            lookup[kind] = one
        return lookup

    def render(
        self,
        param_lookup: Mapping[type, Any] | None = None,
        overrides: Mapping[SectionPath, SectionOverride | str] | None = None,
        tool_overrides: Mapping[str, ToolOverride] | None = None,
        *,
        session: Any = None,
        descriptor: Any = None,
    ) -> RenderedPrompt[Any]:
        """Renders the tree."""
        lookup = dict(param_lookup or {})
        shown: dict[SectionPath, SectionVisibility] = {}
        written: list[tuple[str, str, SectionPath]] = []
        tools: list[Tool[Any, Any]] = []
        skills: list[SkillMount] = []
        hidden: SectionPath | None = None
        for node in self._registry.sections:
            if hidden is not None and node.path[: len(hidden)] == hidden:
                continue
            params = self._registry.resolve_section_params(node, lookup)
            if not _is_enabled(node, params, session):
                hidden = node.path
                continue
            visibility = node.section.effective_visibility(None, params, session=session, path=node.path)
            shown[node.path] = visibility
            section_text = self._text(node, params, visibility, overrides or {})
            if section_text and written:
                written.append((_GAP, "", node.path))
            if section_text:
                written.append((section_text, type(node.section).__name__, node.path))
            if visibility is SectionVisibility.SUMMARY:
                hidden = node.path
                if section_text:
                    suffix = frame(summary_suffix(self._registry, node), "suffix")
                    written.append((Attributed.of([suffix]), "", node.path))
            else:
                tools += node.section.tools()
                skills += node.section.skills()
        said = tool_overrides or {}
        described = [_described(tool, said.get(tool.name)) for tool in tools]
        fields = {
            tool.name: dict(said[tool.name].param_descriptions)
            for tool in tools
            if tool.name in said and tool.accepts_overrides and said[tool.name].param_descriptions
        }
        described += self._openers(shown, lookup, session)
        text = "".join(one for one, _, _ in written)
        return RenderedPrompt(
            text, self._structured_output, None, descriptor, tuple(described), tuple(skills), fields, tuple(written)
        )

    def _text(
        self,
        node: SectionNode[Any],
        params: Any,
        visibility: SectionVisibility,
        overrides: Mapping[SectionPath, SectionOverride | str],
    ) -> str:
        section = node.section
        override = overrides.get(node.path) if section.accepts_overrides else None
        # What a section without a type gets is for its `enabled` and `visibility`.
        given = params if section.params_type is not None else None
        try:
            if override is not None:
                body = override if isinstance(override, str) else override.body
                if accepts_keyword(type(section).render_override, "depth"):
                    return section.render_override(body, given, node.depth, node.number, node.path)
                # `def render_override(self, override_body, params, *, path)` is enough.
                return section.render_override(body, given, path=node.path)  # type: ignore[call-arg]
            return section.render(given, node.depth, node.number, path=node.path, visibility=visibility)
        except VisibilityExpansionRequired:
            raise
        except PromptRenderError as error:
            if error.section_path and error.dataclass_type:
                raise
            raise PromptRenderError(
                error.message,
                section_path=error.section_path or node.path,
                dataclass_type=error.dataclass_type or section.params_type,
                placeholder=error.placeholder,
            ) from error
        except Exception as error:
            raise PromptRenderError(
                "Section rendering failed.", section_path=node.path, dataclass_type=section.params_type
            ) from error

    def _openers(
        self, shown: Mapping[SectionPath, SectionVisibility], lookup: Mapping[type, Any], session: Any
    ) -> list[Tool[Any, Any]]:
        short = [path for path, one in shown.items() if one is SectionVisibility.SUMMARY]
        opens = any(self._registry.brings_tools(path) for path in short)
        reads = not all(self._registry.brings_tools(path) for path in short)
        made: list[Tool[Any, Any]] = []
        if opens:
            made.append(create_open_sections_handler(registry=self._registry, current_visibility=shown))
        if reads:
            made.append(
                create_read_section_handler(
                    registry=self._registry, current_visibility=shown, param_lookup=lookup, session=session
                )
            )
        return made


def _is_enabled(node: SectionNode[Any], params: Any, session: Any) -> bool:
    try:
        return node.section.is_enabled(params, session=session)
    except Exception as error:
        raise PromptRenderError(
            "Section enabled predicate failed.", section_path=node.path, dataclass_type=node.section.params_type
        ) from error


def _described(tool: Tool[Any, Any], override: ToolOverride | None) -> Tool[Any, Any]:
    if override is None or override.description in (None, tool.description) or not tool.accepts_overrides:
        return tool
    return tool.copy(description=override.description)
