"""Overrides in files: `NAMESPACE/KEY/TAG.json` below a folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PromptOverridesError
from ._base import COMPONENT_KEY_PATTERN, SectionPath
from ._overrides import (
    HexDigest,
    PromptDescriptor,
    PromptOverride,
    PromptOverridesStore,
    SectionOverride,
    TaskExampleOverride,
    ToolOverride,
    check_tool,
    descriptor_for_prompt,
    ensure_hex_digest,
    load_sections,
    load_task_example_overrides,
    load_tools,
    serialize_task_example_overrides,
)

_FOLDER = Path(".weakincentives") / "prompts" / "overrides"
_VERSION = 2


class OverrideFilesystem:
    """Finds and writes files of overrides."""

    def __init__(self, root_path: str | os.PathLike[str] | None = None, overrides_relative_path: Path = _FOLDER) -> None:
        self._given = Path(root_path) if root_path is not None else None
        self._relative = Path(overrides_relative_path)

    def root(self) -> Path:
        """The folder: the given one, or one in the repository around the current folder."""
        if self._given is not None:
            return self._given
        top = self._git_toplevel() or self._above()
        if top is None:
            raise PromptOverridesError("Failed to locate repository root. Provide root_path explicitly.")
        return top / self._relative

    def _git_toplevel(self) -> Path | None:
        try:
            asked = ["git", "rev-parse", "--show-toplevel"]
            done = subprocess.run(asked, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return Path(done.stdout.strip()) if done.stdout.strip() else None

    def _above(self) -> Path | None:
        here = Path.cwd()
        return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)

    def file(self, ns: str, prompt_key: str, tag: str) -> Path:
        """The file of a prompt under a tag."""
        parts = [part for part in ns.strip().split("/") if part.strip()]
        if not parts:
            raise PromptOverridesError("Namespace must be a non-empty string.")
        folder = self.root()
        for part in parts:
            folder /= _identifier(part, "Namespace")
        return folder / _identifier(prompt_key, "Prompt key") / f"{_identifier(tag, 'Tag')}.json"

    def write(self, path: Path, payload: Mapping[str, Any]) -> None:
        """Writes a file: all of it or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(payload, indent=2, sort_keys=True) + "\n"
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _identifier(value: str, what: str) -> str:
    value = value.strip()
    if not value:
        raise PromptOverridesError(f"{what} must be a non-empty string.")
    if not COMPONENT_KEY_PATTERN.match(value):
        raise PromptOverridesError(f"{what} must match pattern {COMPONENT_KEY_PATTERN.pattern}.")
    return value


def _read(path: Path) -> dict[str, Any]:
    try:
        payload = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PromptOverridesError(f"Failed to parse prompt override JSON: {path}") from error
    if not isinstance(payload, dict):
        raise PromptOverridesError(f"Prompt override must be an object: {path}")
    return payload


class LocalPromptOverridesStore(PromptOverridesStore):
    """Overrides in files of a repository."""

    def __init__(
        self,
        *,
        root_path: str | os.PathLike[str] | None = None,
        overrides_relative_path: str | os.PathLike[str] = _FOLDER,
    ) -> None:
        self._files = OverrideFilesystem(root_path, Path(overrides_relative_path))
        self._lock = threading.RLock()

    def resolve(self, descriptor: PromptDescriptor, tag: str = "latest") -> PromptOverride | None:
        with self._lock:
            path = self._files.file(descriptor.ns, descriptor.key, tag)
            if not path.is_file():
                return None
            payload = _read(path)
        said = (payload.get("ns"), payload.get("prompt_key"), payload.get("tag"))
        if payload.get("version") != _VERSION:
            raise PromptOverridesError(f"Unsupported override file version {payload.get('version')!r}: {path}")
        if said != (descriptor.ns, descriptor.key, tag.strip()):
            raise PromptOverridesError(f"Override file metadata does not match its prompt: {path}")
        found = PromptOverride(
            descriptor.ns,
            descriptor.key,
            tag.strip(),
            load_sections(payload.get("sections"), descriptor),
            load_tools(payload.get("tools"), descriptor),
            load_task_example_overrides(payload.get("task_example_overrides")),
        )
        is_empty = not (found.sections or found.tool_overrides or found.task_example_overrides)
        return None if is_empty else found

    def upsert(self, descriptor: PromptDescriptor, override: PromptOverride) -> PromptOverride:
        if (override.ns, override.prompt_key) != (descriptor.ns, descriptor.key):
            raise PromptOverridesError("Override metadata does not match descriptor.")
        for path, section in override.sections.items():
            _check_section(descriptor, dataclasses.replace(section, path=path))
        for name, tool in override.tool_overrides.items():
            _check_tool(descriptor, dataclasses.replace(tool, name=name, field_descriptions=None))
        payload = {
            "version": _VERSION,
            "ns": override.ns,
            "prompt_key": override.prompt_key,
            "tag": override.tag,
            "sections": {"/".join(path): _section_json(path, one) for path, one in override.sections.items()},
            "tools": {
                name: {
                    "expected_contract_hash": one.expected_contract_hash,
                    "description": one.description,
                    "param_descriptions": dict(one.param_descriptions),
                }
                for name, one in override.tool_overrides.items()
            },
            "task_example_overrides": serialize_task_example_overrides(override.task_example_overrides),
        }
        with self._lock:
            self._files.write(self._files.file(override.ns, override.prompt_key, override.tag), payload)
        return override

    def delete(self, *, ns: str, prompt_key: str, tag: str) -> None:
        with self._lock:
            self._files.file(ns, prompt_key, tag).unlink(missing_ok=True)

    def store(self, descriptor: Any, override: Any, *, tag: str = "latest") -> PromptOverride:
        if not isinstance(descriptor, PromptDescriptor):
            raise TypeError("store() requires a PromptDescriptor.")
        with self._lock:
            known = self.resolve(descriptor, tag) or PromptOverride(descriptor.ns, descriptor.key, tag)
            if isinstance(override, SectionOverride):
                known.sections[override.path] = override
            elif isinstance(override, ToolOverride):
                known.tool_overrides[override.name] = override
            else:
                known.task_example_overrides = _with_example(known.task_example_overrides, override)
            return self.upsert(descriptor, known)

    def seed(self, prompt: Any, *, tag: str = "latest") -> PromptOverride:
        descriptor = descriptor_for_prompt(prompt)
        with self._lock:
            if self._files.file(descriptor.ns, descriptor.key, tag).exists():
                found = self.resolve(descriptor, tag)
                if found is None:
                    raise PromptOverridesError("Override file already exists but is stale or empty.")
                return found
            sections, tools = seed_sections(prompt, descriptor), seed_tools(prompt, descriptor)
            return self.upsert(descriptor, PromptOverride(descriptor.ns, descriptor.key, tag, sections, tools))


