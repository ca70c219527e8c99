"""Sections: a title, a body, sections below it, and tools."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._native import Template
from ._base import (
    GenericParamsSpecializer,
    ParamsT,
    PromptRenderError,
    PromptValidationError,
    SectionPath,
    SectionVisibility,
    accepted_keywords,
    normalize_component_key,
    normalize_enabled_predicate,
    normalize_visibility_selector,
)
from ._serde import clone
from ._session import ResourceRegistry, get_session_visibility_override
from ._tool import SkillMount, Tool, render_examples

if TYPE_CHECKING:
    from typing_extensions import Self


class Part(NamedTuple):
    """A part of a text and where it comes from."""

    text: str
    #: `literal`, `value`, `hook` or `frame`.
    kind: str
    label: str
    line: int | None = None


class Attributed(str):
    """A text that knows its parts, and makes them when they are first asked for."""

    _make: Callable[[], list[Part]]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Attributed:
        """The text of parts."""
        made = list(parts)
        return cls.later("".join(part.text for part in made), lambda: made)

    @classmethod
    def later(cls, text: str, make: Callable[[], list[Part]]) -> Attributed:
        """A text and what makes its parts."""
        made = cls(text)
        made._make = make
        return made

    @functools.cached_property
    def parts(self) -> list[Part]:
        """The parts."""
        return self._make()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Attributed.of, (self.parts,))


def frame(text: str, label: str) -> Part:
    """A part that the engine writes."""
    return Part(text, "frame", label)


def parts_of(text: str, label: str) -> list[Part]:
    """The parts of a text. A text that a function made is one part."""
    return text.parts if isinstance(text, Attributed) else [Part(text, "hook", label)] if text else []


class Section(GenericParamsSpecializer[ParamsT]):
    """A section. A subclass gives the body with `render_body`, or the whole with `render`."""

    def __init__(
        self,
        *,
        title: str,
        key: str,
        default_params: ParamsT | None = None,
        children: Sequence[Section[Any]] | None = None,
        enabled: Callable[..., bool] | None = None,
        tools: Sequence[Any] | None = None,
        skills: Sequence[Any] | None = None,
        policies: Sequence[Any] | None = None,
        accepts_overrides: bool = True,
        summary: str | None = None,
        visibility: SectionVisibility | Callable[..., SectionVisibility] = SectionVisibility.FULL,
    ) -> None:
        if self.params_type is None and default_params is not None:
            raise TypeError("Section without parameters cannot define default_params.")
        self.title = title
        self.key = normalize_component_key(key, owner="Section")
        self.default_params = default_params
        self.children: tuple[Section[Any], ...] = _all(Section, children, "Section children must be Section instances.")
        self._tools: tuple[Tool[Any, Any], ...] = _all(Tool, tools, "Section tools must be Tool instances.")
        self._skills: tuple[SkillMount, ...] = _all(
            SkillMount, skills, "Section skills must be SkillMount instances."
        )
        self._policies = tuple(policies or ())
        self.accepts_overrides = accepts_overrides
        self.summary = summary
        self.visibility = visibility
        self._enabled = enabled

    @property
    def enabled(self) -> Callable[..., bool] | None:
        """The function that decides whether it shows."""
        return self._enabled

    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """Its tools."""
        return self._tools

    def skills(self) -> tuple[SkillMount, ...]:
        """Its skills."""
        return self._skills

    def policies(self) -> tuple[Any, ...]:
        """What decides about calls of its tools."""
        return self._policies

    def resources(self) -> ResourceRegistry:
        """What it brings for its tools."""
        return ResourceRegistry()

    def cleanup(self) -> None:
        """Gives back what it holds."""

    def is_enabled(self, params: ParamsT | None, *, session: Any = None) -> bool:
        """Whether it shows at all."""
        ask = normalize_enabled_predicate(self._enabled, self.params_type)
        return True if ask is None else ask(params, session)

    def effective_visibility(
        self,
        override: SectionVisibility | None = None,
        params: Any = None,
        *,
        session: Any = None,
        path: SectionPath = (),
    ) -> SectionVisibility:
        """How much of it shows: what is given, what the session sets, or what it says itself."""
        chosen = override or get_session_visibility_override(session, path)
        if chosen is None and isinstance(self.visibility, SectionVisibility):
            chosen = self.visibility
        chosen = chosen or normalize_visibility_selector(self.visibility, self.params_type)(params, session)
        if chosen is SectionVisibility.SUMMARY and self.summary is None:
            said = f"SUMMARY visibility requested for section '{self.key}' but no summary template is defined."
            raise PromptValidationError(said, section_path=path)
        return chosen

    def format_heading(self, depth: int, number: str, path: SectionPath = ()) -> str:
        """Its heading."""
        place = f" ({'.'.join(path)})" if path else ""
        return f"{'#' * (depth + 2)} {number}. {self.title.strip()}{place}"

    def render_body(
        self,
        params: ParamsT | None,
        *,
        visibility: SectionVisibility | None = None,
        path: SectionPath = (),
        session: Any = None,
    ) -> str:
        """Its body."""
        return Attributed.of([])

    def render_tool_examples(self) -> str:
        """The examples of its tools."""
        return render_examples(self.tools())

    def render(
        self,
        params: ParamsT | None,
        depth: int,
        number: str,
        *,
        path: SectionPath = (),
        session: Any = None,
        visibility: SectionVisibility | None = None,
    ) -> str:
        """Its heading, its body and the examples of its tools."""
        # A subclass takes what it needs: `def render_body(self, params, *, path)` is enough.
        given: dict[str, Any] = {"visibility": visibility, "path": path, "session": session}
        taken = accepted_keywords(type(self).render_body, tuple(given))
        body = self.render_body(params, **{name: given[name] for name in taken})
        return self._whole(body, depth, number, path)

    def render_override(
        self, override_body: str, params: ParamsT | None, depth: int, number: str, path: SectionPath = ()
    ) -> str:
        """Its heading and the body that replaces its own."""
        said = f"Section '{self.key}' does not support override rendering."
        raise PromptRenderError(said, section_path=path, dataclass_type=self.params_type)

    def _whole(self, body: str, depth: int, number: str, path: SectionPath) -> Attributed:
        heading, examples = self.format_heading(depth, number, path), self.render_tool_examples()
        before, after = "\n\n" if body else "", f"\n\n{examples}" if examples else ""

        def parts() -> list[Part]:
            body_parts = parts_of(body, f"{type(self).__name__}.render_body")
            frames = [frame(heading, "heading"), frame(before, "heading"), frame(after, "examples")]
            return [part for part in (*frames[:2], *body_parts, frames[2]) if part.text]

        return Attributed.later("".join((heading, before, body, after)), parts)

    def placeholder_names(self) -> set[str]:
        """The names that its template reads."""
        return set()

    def original_body_template(self) -> str | None:
        """The template of its body, if an override can replace it."""
        return None

    def original_summary_template(self) -> str | None:
        """The template of its summary."""
        return self.summary

    def clone(self, **kwargs: Any) -> Self:
        """A copy of it and of what is below it."""
        raise NotImplementedError


def _all(kind: type, given: Sequence[Any] | None, otherwise: str) -> tuple[Any, ...]:
    if not all(isinstance(one, kind) for one in given or ()):
        raise TypeError(otherwise)
    return tuple(given or ())


class MarkdownSection(Section[ParamsT]):
    """A section whose body is a template with `$name` and `${name}`."""

    def __init__(self, *, title: str, template: str, key: str, **more: Any) -> None:
        super().__init__(title=title, key=key, **more)
        self.template = template
        #: Templates by their text, with the names of their placeholders.
        self._compiled: dict[str, tuple[Template, tuple[str, ...]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": {}}

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments = super().__reduce__()[:2]
        return (make, (*arguments[:2], self.__getstate__()))

    def original_body_template(self) -> str | None:
        return self.template

    def placeholder_names(self) -> set[str]:
        return set(self._template(self.template)[1])

    def render_body(
        self,
        params: ParamsT | None,
        *,
        visibility: SectionVisibility | None = None,
        path: SectionPath = (),
        session: Any = None,
    ) -> str:
        shown = visibility or normalize_visibility_selector(self.visibility, self.params_type)(params, session)
        is_summary = shown is SectionVisibility.SUMMARY and self.summary is not None
        body = self._filled(self.summary or "" if is_summary else self.template, params, path)
        if self.params_type is None and params is not None:
            # A section without a type that gets parameters all the same is rendered with its heading.
            return Attributed.of([frame(f"# {self.title.strip()}\n\n", "heading"), *body.parts])
        return body

    def render_override(
        self, override_body: str, params: ParamsT | None, depth: int, number: str, path: SectionPath = ()
    ) -> str:
        return self._whole(self._filled(override_body, params, path), depth, number, path)

    def clone(self, **kwargs: Any) -> Self:
        given: dict[str, Any] = {
            "title": self.title,
            "key": self.key,
            "template": self.template,
            "default_params": clone(self.default_params),
            "children": [child.clone(**kwargs) for child in self.children],
            "enabled": self._enabled,
            "tools": self._tools,
            "skills": self._skills,
            "policies": self._policies,
            "accepts_overrides": self.accepts_overrides,
            "summary": self.summary,
            "visibility": self.visibility,
        }
        return type(self)(**given)

    def _template(self, text: str) -> tuple[Template, tuple[str, ...]]:
        found = self._compiled.get(text)
        if found is None:
            template = Template(self.key, text)
            found = self._compiled[text] = (template, tuple(template.placeholders))
        return found

    def _filled(self, text: str, params: Any, path: SectionPath) -> Attributed:
        if params is not None and (isinstance(params, type) or not dataclasses.is_dataclass(params)):
            said = "Section params must be a dataclass instance."
            raise PromptRenderError(said, section_path=path, dataclass_type=self.params_type)
        template, names = self._template(text)
        kind: Any = type(params)
        known = _field_names(kind) if params is not None else ()
        values = {name: str(getattr(params, name)) for name in names if name in known}
        try:
            filled = template.text(values)
        except KeyError as error:
            said = "Missing placeholder during render."
            raise PromptRenderError(said, placeholder=str(error.args[0])) from error
        place = ".".join(path) or self.key

        def parts() -> list[Part]:
            return [
                Part(one, "literal", f"{place}:{line}", line) if name is None else Part(one, "value", name, line)
                for one, name, line in template.fill(values)
            ]

        return Attributed.later(filled, parts)


@functools.lru_cache(maxsize=256)
def _field_names(kind: type) -> frozenset[str]:
    return frozenset(one.name for one in dataclasses.fields(kind))
