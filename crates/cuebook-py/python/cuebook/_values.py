"""Values of Python that the native half does not know, as simpler ones."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _stop

# These are missing values of pandas and Polars, which need not be installed.
_MISSING = {"NAType", "NaTType"}


def simplify(value: Any) -> Any:
    """A simpler value that means the same, or `NotImplemented`."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bool):
        return bool(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return _exactly(kind, value)
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return path if isinstance(path, str) else os.fsdecode(path)
    return _of_parts(value)


def _of_parts(value: Any) -> Any:
    if isinstance(value, type):
        return NotImplemented
    if isinstance(value, dict):
        # Some dicts have every attribute.
        return dict(value)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    if callable(getattr(value, "_asdict", None)):
        return value._asdict()
    if hasattr(value, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in value.__attrs_attrs__}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    return NotImplemented


def _exactly(kind: type, value: Any) -> Any:
    # A subclass may print in another way; a template sees the plain value.
    return kind.__str__(value) if kind is str else kind(value)


def settle(answer: Any) -> Any:
    """What an asynchronous function returns in the end; anything else is returned as it is."""
    if not inspect.isawaitable(answer):
        return answer

    stop = _stop.stop()

    async def wait() -> Any:
        return await (answer if stop is None else stop.wait(answer))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    return _in_thread(lambda: asyncio.run(wait()))


def _in_thread(work: Callable[[], Any]) -> Any:
    # A loop runs in this thread already, and it cannot run a second one.
    done: list[Any] = []

    def run() -> None:
        try:
            done.append((work(), None))
        except BaseException as error:
            done.append((None, error))

    thread = threading.Thread(target=run, name="cuebook hook")
    thread.start()
    thread.join()
    answer, error = done[0]
    if error is not None:
        raise error
    return answer


def call_tool(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Calls a tool with its arguments and returns the text that the model gets."""
    from ._native import plain

    answer = settle(function(**arguments))
    if isinstance(answer, str):
        return answer
    return json.dumps(plain(answer, "result"), ensure_ascii=False)