def _section_json(path: SectionPath, one: SectionOverride) -> dict[str, Any]:
    more = {"summary": one.summary, "visibility": one.visibility}
    said = {name: value for name, value in more.items() if value is not None}
    return {"path": list(path), "expected_hash": one.expected_hash, "body": one.body, **said}


def _with_example(
    known: tuple[TaskExampleOverride, ...], override: TaskExampleOverride
) -> tuple[TaskExampleOverride, ...]:
    place = (override.path, override.index)
    kept = tuple(one for one in known if (one.path, one.index) != place)
    return (*kept, override)


def _check_section(descriptor: PromptDescriptor, override: SectionOverride) -> None:
    expected = ensure_hex_digest(override.expected_hash, field_name="Section expected_hash")
    found = next((one for one in descriptor.sections if one.path == override.path), None)
    if found is None:
        raise PromptOverridesError(f"Section {'/'.join(override.path)} not registered in prompt descriptor.")
    if found.content_hash != expected:
        raise PromptOverridesError(f"Hash mismatch for section {'/'.join(override.path)}.")
    if not isinstance(override.body, str):
        raise PromptOverridesError("Section override body must be a string.")


def _check_tool(descriptor: PromptDescriptor, override: ToolOverride) -> None:
    expected = ensure_hex_digest(override.expected_contract_hash, field_name="Tool expected_contract_hash")
    found = next((one for one in descriptor.tools if one.name == override.name), None)
    if found is None:
        raise PromptOverridesError(f"Tool {override.name} not registered in prompt descriptor.")
    if found.contract_hash != expected:
        raise PromptOverridesError(f"Hash mismatch for tool {override.name}.")
    check_tool(override)


def seed_sections(prompt: Any, descriptor: PromptDescriptor) -> dict[SectionPath, SectionOverride]:
    """The templates of a prompt as overrides."""
    nodes = {node.path: node for node in prompt.sections}
    found = {}
    for one in descriptor.sections:
        template = nodes[one.path].section.original_body_template() if one.path in nodes else None
        if template is None:
            raise PromptOverridesError(f"Cannot seed override for section {'/'.join(one.path)}: it has no template.")
        found[one.path] = SectionOverride(template, one.path, one.content_hash)
    return found


def seed_tools(prompt: Any, descriptor: PromptDescriptor) -> dict[str, ToolOverride]:
    """The descriptions of tools as overrides."""
    tools = {tool.name: tool for node in prompt.sections for tool in node.section.tools()}
    found = {}
    for one in descriptor.tools:
        if one.name not in tools:
            raise PromptOverridesError(f"Cannot seed override for the missing tool {one.name}.")
        tool = tools[one.name]
        kind = tool.params_type
        fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        said = {each.name: each.metadata["description"] for each in fields if each.metadata.get("description")}
        found[one.name] = ToolOverride(one.name, one.contract_hash, tool.description, said)
    return found


# Looking at the files


@dataclass(frozen=True)
class OverrideFileMetadata:
    """A file of overrides."""

    path: Path
    relative_segments: tuple[str, ...]
    modified_time: float
    content_hash: HexDigest
    section_count: int
    tool_count: int


def resolve_overrides_root(
    *, root_path: str | os.PathLike[str] | None = None, overrides_relative_path: str | os.PathLike[str] = _FOLDER
) -> Path:
    """The folder of overrides."""
    return OverrideFilesystem(root_path, Path(overrides_relative_path)).root()


def iter_override_files(*, overrides_root: Path | None = None) -> Iterator[OverrideFileMetadata]:
    """The files of overrides below a folder, by name."""
    root = (overrides_root or resolve_overrides_root()).resolve()
    for path in sorted(root.rglob("*.json")) if root.is_dir() else ():
        if path.is_file():
            payload = _read(path)
            counted = [payload.get(name, {}) for name in ("sections", "tools")]
            if not all(isinstance(one, Mapping) for one in counted):
                raise PromptOverridesError(f"Prompt override sections and tools must be objects: {path}")
            digest = HexDigest(hashlib.sha256(path.read_bytes()).hexdigest())
            segments = path.relative_to(root).parts
            yield OverrideFileMetadata(path, segments, path.stat().st_mtime, digest, *map(len, counted))
