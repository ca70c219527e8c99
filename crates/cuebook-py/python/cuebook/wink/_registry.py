"""The sections of a tree in order, checked and indexed."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from ._base import (
    ParamsT,
    PromptRenderError,
    PromptValidationError,
    SectionPath,
    callable_requires_positional_argument,
)
from ._examples import TaskExample
from ._section import Section
from ._tool import Tool


@dataclass(frozen=True)
class SectionNode(Generic[ParamsT]):
    """A section with its place in the tree."""

    section: Section[ParamsT]
    depth: int
    path: SectionPath
    number: str = ""


class PromptRegistry:
    """Takes sections one by one and refuses invalid ones."""

    def __init__(self) -> None:
        self._section_nodes: list[SectionNode[Any]] = []
        self._params_registry: dict[type, list[SectionNode[Any]]] = {}
        self._defaults_by_path: dict[SectionPath, Any] = {}
        self._defaults_by_type: dict[type, Any] = {}
        self._placeholders: dict[SectionPath, set[str]] = {}
        self._tool_name_registry: dict[str, SectionPath] = {}
        self._skill_name_registry: dict[str, SectionPath] = {}
        self._counts: list[int] = []

    def register_sections(self, sections: Sequence[Section[Any]]) -> None:
        """Registers roots with everything below them."""
        for section in sections:
            self.register_section(section, path=(section.key,), depth=0)

    def register_section(self, section: Section[Any], *, path: SectionPath, depth: int) -> None:
        """Registers a section with everything below it."""
        params_type = section.params_type
        if params_type is not None and not dataclasses.is_dataclass(params_type):
            raise _wrong("Section params must be a dataclass.", path, params_type)
        node = SectionNode(section, depth, path, self._number(depth))
        self._section_nodes.append(node)
        if params_type is not None:
            self._params_registry.setdefault(params_type, []).append(node)
        self._register_defaults(section, path)
        self._register_placeholders(section, path)
        self._register_tools(section, path)
        for child in section.children:
            self.register_section(child, path=(*path, child.key), depth=depth + 1)

    def _number(self, depth: int) -> str:
        self._counts[depth + 1 :] = []
        self._counts += [0] * (depth + 1 - len(self._counts))
        self._counts[depth] += 1
        return ".".join(map(str, self._counts))

    def _register_defaults(self, section: Section[Any], path: SectionPath) -> None:
        default, kind = section.default_params, section.params_type
        if default is None or kind is None:
            return
        if isinstance(default, type):
            raise _wrong("Section defaults must be dataclass instances.", path, kind)
        if type(default) is not kind:
            raise _wrong("Section defaults must match section params type.", path, kind)
        self._defaults_by_path[path] = default
        self._defaults_by_type.setdefault(kind, default)

    def _register_placeholders(self, section: Section[Any], path: SectionPath) -> None:
        names, kind = set(section.placeholder_names()), section.params_type
        self._placeholders[path] = names
        known = {one.name for one in dataclasses.fields(kind)} if kind is not None else set()
        for name in sorted(names - known):
            said = "Section does not accept parameters but declares placeholders."
            raise _wrong("Template references unknown placeholder." if kind else said, path, kind, name)

    def _register_tools(self, section: Section[Any], path: SectionPath) -> None:
        for tool in section.tools():
            if not isinstance(tool, Tool):
                raise _wrong("Section tools must be Tool instances.", path, section.params_type)
            if tool.params_type is not None and not dataclasses.is_dataclass(tool.params_type):
                raise _wrong("Tool parameters must be dataclass types.", path, tool.params_type)
            if tool.name in self._tool_name_registry:
                raise _wrong("Duplicate tool name registered for prompt.", path, tool.params_type)
            self._tool_name_registry[tool.name] = path
        for skill in section.skills():
            name = skill.resolved_name
            if name in self._skill_name_registry:
                raise _wrong(f"Duplicate skill name '{name}' registered for prompt.", path, section.params_type)
            self._skill_name_registry[name] = path

    def snapshot(self) -> RegistrySnapshot:
        """What is registered, to be rendered."""
        return RegistrySnapshot(self)


class RegistrySnapshot:
    """The sections of a tree, in order."""

    def __init__(self, registry: PromptRegistry) -> None:
        self.sections: tuple[SectionNode[Any], ...] = tuple(registry._section_nodes)
        self.params_registry = {kind: tuple(nodes) for kind, nodes in registry._params_registry.items()}
        self.defaults_by_path = dict(registry._defaults_by_path)
        self.defaults_by_type = dict(registry._defaults_by_type)
        self.placeholders = {path: frozenset(names) for path, names in registry._placeholders.items()}
        self.tool_name_registry = dict(registry._tool_name_registry)
        self.skill_name_registry = dict(registry._skill_name_registry)
        self.section_paths = frozenset(node.path for node in self.sections)
        self.node_by_path = {node.path: node for node in self.sections}
        self.subtree_has_tools = self._below(lambda section: bool(section.tools()))
        self.subtree_has_skills = self._below(lambda section: bool(section.skills()))
        #: Whether a section without a type asks for parameters: then it gets those of the one type that no section has.
        self.asks_untyped = any(_asks(node.section) for node in self.sections)

    @property
    def nodes(self) -> tuple[SectionNode[Any], ...]:
        """The sections."""
        return self.sections

    @property
    def params_types(self) -> set[type]:
        """The types of parameters."""
        return set(self.params_registry)

    def get_section(self, path: SectionPath) -> Section[Any] | None:
        """The section of a path."""
        node = self.node_by_path.get(path)
        return node.section if node is not None else None

    def child_keys(self, path: SectionPath) -> tuple[str, ...]:
        """The keys of the sections right below one."""
        return tuple(node.section.key for node in self.sections if node.path[:-1] == path)

    def brings_tools(self, path: SectionPath) -> bool:
        """Whether a section, or one below it, has tools or skills."""
        return self.subtree_has_tools[path] or self.subtree_has_skills[path]

    def _below(self, has: Any) -> dict[SectionPath, bool]:
        found = dict.fromkeys((node.path for node in self.sections), False)
        for node in self.sections:
            if has(node.section):
                found.update({node.path[:end]: True for end in range(1, len(node.path) + 1)})
        return found

    def resolve_section_params(self, node: SectionNode[Any], lookup: Mapping[type, Any]) -> Any:
        """The parameters of a section: the bound ones, its default, a default of their type, or an object without arguments."""
        kind = node.section.params_type
        if kind is None:
            return next((one for known, one in lookup.items() if known not in self.params_registry), None)
        if kind in lookup:
            return lookup[kind]
        default = self.defaults_by_path.get(node.path, self.defaults_by_type.get(kind))
        if default is not None:
            return copy.copy(default)
        try:
            made = kind()
        except TypeError as error:
            said = "Missing parameters for section."
            raise PromptRenderError(said, section_path=node.path, dataclass_type=kind) from error
        if not dataclasses.is_dataclass(made) or isinstance(made, type):
            said = "Section constructor must return a dataclass instance."
            raise PromptRenderError(said, section_path=node.path, dataclass_type=kind)
        return made


def _asks(section: Section[Any]) -> bool:
    asked = [one for one in (section._enabled, section.visibility) if callable(one)]
    return section.params_type is None and any(map(callable_requires_positional_argument, asked))


def _wrong(said: str, path: SectionPath, kind: type | None, placeholder: str | None = None) -> PromptValidationError:
    return PromptValidationError(said, section_path=path, dataclass_type=kind, placeholder=placeholder)


# Examples of tasks


def check_examples(snapshot: RegistrySnapshot, output_type: type | None) -> None:
    """Refuses examples that call tools which the tree does not have, or call them wrongly."""
    tools = {tool.name: tool for node in snapshot.sections for tool in node.section.tools()}
    for node in snapshot.sections:
        if isinstance(node.section, TaskExample):
            _check_steps(node, tools)
            _check_outcome(node, output_type)


def _check_steps(node: SectionNode[Any], tools: Mapping[str, Tool[Any, Any]]) -> None:
    assert isinstance(node.section, TaskExample)
    for number, step in enumerate(node.section.steps):
        tool = tools.get(step.tool_name)
        if tool is None:
            known = ", ".join(sorted(tools)) or "none"
            said = f'Unknown tool "{step.tool_name}" in task example step {number}. Available tools: {known}.'
            raise _wrong(said, node.path, None, "steps")
        where = f'for tool "{step.tool_name}" in task example step {number}'
        given, answer = step.example.input, step.example.output
        if not _is(given, tool.params_type):
            said = f"Task example input type mismatch {where}. Expected: {_name(tool.params_type)}, got: {_kind(given)}."
            raise _wrong(said, node.path, None, "steps")
        fault = _mismatch(tool, answer)
        if fault is not None:
            raise _wrong(f"Task example output type mismatch {where}. {fault}", node.path, None, "steps")


def _mismatch(tool: Tool[Any, Any], answer: Any) -> str | None:
    if tool.result_container != "array":
        expected = f"Expected: {_name(tool.result_type)}, got: {_kind(answer)}."
        return None if _is(answer, tool.result_type) else expected
    expected = f"Expected: sequence of {_name(tool.result_type)}"
    if not isinstance(answer, Sequence):
        return f"{expected}, got: {_kind(answer)}."
    wrong = [one for one in answer if not _is(one, tool.result_type)]
    return f"{expected}, got item of type {_kind(wrong[0])}." if wrong else None


def _check_outcome(node: SectionNode[Any], output_type: type | None) -> None:
    assert isinstance(node.section, TaskExample)
    outcome = node.section.outcome
    if output_type is None and not isinstance(outcome, str):
        said = f"Task example outcome must be a string: the prompt has no structured output. Got: {_kind(outcome)}."
        raise _wrong(said, node.path, None, "outcome")
    if output_type is not None and type(outcome) is not output_type:
        said = f"Task example outcome type mismatch. Expected: {_name(output_type)}, got: {_kind(outcome)}."
        raise _wrong(said, node.path, None, "outcome")


def _is(value: Any, kind: type | None) -> bool:
    return value is None if kind is None else type(value) is kind


def _name(kind: type | None) -> str:
    return "None" if kind is None else kind.__name__


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
