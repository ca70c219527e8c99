"""How a model sees more of a prompt: the tools `open_sections` and `read_section`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._base import PromptValidationError, SectionPath, SectionVisibility, VisibilityExpansionRequired
from ._registry import RegistrySnapshot, SectionNode
from ._tool import Tool, ToolContext, ToolResult

FULL, SUMMARY = SectionVisibility.FULL, SectionVisibility.SUMMARY


@dataclass(frozen=True)
class OpenSectionsParams:
    """The arguments of `open_sections`."""

    section_keys: tuple[str, ...] = field(metadata={"description": "The keys of the sections to open, with dots."})
    reason: str = field(metadata={"description": "Why the sections are needed."})


@dataclass(frozen=True)
class ReadSectionParams:
    """The arguments of `read_section`."""

    section_key: str = field(metadata={"description": "The key of the section to read, with dots."})


@dataclass(frozen=True)
class ReadSectionResult:
    """The text of a section."""

    content: str

    def render(self) -> str:
        """What the model sees."""
        return self.content


def build_summary_suffix(section_key: str, child_keys: tuple[str, ...], *, has_tools: bool = True) -> str:
    """What a summarized section ends with."""
    tool = "open_sections" if has_tools else "read_section"
    if child_keys:
        said = f'Call `{tool}` with key "{section_key}" to view full content including subsections: {", ".join(child_keys)}.'
    else:
        said = f'To view full content, call `{tool}` with key "{section_key}".'
    return f"\n\n---\n[This section is summarized. {said}]"


def compute_current_visibility(
    snapshot: RegistrySnapshot, param_lookup: Mapping[type, Any] | None = None, *, session: Any = None
) -> dict[SectionPath, SectionVisibility]:
    """How much of each section shows."""
    lookup = param_lookup or {}

    def shown(node: SectionNode[Any]) -> SectionVisibility:
        kind = node.section.params_type
        known = node.path in snapshot.defaults_by_path or kind in snapshot.defaults_by_type or kind in lookup
        params = snapshot.resolve_section_params(node, lookup) if kind is None or known else None
        return node.section.effective_visibility(None, params, session=session, path=node.path)

    return {node.path: shown(node) for node in snapshot.sections}


def has_summarized_sections(
    snapshot: RegistrySnapshot, param_lookup: Mapping[type, Any] | None = None, *, session: Any = None
) -> bool:
    """Whether a section shows its summary."""
    return SUMMARY in compute_current_visibility(snapshot, param_lookup, session=session).values()


def find_path(snapshot: RegistrySnapshot, key: str) -> SectionPath:
    """The path of a section that a model names."""
    for path in snapshot.node_by_path:
        if ".".join(path) == key.strip():
            return path
    raise PromptValidationError(f"Section '{key}' does not exist in this prompt.", placeholder=key)


def create_open_sections_handler(
    *, registry: RegistrySnapshot, current_visibility: Mapping[SectionPath, SectionVisibility]
) -> Tool[OpenSectionsParams, None]:
    """The tool that asks the caller to render again with more."""

    def handler(params: OpenSectionsParams, *, context: ToolContext) -> ToolResult[Any]:
        if not params.section_keys:
            raise PromptValidationError("At least one section key must be provided.")
        paths = [find_path(registry, key) for key in params.section_keys]
        wanted = {path: FULL for path in paths if current_visibility.get(path) is SUMMARY}
        if not wanted:
            names = ", ".join(f"'{key}'" for key in params.section_keys)
            one = f"Section {names} is already expanded."
            raise PromptValidationError(
                one if len(paths) == 1 else f"All requested sections are already expanded: {names}."
            )
        raise VisibilityExpansionRequired(
            f"Model requested expansion of sections: {', '.join(params.section_keys)}",
            requested_overrides=wanted,
            reason=params.reason,
            section_keys=params.section_keys,
        )

    said = "Open summarized sections: their whole text and their tools are there in the next turn."
    made = Tool[OpenSectionsParams, None](name="open_sections", description=said, handler=handler, accepts_overrides=False)
    return made


def create_read_section_handler(
    *,
    registry: RegistrySnapshot,
    current_visibility: Mapping[SectionPath, SectionVisibility],
    param_lookup: Mapping[type, Any] | None = None,
    session: Any = None,
) -> Tool[ReadSectionParams, ReadSectionResult]:
    """The tool that returns the text of a summarized section."""

    def handler(params: ReadSectionParams, *, context: ToolContext) -> ToolResult[ReadSectionResult]:
        path = find_path(registry, params.section_key)
        if current_visibility.get(path) is not SUMMARY:
            raise PromptValidationError(f"Section '{params.section_key}' is not summarized.")
        content = read_section(registry, path, current_visibility, param_lookup or {}, session)
        return ToolResult.ok(ReadSectionResult(content), message=f"The section '{params.section_key}':")

    said = "Read the whole text of a summarized section. It stays summarized."
    return Tool[ReadSectionParams, ReadSectionResult](
        name="read_section", description=said, handler=handler, accepts_overrides=False
    )


def read_section(
    registry: RegistrySnapshot,
    path: SectionPath,
    visibility: Mapping[SectionPath, SectionVisibility],
    lookup: Mapping[type, Any],
    session: Any,
) -> str:
    """The text of a section in full, and of those below it as they are."""
    texts, hidden = [], None
    for node in registry.sections:
        if node.path[: len(path)] != path or (hidden is not None and node.path[: len(hidden)] == hidden):
            continue
        params = registry.resolve_section_params(node, lookup)
        if not node.section.is_enabled(params, session=session):
            hidden = node.path
            continue
        shown = FULL if node.path == path else visibility.get(node.path, FULL)
        text = node.section.render(params, node.depth, node.number, path=node.path, visibility=shown)
        if shown is SUMMARY:
            hidden = node.path
            text += summary_suffix(registry, node)
        texts.append(text)
    return "\n\n".join(text for text in texts if text)


def summary_suffix(registry: RegistrySnapshot, node: SectionNode[Any]) -> str:
    """What a summarized section of a tree ends with."""
    keys = registry.child_keys(node.path)
    return build_summary_suffix(".".join(node.path), keys, has_tools=registry.brings_tools(node.path))
