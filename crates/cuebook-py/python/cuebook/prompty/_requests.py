"""Bodies of requests from messages that a program passes. Prompty's executors make them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .._rendered import Wire
from ..errors import UsageError
from ._parts import Message, Record

if TYPE_CHECKING:
    from . import Prompty


def request(
    agent: Prompty, messages: Sequence[Mapping[str, Any]], provider: str | None = None, api_type: str | None = None
) -> Wire:
    """The body of a request with these messages, and with the model, the tools and the outputs of a prompt."""
    if isinstance(messages, (str, Mapping)):
        hint = "pass a list of messages, such as that of `prepare`"
        raise UsageError(f"messages must be a list, not {type(messages).__name__}", code="CB407", hint=hint)
    model = agent.model or Record()
    body, notes = agent.book._native.body(
        str(agent.path),
        [_readable(message) for message in messages],
        _plain(without(model, "connection")),
        provider or model.provider or "openai",
        api_type or (model.api_type if provider is None else None),
    )
    return Wire(body, notes)


def _readable(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return message
    # Anthropic's name for the call that a tool answers.
    metadata = dict(message.get("metadata") or {})
    if "tool_use_id" in metadata:
        metadata.setdefault("tool_call_id", metadata.pop("tool_use_id"))
    return dict(_plain({**message, "metadata": metadata}))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


@cache
def _prompt_of(tools: str) -> Prompty:
    import json

    from . import Prompty

    return Prompty.load({"name": "request", "model": "model", "tools": json.loads(tools)})


def body_of(provider: str, api_type: str, messages: Sequence[Mapping[str, Any]]) -> Wire:
    """The body of a request with nothing but messages."""
    return request(_prompt_of("[]"), messages, provider, api_type)


def schema_of(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON Schema of parameters, as a function's tool has it."""
    import json

    agent = _prompt_of(json.dumps([{"name": "tool", "kind": "function", "parameters": _plain(list(parameters))}]))
    return dict(request(agent, [Message("user", [{"kind": "text", "value": "."}])], "openai", "chat")["tools"][0]["function"]["parameters"])


def without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A body without some of its members."""
    return {name: value for name, value in body.items() if name not in names}


#: A message where only the rest of a body is wanted.
ANY = [Message("user", [{"kind": "text", "value": "."}])]
