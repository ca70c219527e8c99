"""Dataclasses as JSON, JSON as dataclasses, and the JSON schema of a dataclass."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import types
import typing
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

_NUMBERS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_TEXTS = (datetime.datetime, datetime.date, datetime.time, uuid.UUID, decimal.Decimal, pathlib.PurePath)
_TRUTHS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def dump(value: Any, *, exclude_none: bool = True) -> Any:
    """A value as JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((_alias(one), getattr(value, one.name)) for one in dataclasses.fields(value))
        return {name: dump(one, exclude_none=exclude_none) for name, one in fields if one is not None or not exclude_none}
    if isinstance(value, enum.Enum):
        return dump(value.value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(name): dump(one, exclude_none=exclude_none) for name, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return [dump(one, exclude_none=exclude_none) for one in sorted(value, key=repr)]
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [dump(one, exclude_none=exclude_none) for one in value]
    return str(value)


def to_json(value: Any) -> str:
    """A value as the text of its JSON, without fields that are `None`."""
    return json.dumps(dump(value), ensure_ascii=False)


def clone(value: Any, **changes: Any) -> Any:
    """A copy of a dataclass and of everything in it, with other values for some fields."""
    return dataclasses.replace(copy.deepcopy(value), **changes) if changes else copy.deepcopy(value)


def _alias(one: dataclasses.Field[Any]) -> str:
    return str(one.metadata.get("alias") or one.name)


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError:
        # A name of a function's own scope cannot be resolved later.
        return {one.name: Any for one in dataclasses.fields(kind)}


# The schema


def schema(kind: Any, *, extra: Literal["ignore", "allow", "forbid"] = "ignore") -> dict[str, Any]:
    """The JSON schema of a dataclass."""
    if kind is None or kind is type(None):
        return {"title": "NoneType", "type": "object", "properties": {}, "additionalProperties": extra != "forbid"}
    hints = _hints(kind)
    properties, required = {}, []
    for one in dataclasses.fields(kind):
        said = one.metadata.get("description")
        found = _schema_of(hints[one.name], extra)
        properties[_alias(one)] = {**found, "description": said} if said else found
        if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
            required.append(_alias(one))
    made = {"title": kind.__name__, "type": "object", "properties": properties}
    return {**made, **({"required": required} if required else {}), "additionalProperties": extra != "forbid"}


def _schema_of(kind: Any, extra: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _schema_of(arguments[0], extra)
    if kind in _NUMBERS:
        return {"type": _NUMBERS[kind]}
    if kind is type(None):
        return {"type": "null"}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return schema(kind, extra=extra)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [dump(one.value) for one in kind]}
    if isinstance(kind, type) and issubclass(kind, _TEXTS):
        return {"type": "string"}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema_of(one, extra) for one in arguments]}
    if origin in (dict, Mapping) or kind is dict:
        return {"type": "object", **({"additionalProperties": _schema_of(arguments[1], extra)} if arguments else {})}
    if origin in (list, tuple, set, frozenset, Sequence) or kind in (list, tuple, set, frozenset):
        items = [one for one in arguments if one is not Ellipsis]
        return {"type": "array", **({"items": _schema_of(items[0], extra)} if items else {})}
    return {}


# Reading


def parse(kind: Any, data: Mapping[str, Any], *, extra: Literal["ignore", "forbid"] = "ignore") -> Any:
    """An object of a dataclass. What does not fit is a `TypeError` or `ValueError` that begins with the field."""
    hints, given = _hints(kind), {}
    known: set[str] = set()
    for one in dataclasses.fields(kind):
        name = _alias(one) if _alias(one) in data else one.name
        known.update((_alias(one), one.name))
        if name in data:
            given[one.name] = _read(hints[one.name], data[name], one.name, extra)
        elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
            raise ValueError(f"Missing required field: '{_alias(one)}'")
    more = sorted(set(data) - known)
    if more and extra == "forbid":
        raise ValueError(f"Extra keys not permitted: {more}")
    return kind(**given)


def _read(kind: Any, value: Any, path: str, extra: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _read(arguments[0], value, path, extra)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _read_union(arguments, value, path, extra)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{path}: expected one of {list(arguments)}")
        return value
    if value is None:
        raise TypeError(f"{path}: value cannot be None")
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise TypeError(f"{path}: expected mapping for dataclass field")
        try:
            return parse(kind, value, extra=extra)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path}.{error}") from error
    if origin in (dict, Mapping) or kind is dict:
        if not isinstance(value, Mapping):
            raise TypeError(f"{path}: expected mapping")
        inner = arguments[1] if arguments else Any
        return {name: _read(inner, one, f"{path}[{name}]", extra) for name, one in value.items()}
    if origin in (list, tuple, set, frozenset, Sequence) or kind in (list, tuple, set, frozenset):
        items = [value] if isinstance(value, str) else list(value)
        inner = next((one for one in arguments if one is not Ellipsis), Any)
        read = [_read(inner, one, f"{path}[{at}]", extra) for at, one in enumerate(items)]
        made: Any = origin or kind
        return read if made in (list, Sequence) else made(read)
    return _read_plain(kind, value, path)


def _read_union(arguments: tuple[Any, ...], value: Any, path: str, extra: Any) -> Any:
    if type(None) in arguments and (value is None or (isinstance(value, str) and not value.strip())):
        return None
    failed: Exception = TypeError(f"{path}: no type fits")
    for one in arguments:
        if one is not type(None):
            try:
                return _read(one, value, path, extra)
            except (TypeError, ValueError) as error:
                failed = error
    raise failed


def _read_plain(kind: Any, value: Any, path: str) -> Any:
    if kind is bool:
        truth = value if isinstance(value, bool) else _TRUTHS.get(str(value).strip().lower())
        if truth is None:
            raise TypeError(f"{path}: Cannot interpret {value!r} as bool")
        return truth
    if not isinstance(kind, type) or (kind is not float and isinstance(value, kind)):
        return value
    if issubclass(kind, (datetime.datetime, datetime.date, datetime.time)):
        return kind.fromisoformat(value)
    try:
        return typing.cast(Any, kind)(value)
    except (TypeError, ValueError, decimal.InvalidOperation) as error:
        raise type(error)(f"{path}: {error}") from error
