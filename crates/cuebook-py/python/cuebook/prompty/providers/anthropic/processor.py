"""Reads responses of Anthropic."""

from __future__ import annotations

from typing import Any

from .._replies import ToolCall, members, read

__all__ = ["AnthropicProcessor", "ToolCall"]


class AnthropicProcessor:
    """Reads responses: a text, the outputs, or a list of `ToolCall`s."""

    def process(self, agent: Any, response: Any) -> Any:
        """What a response says."""
        return _process_response(agent, response)

    async def process_async(self, agent: Any, response: Any) -> Any:
        """What a response says."""
        return _process_response(agent, response)


def _process_response(agent: Any, response: Any) -> Any:
    content = members(response, "content").get("content")
    if not isinstance(content, list):
        return response
    blocks = [members(block, "type", "text", "id", "name", "input") for block in content]
    texts = "".join(block.get("text", "") for block in blocks if block.get("type") == "text")
    body = {"type": "message", "role": "assistant", "content": blocks, **members(response, "stop_reason")}
    return read("anthropic", "chat", body, bool(agent.outputs), texts or response)
