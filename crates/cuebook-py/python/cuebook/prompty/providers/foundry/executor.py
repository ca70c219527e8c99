"""Sends requests to Azure OpenAI and Azure AI Foundry with the package `openai`."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from ....errors import InvokerError
from ..._parts import FoundryConnection
from ..openai.executor import _BaseExecutor

__all__ = ["FoundryExecutor"]

_VERSION = "2024-10-21"
_SCOPE = "https://cognitiveservices.azure.com/.default"


class FoundryExecutor(_BaseExecutor):
    """Sends requests with the key of a connection, or with the identity of the program for a connection `kind: foundry`."""

    def _client(self, agent: Any, is_async: bool) -> Any:
        import openai

        connection = (agent.model.connection if agent.model else None) or {}
        endpoint = str(connection.get("endpoint") or "")
        if isinstance(connection, FoundryConnection):
            identity = import_module("azure.identity")
            token = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _SCOPE)
            return (openai.AsyncOpenAI if is_async else openai.OpenAI)(base_url=_address(endpoint), api_key=token)
        if not connection.get("apiKey"):
            hint = "add `apiKey` to the connection, or register a client with `register_connection`"
            raise InvokerError("the connection has no apiKey", code="CB507", hint=hint)
        made = openai.AsyncAzureOpenAI if is_async else openai.AzureOpenAI
        return made(azure_endpoint=endpoint, api_key=connection["apiKey"], api_version=_VERSION)


def _address(endpoint: str) -> str:
    # A project has OpenAI's interfaces at the address of its resource.
    host = (urlsplit(endpoint).hostname or "").replace(".services.ai.azure.com", ".openai.azure.com")
    return f"https://{host}/openai/v1"
