"""Reads responses of OpenAI."""

from __future__ import annotations

from typing import Any

from ...._rendered import _body
from ....errors import ReplyError
from .._replies import ToolCall, members, read

__all__ = ["OpenAIProcessor", "ToolCall"]


class OpenAIProcessor:
    """Reads responses: a text, the outputs, or a list of `ToolCall`s."""

    def process(self, agent: Any, response: Any) -> Any:
        """What a response says."""
        return _process_response(response, agent)

    async def process_async(self, agent: Any, response: Any) -> Any:
        """What a response says."""
        return _process_response(response, agent)


def _process_response(response: Any, agent: Any = None) -> Any:
    if getattr(response, "object", None) == "response":
        return _process_responses_api(response, agent)
    body = _body(response)
    if not isinstance(body, dict):
        return response
    api_type = agent.model.api_type if agent is not None and agent.model else None
    return read("openai", api_type or "chat", body, _has_outputs(agent), response)


def _process_responses_api(response: Any, agent: Any = None) -> Any:
    error = getattr(response, "error", None)
    if error is not None:
        raise ReplyError(str(getattr(error, "message", error)), code="CB606")
    output = [_item(one) for one in response.output or []]
    text = getattr(response, "output_text", None)
    if text and not output:
        output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
    if not output:
        return response
    body = {"object": "response", "status": "completed", "output": output}
    return read("openai", "responses", body, _has_outputs(agent), text or response)


def _item(item: Any) -> dict[str, Any]:
    found = members(item, "type", "role", "call_id", "name", "arguments")
    if found.get("type") == "function_call":
        return {"call_id": "", "name": "", "arguments": "", **found}
    return {**found, "content": [members(part, "type", "text", "refusal") for part in members(item, "content").get("content", [])]}


def _has_outputs(agent: Any) -> bool:
    return agent is not None and bool(agent.outputs)
