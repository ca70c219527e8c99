"""What every part of the interface of WINK uses: errors, keys, visibility, and classes that are made for a type."""

from __future__ import annotations

import enum
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

from .. import errors

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ParamsT = TypeVar("ParamsT", default=Any)
    ResultT = TypeVar("ResultT", default=Any)
    OutputT = TypeVar("OutputT", default=Any)
else:
    from typing import TypeVar

    ParamsT = TypeVar("ParamsT")
    ResultT = TypeVar("ResultT")
    OutputT = TypeVar("OutputT")

SectionPath = tuple[str, ...]
#: What JSON can hold.
JSONValue = Any


class SupportsDataclass(Protocol):
    """An object of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class SectionVisibility(enum.Enum):
    """How much of a section shows."""

    FULL = "full"
    SUMMARY = "summary"


class _Placed(errors.CuebookError):
    """An error that names a section, a type and a placeholder."""

    def __init__(
        self,
        message: str,
        *,
        section_path: SectionPath | None = None,
        dataclass_type: type | None = None,
        placeholder: str | None = None,
    ) -> None:
        place = {"section_path": tuple(section_path or ()), "dataclass_type": dataclass_type}
        super().__init__(message, **place, placeholder=placeholder)

    @property
    def section_path(self) -> SectionPath:
        """The keys from the root to the section."""
        return tuple(self.details.get("section_path") or ())

    @property
    def dataclass_type(self) -> type | None:
        """The type of the parameters."""
        return self.details.get("dataclass_type")

    @property
    def placeholder(self) -> str | None:
        """The name in the template, or the argument, that it is about."""
        return self.details.get("placeholder")


class PromptValidationError(_Placed, errors.PromptValidationError):
    """A tree, its parameters or its tools are invalid."""


class PromptRenderError(_Placed, errors.PromptRenderError):
    """A section cannot be rendered."""


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
        wanted = dict(requested_overrides)
        super().__init__(message, requested_overrides=wanted, reason=reason, section_keys=tuple(section_keys))

    def __str__(self) -> str:
        return f"Visibility expansion required for sections: {', '.join(self.section_keys)}. Reason: {self.reason}"


#: The form of keys and namespaces.
COMPONENT_KEY_PATTERN = re.compile(r"^[a-z0-9][a-z0-9._-]{0,63}$")


def normalize_component_key(key: str, *, owner: str) -> str:
    """A key without white space around it and in lower case. Any other form is a `ValueError`."""
    normal = key.strip().lower()
    if not normal:
        raise ValueError(f"{owner} key must be a non-empty string.")
    if not COMPONENT_KEY_PATTERN.match(normal):
        raise ValueError(f"{owner} key must match {COMPONENT_KEY_PATTERN.pattern}.")
    return normal


# Functions for `enabled` and `visibility`


def callable_accepts_session_kwarg(function: Callable[..., Any]) -> bool:
    """Whether a function has a keyword-only parameter `session`."""
    return any(one.name == "session" and one.kind is one.KEYWORD_ONLY for one in _parameters(function) or ())


@functools.lru_cache(maxsize=256)
def accepts_keyword(function: Callable[..., Any], name: str) -> bool:
    """Whether a function can be called with a keyword argument of this name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = _parameters(function)
    return found is None or any(one.name == name and one.kind in kinds or one.kind is one.VAR_KEYWORD for one in found)


@functools.lru_cache(maxsize=256)
def accepted_keywords(function: Callable[..., Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the names that a function takes as keyword arguments."""
    return tuple(name for name in names if accepts_keyword(function, name))


def callable_requires_positional_argument(function: Callable[..., Any]) -> bool:
    """Whether a function cannot be called without a positional argument."""
    found = _parameters(function)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return found is None or any(one.kind in kinds and one.default is one.empty for one in found)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _caller(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    takes_params = bool(_positional(function))
    takes_session = callable_accepts_session_kwarg(function)

    def call(params: Any, session: Any) -> Any:
        named = {"session": session} if takes_session else {}
        return function(*((params,) if takes_params else ()), **named)

    return call


def _positional(function: Callable[..., Any]) -> list[Any]:
    found = _parameters(function)
    if found is None:
        return [function]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [one for one in found if one.kind in kinds]


def normalize_enabled_predicate(
    enabled: Callable[..., bool] | None, params_type: type | None
) -> Callable[[Any, Any], bool] | None:
    """A function of parameters and session, whatever the given one takes."""
    if enabled is None:
        return None
    call = _caller(enabled)
    return lambda params, session: bool(call(params, session))


def normalize_visibility_selector(
    visibility: SectionVisibility | Callable[..., SectionVisibility], params_type: type | None
) -> Callable[[Any, Any], SectionVisibility]:
    """A function of parameters and session that gives the visibility."""
    if not callable(visibility):
        return lambda params, session: visibility
    call = _caller(visibility)

    def select(params: Any, session: Any) -> SectionVisibility:
        chosen = call(params, session)
        if not isinstance(chosen, SectionVisibility):
            raise TypeError("Visibility selector must return SectionVisibility.")
        return chosen

    return select


# Classes for a type


class Specialized:
    """A class that is made for a type, as in `MarkdownSection[Task]`. Its objects pickle if what they hold does."""

    _base: ClassVar[Any]
    _types: ClassVar[Any]

    @classmethod
    def _of(cls, types: Any, **members: Any) -> Any:
        more = {"_base": cls, "_types": types, "__module__": cls.__module__, "__qualname__": cls.__qualname__, **members}
        return type(cls.__name__, (cls,), more)

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        if "_types" in kind.__dict__:
            return (restored, (kind._base, (kind._types,), self.__dict__))
        return (restored, (kind, (), self.__dict__))


def restored(base: Any, types: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """The object of a pickled copy."""
    made = object.__new__(base[types[0]] if types else base)
    made.__dict__.update(state)
    return made


class GenericParamsSpecializer(Specialized, Generic[ParamsT]):
    """What is made for the type of its parameters."""

    #: The type of its parameters; a class may name it itself.
    _params_type: ClassVar[type | None] = None

    def __class_getitem__(cls, params: Any) -> Any:
        if isinstance(params, tuple):
            raise TypeError(f"{cls.__name__ or 'Component'}[...] expects a single type argument.")
        if isinstance(params, TypeVar):
            return super().__class_getitem__(params)  # type: ignore[misc]
        return cls._of(params, _params_type=params)

    @property
    def params_type(self) -> type | None:
        """The type of its parameters."""
        return self._params_type
