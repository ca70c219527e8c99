"""What responses say, for the processors of all providers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._native import read_reply
from ...errors import ReplyError


@dataclass
class ToolCall:
    """A call of a tool: `arguments` is JSON."""

    id: str
    name: str
    arguments: str


def read(provider: str, api_type: str, body: dict[str, Any], has_outputs: bool, otherwise: Any) -> Any:
    """A text, the outputs or the calls of tools; `otherwise` if the response has none of them."""
    try:
        said = read_reply(provider, api_type, body, has_outputs)
    except ReplyError:
        return otherwise
    if said["kind"] == "tool_calls":
        return [ToolCall(one["id"], one["name"], one["arguments"]) for one in said["value"]]
    return said["value"]


def members(value: Any, *names: str) -> dict[str, Any]:
    """Attributes or members of a value, as far as it has them."""
    if isinstance(value, dict):
        return {name: value[name] for name in names if value.get(name) is not None}
    found = {name: getattr(value, name, None) for name in names}
    return {name: one for name, one in found.items() if one is not None}
