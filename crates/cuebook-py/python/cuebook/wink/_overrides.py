"""Overrides of bodies and tools, bound by hashes to what they replace."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal

from ..errors import PromptOverridesError
from ._base import SectionPath
from ._examples import TaskExample
from ._registry import SectionNode
from ._serde import dump, schema
from ._tool import Tool


class HexDigest(str):
    """A SHA-256 in lower-case hexadecimal digits."""


def hash_text(value: str) -> HexDigest:
    """The hash of a text."""
    assert isinstance(value, str), "value must be a string"
    return HexDigest(hashlib.sha256(value.encode()).hexdigest())


def hash_json(value: Any) -> HexDigest:
    """The hash of JSON, whatever the order of its keys."""
    return hash_text(json.dumps(value, sort_keys=True, separators=(",", ":")))


def ensure_hex_digest(value: Any, *, field_name: str) -> HexDigest:
    """A text as a hash."""
    assert field_name, "field_name must be non-empty"
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{64}", value):
        raise PromptOverridesError(f"{field_name} must be a SHA-256 hex digest.")
    return HexDigest(value)


# What can be replaced


@dataclass(frozen=True)
class SectionDescriptor:
    """A section and the hash of its template."""

    path: SectionPath
    content_hash: HexDigest
    number: str


@dataclass(frozen=True)
class ToolDescriptor:
    """A tool and the hash of its contract: description, parameters and result."""

    path: SectionPath
    name: str
    contract_hash: HexDigest
    example_hashes: tuple[HexDigest, ...] = ()


@dataclass(frozen=True)
class TaskExampleDescriptor:
    """An example of a task and its hash."""

    path: SectionPath
    index: int
    content_hash: HexDigest


@dataclass(frozen=True)
class PromptDescriptor:
    """Everything of a prompt that overrides can replace."""

    ns: str
    key: str
    sections: list[SectionDescriptor] = field(default_factory=list)
    tools: list[ToolDescriptor] = field(default_factory=list)
    task_examples: list[TaskExampleDescriptor] = field(default_factory=list)

    @classmethod
    def from_prompt(cls, prompt: Any) -> PromptDescriptor:
        """The descriptor of a prompt."""
        assert hasattr(prompt, "ns") and hasattr(prompt, "key"), "prompt must have ns and key"
        assert hasattr(prompt, "sections"), "prompt must have sections"
        made = cls(prompt.ns, prompt.key)
        for node in prompt.sections:
            made._add(node)
        return made

    def _add(self, node: SectionNode[Any]) -> None:
        section, template = node.section, node.section.original_body_template()
        if section.accepts_overrides and template is not None:
            self.sections.append(SectionDescriptor(node.path, hash_text(template), node.number))
        self.tools.extend(_tool(tool, node.path) for tool in section.tools() if tool.accepts_overrides)
        if isinstance(section, TaskExample):
            index = sum(one.path[:-1] == node.path[:-1] for one in self.task_examples)
            self.task_examples.append(TaskExampleDescriptor(node.path, index, _example_hash(section)))


def descriptor_for_prompt(prompt: Any) -> PromptDescriptor:
    """The descriptor of a prompt, the cached one if it has it."""
    found = getattr(prompt, "descriptor", None)
    return found if isinstance(found, PromptDescriptor) else PromptDescriptor.from_prompt(prompt)


def _tool(tool: Tool[Any, Any], path: SectionPath) -> ToolDescriptor:
    kind = tool.result_type
    result = schema(kind, extra="ignore") if kind is not None else {"title": "NoneType", "type": "null"}
    if tool.result_container == "array" and kind is not None:
        result = {"title": f"{kind.__name__}List", "type": "array", "items": result}
    parts = (hash_text(tool.description or ""), hash_json(schema(tool.params_type, extra="forbid")), hash_json(result))
    hashes = tuple(
        hash_json({"description": one.description, "input": dump(one.input), "output": dump(one.output)})
        for one in tool.examples
    )
    return ToolDescriptor(path, tool.name, hash_text("::".join(parts)), hashes)


def _example_hash(example: TaskExample[Any]) -> HexDigest:
    steps = [{"tool": step.tool_name, "description": step.example.description} for step in example.steps]
    return hash_json({"objective": example.objective, "steps": steps, "outcome": dump(example.outcome)})


# What replaces it


@dataclass(frozen=True)
class SectionOverride:
    """Another body of a section."""

    body: str
    path: SectionPath = ()
    expected_hash: str = ""
    summary: str | None = None
    visibility: Literal["full", "summary"] | None = None


@dataclass(frozen=True)
class ToolOverride:
    """Another description of a tool and of its parameters."""

    name: str = ""
    expected_contract_hash: str = ""
    description: str | None = None
    param_descriptions: Mapping[str, str] = field(default_factory=dict)
    #: Another name of `param_descriptions`.
    field_descriptions: InitVar[Mapping[str, str] | None] = None

    def __post_init__(self, field_descriptions: Mapping[str, str] | None) -> None:
        if isinstance(field_descriptions, Mapping):
            object.__setattr__(self, "param_descriptions", {**field_descriptions, **self.param_descriptions})


@dataclass(frozen=True)
class TaskStepOverride:
    """Another step of an example."""

    index: int
    tool_name: str | None = None
    description: str | None = None
    input_json: str | None = None
    output_json: str | None = None


@dataclass(frozen=True)
class TaskExampleOverride:
    """Another example of a task."""

    path: SectionPath
    index: int
    expected_hash: HexDigest | None = None
    action: Literal["modify", "remove", "append"] = "modify"
    objective: str | None = None
    outcome: str | None = None
    step_overrides: tuple[TaskStepOverride, ...] = ()
    steps_to_remove: tuple[int, ...] = ()
    steps_to_append: tuple[TaskStepOverride, ...] = ()


@dataclass
class PromptOverride:
    """All overrides of a prompt under a tag."""

    ns: str
    prompt_key: str
    tag: str
    sections: dict[SectionPath, SectionOverride] = field(default_factory=dict)
    tool_overrides: dict[str, ToolOverride] = field(default_factory=dict)
    task_example_overrides: tuple[TaskExampleOverride, ...] = ()


class PromptOverridesStore:
    """Where overrides are kept."""

    def resolve(self, descriptor: PromptDescriptor, tag: str = "latest") -> PromptOverride | None:
        """The overrides that fit a prompt."""
        raise NotImplementedError

    def upsert(self, descriptor: PromptDescriptor, override: PromptOverride) -> PromptOverride:
        """Writes all overrides of a prompt."""
        raise NotImplementedError

    def delete(self, *, ns: str, prompt_key: str, tag: str) -> None:
        """Removes the overrides of a prompt."""
        raise NotImplementedError

    def store(self, descriptor: Any, override: Any, *, tag: str = "latest") -> PromptOverride:
        """Adds one override."""
        raise NotImplementedError

    def seed(self, prompt: Any, *, tag: str = "latest") -> PromptOverride:
        """Writes what a prompt says itself, to be edited."""
        raise NotImplementedError


def filter_override_for_descriptor(
    descriptor: PromptDescriptor, override: PromptOverride
) -> tuple[dict[SectionPath, SectionOverride], dict[str, ToolOverride]]:
    """The overrides whose originals are as they were."""
    sections = {one.path: one.content_hash for one in descriptor.sections}
    tools = {one.name: one.contract_hash for one in descriptor.tools}
    return (
        {path: one for path, one in override.sections.items() if sections.get(path) == one.expected_hash},
        {name: one for name, one in override.tool_overrides.items() if tools.get(name) == one.expected_contract_hash},
    )


# As JSON


def load_sections(payload: Any, descriptor: PromptDescriptor) -> dict[SectionPath, SectionOverride]:
    """The overrides of sections that fit a prompt, from a file."""
    known = {one.path: one.content_hash for one in descriptor.sections}
    found = {}
    for key, one in _entries(payload, "Section").items():
        summary, visibility = one.get("summary"), one.get("visibility")
        if summary is not None and not isinstance(summary, str):
            raise PromptOverridesError(f"Section override summary must be a string: {key}")
        if visibility not in (None, "full", "summary"):
            raise PromptOverridesError(f"Section override visibility must be 'full' or 'summary': {key}")
        path = tuple(key.split("/"))
        if path not in known:
            continue
        expected = ensure_hex_digest(one.get("expected_hash"), field_name="Section expected_hash")
        if expected != known[path]:
            continue
        body = one.get("body")
        if not isinstance(body, str):
            raise PromptOverridesError(f"Section override body must be a string: {key}")
        found[path] = SectionOverride(body, path, expected, summary, visibility)
    return found


def load_tools(payload: Any, descriptor: PromptDescriptor) -> dict[str, ToolOverride]:
    """The overrides of tools that fit a prompt, from a file."""
    known = {one.name: one.contract_hash for one in descriptor.tools}
    found = {}
    for name, one in _entries(payload, "Tool").items():
        if name not in known:
            continue
        expected = ensure_hex_digest(one.get("expected_contract_hash"), field_name="Tool expected_contract_hash")
        if expected == known[name]:
            found[name] = ToolOverride(name, expected, one.get("description"), one.get("param_descriptions") or {})
            check_tool(found[name] if one.get("param_descriptions") != [] else dataclasses.replace(
                found[name], param_descriptions=[]  # type: ignore[arg-type]
            ))
    return found


def _entries(payload: Any, what: str) -> dict[str, Mapping[str, Any]]:
    if payload is None:
        return {}
    if not isinstance(payload, Mapping):
        raise PromptOverridesError(f"{what} overrides payload must be a mapping.")
    for key, one in payload.items():
        if not isinstance(key, str):
            raise PromptOverridesError(f"{what} override keys must be strings.")
        if not isinstance(one, Mapping):
            raise PromptOverridesError(f"{what} override payload must be an object: {key}")
    return dict(payload)


def check_tool(override: ToolOverride) -> None:
    """Refuses descriptions that are not texts."""
    said = override.param_descriptions
    if override.description is not None and not isinstance(override.description, str):
        raise PromptOverridesError("Tool override description must be a string or None.")
    if not isinstance(said, Mapping) or not all(isinstance(one, str) for pair in said.items() for one in pair):
        raise PromptOverridesError("Tool override param_descriptions must map names to strings.")


def load_task_example_overrides(payload: Any) -> tuple[TaskExampleOverride, ...]:
    """The overrides of examples, from a file."""
    if payload is None:
        return ()
    if not isinstance(payload, list):
        raise PromptOverridesError("Task example overrides must be a list.")
    return tuple(map(_load_example, payload))


def _load_example(one: Any) -> TaskExampleOverride:
    what = "Task example override"
    if not isinstance(one, Mapping):
        raise PromptOverridesError(f"{what} entry must be an object.")
    path, index, action = one.get("path"), one.get("index"), one.get("action")
    if not isinstance(path, list):
        raise PromptOverridesError(f"{what} path must be a list.")
    if not isinstance(index, int):
        raise PromptOverridesError(f"{what} index must be an integer.")
    if action not in ("modify", "remove", "append"):
        raise PromptOverridesError(f"{what} action must be 'modify', 'remove' or 'append'.")
    texts = _texts(one, what, "expected_hash", "objective", "outcome")
    removed = one.get("steps_to_remove") or []
    if not isinstance(removed, list):
        raise PromptOverridesError(f"{what} steps_to_remove must be a list.")
    expected = texts.pop("expected_hash", None)
    return TaskExampleOverride(
        tuple(path),
        index,
        ensure_hex_digest(expected, field_name="expected_hash") if expected is not None else None,
        action,
        step_overrides=_load_steps(one.get("step_overrides")),
        steps_to_remove=tuple(removed),
        steps_to_append=_load_steps(one.get("steps_to_append")),
        **texts,
    )


def _load_steps(payload: Any) -> tuple[TaskStepOverride, ...]:
    if payload is None:
        return ()
    if not isinstance(payload, list):
        raise PromptOverridesError("Step overrides must be a list.")
    steps = []
    for one in payload:
        if not isinstance(one, Mapping):
            raise PromptOverridesError("Step override entry must be an object.")
        index = one.get("index")
        if not isinstance(index, int):
            raise PromptOverridesError("Step override index must be an integer.")
        names = ("tool_name", "description", "input_json", "output_json")
        steps.append(TaskStepOverride(index, **_texts(one, "Step override", *names)))
    return tuple(steps)


def _texts(one: Mapping[str, Any], what: str, *names: str) -> dict[str, Any]:
    for name in names:
        if one.get(name) is not None and not isinstance(one[name], str):
            raise PromptOverridesError(f"{what} {name} must be a string.")
    return {name: one[name] for name in names if one.get(name) is not None}


def serialize_task_example_overrides(overrides: Sequence[TaskExampleOverride]) -> list[dict[str, Any]]:
    """The overrides of examples as a file has them."""

    def steps(given: Sequence[TaskStepOverride]) -> list[dict[str, Any]]:
        return [dump(step) for step in given]

    def one(override: TaskExampleOverride) -> dict[str, Any]:
        more = {"objective": override.objective, "outcome": override.outcome}
        lists = {
            "step_overrides": steps(override.step_overrides),
            "steps_to_remove": list(override.steps_to_remove),
            "steps_to_append": steps(override.steps_to_append),
        }
        return {
            "path": list(override.path),
            "index": override.index,
            "expected_hash": override.expected_hash,
            "action": override.action,
            **{name: said for name, said in more.items() if said is not None},
            **{name: found for name, found in lists.items() if found},
        }

    return [one(override) for override in overrides]
