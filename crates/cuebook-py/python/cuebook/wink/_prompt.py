"""Templates and prompts: a tree of sections under a namespace and a key."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from ._base import (
    OutputT,
    PromptValidationError,
    SectionPath,
    SectionVisibility,
    Specialized,
    VisibilityExpansionRequired,
    normalize_component_key,
)
from ._disclosure import compute_current_visibility, find_path, read_section
from ._overrides import PromptDescriptor, PromptOverridesStore, SectionOverride, ToolOverride
from ._registry import PromptRegistry, RegistrySnapshot, SectionNode, check_examples
from ._rendering import PromptRenderer, RenderedPrompt, StructuredOutputConfig
from ._section import Section
from ._session import PromptResources, ResourceRegistry

if TYPE_CHECKING:
    from typing_extensions import Self


class _Output(Specialized, Generic[OutputT]):
    """A class that is made for the type of a reply."""

    _output_dataclass_candidate: ClassVar[Any] = None
    _output_container_spec: ClassVar[Literal["object", "array"] | None] = None

    def __class_getitem__(cls, output: Any) -> Any:
        if isinstance(output, TypeVar):
            return super().__class_getitem__(output)  # type: ignore[misc]
        if output is None or output is type(None):
            return cls
        is_many = typing.get_origin(output) is list
        inner = typing.get_args(output)[0] if is_many else output
        container = "array" if is_many else "object"
        return cls._of(output, _output_dataclass_candidate=inner, _output_container_spec=container)


class PromptTemplate(_Output[OutputT]):
    """A tree of sections. It cannot be changed."""

    ns: str
    key: str
    name: str | None
    sections: tuple[SectionNode[Any], ...]
    policies: tuple[Any, ...]
    feedback_providers: tuple[Any, ...]
    task_completion_checker: Any
    allow_extra_keys: bool
    resources: ResourceRegistry
    structured_output: StructuredOutputConfig[OutputT] | None

    def __init__(
        self,
        *,
        ns: str | None = None,
        key: str | None = None,
        name: str | None = None,
        sections: Sequence[Section[Any]] = (),
        policies: Sequence[Any] = (),
        feedback_providers: Sequence[Any] = (),
        task_completion_checker: Any = None,
        allow_extra_keys: bool = False,
        resources: Mapping[type, Any] | ResourceRegistry | None = None,
        structured_output: StructuredOutputConfig[Any] | None = None,
    ) -> None:
        for what, said in (("ns", ns), ("key", key)):
            if said is None:
                raise TypeError(f"{type(self).__name__}() missing required argument: '{what}'")
        registry = PromptRegistry()
        roots = tuple(one.section if isinstance(one, SectionNode) else one for one in sections)
        registry.register_sections(roots)
        snapshot = registry.snapshot()
        output = structured_output or self._output(allow_extra_keys)
        check_examples(snapshot, output.dataclass_type if output is not None else None)
        self.__dict__.update(
            ns=_key(ns or "", "Prompt namespace"),
            key=_key(key or "", "Prompt key"),
            name=name,
            sections=snapshot.sections,
            policies=tuple(policies),
            feedback_providers=tuple(feedback_providers),
            task_completion_checker=task_completion_checker,
            allow_extra_keys=allow_extra_keys,
            resources=_registry(resources),
            structured_output=output,
            _snapshot=snapshot,
            _roots=roots,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed: {name}")

    def _output(self, allow_extra_keys: bool) -> StructuredOutputConfig[Any] | None:
        kind = self._output_dataclass_candidate
        if kind is None:
            return None
        if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
            found = kind if isinstance(kind, type) else type(kind)
            raise PromptValidationError("Prompt output type must be a dataclass.", dataclass_type=found)
        return StructuredOutputConfig(kind, self._output_container_spec or "object", allow_extra_keys)

    @property
    def params_types(self) -> set[type]:
        """The types of parameters that its sections take."""
        return self._registry.params_types

    @property
    def placeholders(self) -> dict[SectionPath, frozenset[str]]:
        """The names that its templates read, by section."""
        return dict(self._registry.placeholders)

    @property
    def descriptor(self) -> PromptDescriptor:
        """What overrides can replace."""
        found: PromptDescriptor | None = self.__dict__.get("_descriptor")
        if found is None:
            found = self.__dict__["_descriptor"] = PromptDescriptor.from_prompt(self)
        return found

    @property
    def _registry(self) -> RegistrySnapshot:
        snapshot: RegistrySnapshot = self.__dict__["_snapshot"]
        return snapshot

    def find_section(self, kind: type | tuple[type, ...]) -> Section[Any]:
        """The first section of a type; a `KeyError` if there is none."""
        if kind == ():
            raise TypeError("find_section() needs at least one type")
        for node in self.sections:
            if isinstance(node.section, kind):
                return node.section
        raise KeyError(f"no section is a {kind!r}")

    def bind(self, *params: Any) -> Prompt[OutputT]:
        """A prompt of it with parameters, ready to render."""
        return Prompt(self).bind(*params)

    def render(self, *params: Any, session: Any = None) -> RenderedPrompt[OutputT]:
        """Binds and renders in one step."""
        return self.bind(*params).render(session=session)


def _key(key: str, owner: str) -> str:
    try:
        return normalize_component_key(key, owner=owner)
    except ValueError as error:
        raise PromptValidationError(str(error)) from error


def _registry(given: Mapping[type, Any] | ResourceRegistry | None) -> ResourceRegistry:
    return given if isinstance(given, ResourceRegistry) else ResourceRegistry.build(given or {})


class Prompt(_Output[OutputT]):
    """A template with parameters: `Prompt(template).bind(params).render()`. Without a template it takes the template's arguments."""

    def __init__(
        self,
        template: PromptTemplate[Any] | None = None,
        *,
        overrides_store: PromptOverridesStore | None = None,
        overrides_tag: str = "latest",
        **more: Any,
    ) -> None:
        if template is None:
            kind = PromptTemplate[self._types] if "_types" in type(self).__dict__ else PromptTemplate  # type: ignore[name-defined]
            template = kind(**more)
        elif more:
            raise TypeError(f"a prompt with a template takes no {', '.join(more)}")
        self.template: PromptTemplate[Any] = template
        self.overrides_store = overrides_store
        self.overrides_tag = overrides_tag.strip() or "latest"
        self._params: list[Any] = []
        self._bound_resources = ResourceRegistry()
        self._resources: PromptResources | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        make, (base, types, state) = super().__reduce__()[:2]
        return (make, (base, types, {**state, "_resources": None}))

    def __getattr__(self, name: str) -> Any:
        # What a prompt does not have itself is that of its template.
        if name.startswith("__") or name == "template":
            raise AttributeError(name)
        return getattr(self.template, name)

    @property
    def params(self) -> tuple[Any, ...]:
        """The parameters."""
        return tuple(self._params)

    @property
    def prompt(self) -> PromptTemplate[Any]:
        """The template."""
        return self.template

    def bind(self, *params: Any, resources: Mapping[type, Any] | ResourceRegistry | None = None) -> Self:
        """Adds parameters and returns the prompt; those of a type that was bound before are replaced."""
        before = [type(one) for one in self._params]
        for one in params:
            if type(one) in before:
                self._params[before.index(type(one))] = one
            else:
                self._params.append(one)
        if resources is not None:
            self._bound_resources = self._bound_resources.merge(_registry(resources), strict=False)
        return self

    def render(
        self,
        *,
        session: Any = None,
        overrides: Mapping[SectionPath, SectionOverride | str] | None = None,
        tool_overrides: Mapping[str, ToolOverride] | None = None,
    ) -> RenderedPrompt[OutputT]:
        """Renders the tree with its parameters and with what the store of overrides has for it."""
        stored = None
        if self.overrides_store is not None:
            stored = self.overrides_store.resolve(self.template.descriptor, self.overrides_tag)
        sections = {**(stored.sections if stored else {}), **(overrides or {})}
        tools = {**(stored.tool_overrides if stored else {}), **(tool_overrides or {})}
        renderer = self._renderer
        lookup = renderer.build_param_lookup(self._params)
        return renderer.render(lookup, sections, tools, session=session, descriptor=self.template.descriptor)

    @property
    def _renderer(self) -> PromptRenderer:
        return PromptRenderer(registry=self.template._registry, structured_output=self.template.structured_output)

    def policies_for_tool(self, tool_name: str) -> tuple[Any, ...]:
        """What decides about calls of a tool: the policies of its section, then those of the template."""
        owners = [node.section for node in self.template.sections if any(one.name == tool_name for one in node.section.tools())]
        return (*(policy for owner in owners for policy in owner.policies()), *self.template.policies)

    def cleanup(self) -> None:
        """Lets every section give back what it holds."""
        for node in self.template.sections:
            node.section.cleanup()

    @property
    def resources(self) -> PromptResources:
        """The resources of the template, of its sections, and those that were bound."""
        if self._resources is None:
            self._resources = PromptResources(self._all_resources)
        return self._resources

    def _all_resources(self) -> ResourceRegistry:
        found = self.template.resources
        for node in self.template.sections:
            found = found.merge(node.section.resources(), strict=False)
        return found.merge(self._bound_resources, strict=False)

    def open_sections(self, sections: Sequence[str], reason: str = "") -> None:
        """What the tool `open_sections` does: asks the caller to render again with these sections in full."""
        wanted = [find_path(self.template._registry, one) for one in sections]
        raise VisibilityExpansionRequired(
            f"Model requested expansion of sections: {', '.join(sections)}",
            requested_overrides={path: SectionVisibility.FULL for path in wanted},
            reason=reason,
            section_keys=tuple(sections),
        )

    def read_section(self, section: str, *, session: Any = None) -> str:
        """What the tool `read_section` does: the full text of a section."""
        registry = self.template._registry
        lookup = self._renderer.build_param_lookup(self._params)
        shown = compute_current_visibility(registry, lookup, session=session)
        return read_section(registry, find_path(registry, section), shown, lookup, session)
