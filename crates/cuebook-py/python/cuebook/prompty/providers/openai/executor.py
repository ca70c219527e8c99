"""Sends requests with the package `openai`."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ....errors import InvokerError
from ..._parts import Message, ReferenceConnection, TextPart
from ..._requests import ANY, body_of, request, schema_of, without
from ...core.connections import get_connection
from ...core.types import AsyncPromptyStream, PromptyStream

__all__ = ["OpenAIExecutor"]

#: Where the client has the call of each kind of request.
_CALLS = {
    "chat": "chat.completions.create",
    "responses": "responses.create",
    "embedding": "embeddings.create",
    "image": "images.generate",
}
#: The member of a body that may be given as it is, instead of messages.
_DATA = {"embedding": "input", "image": "prompt"}


class _BaseExecutor:
    """What the executors for interfaces of OpenAI share."""

    def execute(self, agent: Any, messages: Any) -> Any:
        """Sends a request and returns the response, or a `PromptyStream`."""
        kind, body = self._prepare(agent, messages)
        return self._send(self._resolve_client(agent), kind, body)

    async def execute_async(self, agent: Any, messages: Any) -> Any:
        """Like `execute`, with the asynchronous client."""
        kind, body = self._prepare(agent, messages)
        return await self._send_async(self._resolve_client(agent, is_async=True), kind, body)

    def _prepare(self, agent: Any, messages: Any) -> tuple[str, dict[str, Any]]:
        kind = str((agent.model.api_type if agent.model else None) or "chat")
        if kind not in _CALLS:
            hint = f"write one of {', '.join(_CALLS)}"
            raise InvokerError(f"Unsupported apiType: {kind}", code="CB507", key=kind, hint=hint)
        given = _DATA.get(kind)
        if given is None or _are_messages(messages):
            return kind, dict(request(agent, messages, "openai", kind))
        return kind, {**request(agent, ANY, "openai", kind), given: messages}

    def _build_chat_args(self, agent: Any, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(request(agent, messages, "openai", "chat"))

    def _build_responses_args(self, agent: Any, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(request(agent, messages, "openai", "responses"))

    def _execute_responses(self, client: Any, agent: Any, messages: Sequence[Mapping[str, Any]]) -> Any:
        return self._send(client, "responses", self._build_responses_args(agent, messages))

    async def _execute_responses_async(self, client: Any, agent: Any, messages: Sequence[Mapping[str, Any]]) -> Any:
        return await self._send_async(client, "responses", self._build_responses_args(agent, messages))

    def _send(self, client: Any, kind: str, body: dict[str, Any]) -> Any:
        response = _call(client, kind)(**body)
        return PromptyStream(type(self).__name__, iter(response)) if body.get("stream") else response

    async def _send_async(self, client: Any, kind: str, body: dict[str, Any]) -> Any:
        response = await _call(client, kind)(**body)
        return AsyncPromptyStream(type(self).__name__, response) if body.get("stream") else response

    def _resolve_client(self, agent: Any, *, is_async: bool = False) -> Any:
        connection = agent.model.connection if agent.model else None
        if isinstance(connection, ReferenceConnection):
            return get_connection(connection.name or "")
        return self._client(agent, is_async)

    def _client(self, agent: Any, is_async: bool) -> Any:
        raise NotImplementedError


class OpenAIExecutor(_BaseExecutor):
    """Sends requests to OpenAI, or to what speaks its interfaces at the connection's `endpoint`."""

    def _client(self, agent: Any, is_async: bool) -> Any:
        import openai

        return (openai.AsyncOpenAI if is_async else openai.OpenAI)(**self._client_kwargs(agent))

    def _client_kwargs(self, agent: Any) -> dict[str, Any]:
        return client_arguments(agent)


def client_arguments(agent: Any) -> dict[str, Any]:
    """The key and the address of a prompt's connection."""
    connection = (agent.model.connection if agent.model else None) or {}
    given = {"api_key": connection.get("apiKey"), "base_url": connection.get("endpoint")}
    return {name: value for name, value in given.items() if value}


def _call(client: Any, kind: str) -> Any:
    for name in _CALLS[kind].split("."):
        client = getattr(client, name)
    return client


def _are_messages(given: Any) -> bool:
    return isinstance(given, Sequence) and bool(given) and all(isinstance(one, Mapping) for one in given)


def _message_to_wire(message: Mapping[str, Any]) -> dict[str, Any]:
    return dict(body_of("openai", "chat", [message])["messages"][0])


def _part_to_wire(part: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_message_to_wire(Message("user", [TextPart(value="."), part]))["content"][1])


def _message_to_responses_input(message: Mapping[str, Any]) -> dict[str, Any]:
    return dict(body_of("openai", "responses", [message])["input"][0])


def _build_options(agent: Any) -> dict[str, Any]:
    return without(request(agent, ANY, "openai", "chat"), "model", "messages", "tools", "response_format")


def _build_responses_options(agent: Any) -> dict[str, Any]:
    return without(request(agent, ANY, "openai", "responses"), "model", "input", "instructions", "tools", "text")


def _tools_to_wire(agent: Any) -> list[dict[str, Any]] | None:
    return request(agent, ANY, "openai", "chat").get("tools")


def _responses_tools_to_wire(agent: Any) -> list[dict[str, Any]] | None:
    return request(agent, ANY, "openai", "responses").get("tools")


def _schema_to_wire(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return schema_of(parameters)


def _property_to_json_schema(given: Mapping[str, Any]) -> dict[str, Any]:
    return dict(schema_of([given])["properties"][given["name"]])


def _output_schema_to_wire(agent: Any) -> dict[str, Any] | None:
    return request(agent, ANY, "openai", "chat").get("response_format")


def _output_schema_to_responses_wire(agent: Any) -> dict[str, Any] | None:
    return request(agent, ANY, "openai", "responses").get("text")
