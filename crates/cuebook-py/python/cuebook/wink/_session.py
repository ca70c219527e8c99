"""A session: values by type, which events change."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ._base import SectionPath, SectionVisibility


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

    def without_override(self, path: SectionPath) -> VisibilityOverrides:
        """The same without one."""
        return VisibilityOverrides({known: one for known, one in self.overrides.items() if known != path})


@dataclass(frozen=True)
class SetVisibilityOverride:
    """The event that sets the visibility of a section."""

    path: SectionPath
    visibility: SectionVisibility


@dataclass(frozen=True)
class ClearVisibilityOverride:
    """The event that forgets what is set for a section."""

    path: SectionPath


@dataclass(frozen=True)
class ClearAllVisibilityOverrides:
    """The event that forgets what is set for all sections."""


class SessionProtocol(Protocol):
    """What selectors and tools get as a session."""

    def __getitem__(self, kind: type) -> Any:
        """The values of a type."""

    def dispatch(self, event: Any) -> Any:
        """Applies an event."""


class InProcessDispatcher:
    """Calls functions for events of their type."""

    def __init__(self) -> None:
        self._handlers: dict[type, list[Callable[[Any], Any]]] = {}

    def subscribe(self, event_type: type, handler: Callable[[Any], Any]) -> None:
        """Calls a function for each event of a type."""
        self._handlers.setdefault(event_type, []).append(handler)

    def dispatch(self, event: Any) -> None:
        """Calls the functions for an event."""
        for handler in self._handlers.get(type(event), []):
            handler(event)


class Slot:
    """The values of one type."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def seed(self, value: Any) -> None:
        """Replaces the values."""
        self._values = list(value) if isinstance(value, (list, tuple)) else [value]

    def append(self, value: Any) -> None:
        """Adds a value."""
        self._values.append(value)

    def clear(self) -> None:
        """Removes the values."""
        self._values = []

    def latest(self) -> Any:
        """The last value, or `None`."""
        return self._values[-1] if self._values else None

    def all(self) -> tuple[Any, ...]:
        """Every value, oldest first."""
        return tuple(self._values)


Reducer = Callable[["Session", Any], None]


class Session:
    """Values by type: `session[VisibilityOverrides].seed(...)`."""

    def __init__(
        self,
        *,
        dispatcher: Any = None,
        session_id: Any = None,
        created_at: Any = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.session_id, self.created_at, self.tags = session_id, created_at, dict(tags or {})
        self._slots: dict[type, Slot] = {}
        self._reducers: dict[type, list[Reducer]] = {}
        self._register_builtin_reducers()

    def __getitem__(self, kind: type) -> Any:
        return self._slots.setdefault(kind, Slot())

    def on(self, event_type: type, reducer: Reducer) -> None:
        """Changes the session with a function for each event of a type."""
        self._reducers.setdefault(event_type, []).append(reducer)

    def dispatch(self, event: Any) -> None:
        """Applies an event."""
        for reducer in self._reducers.get(type(event), []):
            reducer(self, event)

    def clone(self, *, dispatcher: Any = None, **more: Any) -> Session:
        """A copy with the same values."""
        kept = {"session_id": self.session_id, "created_at": self.created_at, "tags": self.tags, **more}
        made = Session(dispatcher=dispatcher or self.dispatcher, **kept)
        made._slots = {kind: copy.copy(slot) for kind, slot in self._slots.items()}
        for slot in made._slots.values():
            slot._values = list(slot._values)
        made._reducers = {kind: list(known) for kind, known in self._reducers.items()}
        return made

    def _register_builtin_reducers(self) -> None:
        if SetVisibilityOverride not in self._reducers:
            register_visibility_reducers(self)


def register_visibility_reducers(session: Session) -> None:
    """Lets events change the visibility of sections."""

    def change(edit: Callable[[VisibilityOverrides, Any], VisibilityOverrides]) -> Reducer:
        return lambda of, event: of[VisibilityOverrides].seed(edit(_overrides(of), event))

    session.on(SetVisibilityOverride, change(lambda known, event: known.with_override(event.path, event.visibility)))
    session.on(ClearVisibilityOverride, change(lambda known, event: known.without_override(event.path)))
    session.on(ClearAllVisibilityOverrides, change(lambda known, event: VisibilityOverrides()))


def _overrides(session: Any) -> VisibilityOverrides:
    return session[VisibilityOverrides].latest() or VisibilityOverrides()


def get_session_visibility_override(session: Any, path: SectionPath) -> SectionVisibility | None:
    """What a session sets for a section."""
    return None if session is None else _overrides(session).get(path)


# Resources


@dataclass(frozen=True)
class Binding:
    """How a resource is made: `provider` gets what finds other resources."""

    protocol: type
    provider: Callable[[Any], Any]


@dataclass(frozen=True)
class ResourceRegistry:
    """Resources by type."""

    bindings: Mapping[type, Any] = field(default_factory=dict)

    @classmethod
    def build(cls, given: Mapping[type, Any]) -> ResourceRegistry:
        """Resources, or how they are made. `None` is left out."""
        return cls({kind: one for kind, one in given.items() if one is not None})

    @classmethod
    def of(cls, bindings: Iterable[Binding]) -> ResourceRegistry:
        """Resources that are made when they are asked for."""
        return cls({one.protocol: one for one in bindings})

    def __contains__(self, kind: object) -> bool:
        return kind in self.bindings

    def merge(self, other: ResourceRegistry, *, strict: bool = True) -> ResourceRegistry:
        """Those of both. Of two for one type the other's is kept; with `strict` it is an error."""
        twice = [kind.__name__ for kind in self.bindings if kind in other.bindings] if strict else []
        if twice:
            raise ValueError(f"two resources for {', '.join(twice)}")
        return dataclasses.replace(self, bindings={**self.bindings, **other.bindings})

    def open(self) -> ResourceScope:
        """Finds them inside a `with`."""
        return ResourceScope(self)


class ResourceScope:
    """Finds resources, each made at most once."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._made: dict[type, Any] = {}

    def __enter__(self) -> ResourceScope:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._made.clear()

    def get(self, kind: type) -> Any:
        """A resource; a missing one is a `LookupError`."""
        found = self.get_optional(kind)
        if found is None:
            raise LookupError(f"no resource is bound for {kind.__name__}")
        return found

    def get_optional(self, kind: type, default: Any = None) -> Any:
        """A resource, or the default."""
        found = self._registry.bindings.get(kind)
        if not isinstance(found, Binding):
            return default if found is None else found
        if kind not in self._made:
            self._made[kind] = found.provider(self)
        return self._made[kind]


class PromptResources:
    """The resources of a prompt, which are there inside `with prompt.resources:`."""

    def __init__(self, collect: Callable[[], ResourceRegistry]) -> None:
        self._collect = collect
        self._scope: ResourceScope | None = None

    def __enter__(self) -> PromptResources:
        if self._scope is not None:
            raise RuntimeError("Resource context already entered.")
        self._scope = self._collect().open()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._scope = None

    def tool_scope(self) -> ResourceScope:
        """What a tool finds resources with."""
        self._open()
        return self._collect().open()

    def get(self, kind: type) -> Any:
        """A resource; a missing one is a `LookupError`."""
        return self._open().get(kind)

    def get_optional(self, kind: type, default: Any = None) -> Any:
        """A resource, or the default."""
        return self._open().get_optional(kind, default)

    def _open(self) -> ResourceScope:
        if self._scope is None:
            raise RuntimeError("Resources accessed outside context. Use 'with prompt.resources:' first.")
        return self._scope
