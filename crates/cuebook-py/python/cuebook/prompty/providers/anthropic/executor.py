"""Sends requests with the package `anthropic`."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ....errors import InvokerError
from ..._parts import Message, ReferenceConnection, TextPart
from ..._requests import ANY, body_of, request, without
from ...core.connections import get_connection
from ...core.types import AsyncPromptyStream, PromptyStream
from ..openai.executor import client_arguments

__all__ = ["AnthropicExecutor"]


class AnthropicExecutor:
    """Sends requests to Anthropic."""

    def execute(self, agent: Any, messages: Sequence[Mapping[str, Any]]) -> Any:
        """Sends a request and returns the response, or a `PromptyStream`."""
        body = self._prepare(agent, messages)
        response = self._resolve_client(agent).messages.create(**body)
        return PromptyStream(type(self).__name__, iter(response)) if body.get("stream") else response

    async def execute_async(self, agent: Any, messages: Sequence[Mapping[str, Any]]) -> Any:
        """Like `execute`, with the asynchronous client."""
        body = self._prepare(agent, messages)
        response = await self._resolve_client(agent, is_async=True).messages.create(**body)
        return AsyncPromptyStream(type(self).__name__, response) if body.get("stream") else response

    def _prepare(self, agent: Any, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        kind = (agent.model.api_type if agent.model else None) or "chat"
        if kind != "chat":
            raise InvokerError(f"Unsupported apiType: {kind}", code="CB507", key=kind, hint="write `apiType: chat`")
        return _build_chat_args(agent, messages)

    def _resolve_client(self, agent: Any, *, is_async: bool = False) -> Any:
        connection = agent.model.connection if agent.model else None
        if isinstance(connection, ReferenceConnection):
            return get_connection(connection.name or "")
        import anthropic

        return (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(**client_arguments(agent))


def _build_chat_args(agent: Any, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return dict(request(agent, messages, "anthropic", "chat"))


def _message_to_wire(message: Mapping[str, Any]) -> dict[str, Any]:
    if message.get("role") == "system":
        # A request has it beside the messages.
        return {**_message_to_wire({**message, "role": "user"}), "role": "system"}
    return dict(body_of("anthropic", "chat", [message])["messages"][0])


def _part_to_wire(part: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_message_to_wire(Message("user", [TextPart(value="."), part]))["content"][1])


def _build_options(agent: Any) -> dict[str, Any]:
    body = request(agent, ANY, "anthropic", "chat")
    return without(body, "model", "messages", "system", "tools", "max_tokens", "output_config")


def _tools_to_wire(agent: Any) -> list[dict[str, Any]]:
    return list(request(agent, ANY, "anthropic", "chat").get("tools") or [])


def _output_schema_to_wire(agent: Any) -> dict[str, Any] | None:
    return request(agent, ANY, "anthropic", "chat").get("output_config")
