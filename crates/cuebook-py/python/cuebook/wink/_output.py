"""Reads the reply of a model into a dataclass."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .. import errors
from ._rendering import RenderedPrompt
from ._serde import parse

_FENCE = re.compile(r"```json\s*\n(.*?)```", re.IGNORECASE | re.DOTALL)


class OutputParseError(errors.OutputParseError):
    """A reply does not match what the prompt declares."""

    def __init__(self, message: str, *, dataclass_type: type | None = None) -> None:
        super().__init__(message, dataclass_type=dataclass_type)

    @property
    def dataclass_type(self) -> type | None:
        """The dataclass that was to be read."""
        return self.details.get("dataclass_type")


def parse_structured_output(reply: str, rendered: RenderedPrompt[Any]) -> Any:
    """An object of the dataclass that the prompt declares, or a list of them."""
    config = rendered.structured_output
    if config is None:
        raise OutputParseError("Prompt does not declare structured output.")
    kind, extra = config.dataclass_type, "ignore" if config.allow_extra_keys else "forbid"
    try:
        payload = _payload(reply)
        if config.container == "object":
            if not isinstance(payload, Mapping):
                raise ValueError("Expected top-level JSON object.")
            return parse(kind, payload, extra=extra)  # type: ignore[arg-type]
        if config.container == "array":
            return [parse(kind, one, extra=extra) for one in _items(payload)]  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise OutputParseError(str(error), dataclass_type=kind) from error
    raise OutputParseError("Unknown output container declared.", dataclass_type=kind)


def _items(payload: Any) -> list[Any]:
    items = payload.get("items") if isinstance(payload, Mapping) else payload
    if not isinstance(items, list):
        raise ValueError("Expected top-level JSON array.")
    for index, one in enumerate(items):
        if not isinstance(one, Mapping):
            raise ValueError(f"Array item at index {index} is not an object.")
    return items


def _payload(reply: str) -> Any:
    fenced = _FENCE.search(reply)
    if fenced is not None:
        try:
            return json.loads(fenced.group(1).strip())
        except ValueError as error:
            raise ValueError("Failed to decode JSON from fenced code block.") from error
    decoder, text = json.JSONDecoder(), reply.strip()
    starts = [0] if text else []
    starts += [at for at, character in enumerate(text) if character in "{["]
    for at in starts:
        try:
            payload, end = decoder.raw_decode(text, at)
        except ValueError:
            continue
        if at in starts[1:] or end == len(text):
            return payload
    raise ValueError("No JSON object or array found in assistant message.")
