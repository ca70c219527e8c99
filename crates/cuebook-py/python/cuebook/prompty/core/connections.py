"""Clients under names that files refer to: `connection: {kind: reference, name: NAME}`."""

from __future__ import annotations

from typing import Any

from ...errors import InvokerError

__all__ = ["clear_connections", "get_connection", "register_connection"]

_clients: dict[str, Any] = {}


def register_connection(name: str, *, client: Any) -> None:
    """Registers a client, such as `openai.OpenAI()`, under a name."""
    if not name or client is None:
        raise ValueError("a connection needs a name and a client")
    _clients[name] = client


def get_connection(name: str) -> Any:
    """The client of a name."""
    if name not in _clients:
        hint = f"call `register_connection({name!r}, client=...)`"
        raise InvokerError(f"no connection is registered under the name `{name}`", code="CB507", key=name, hint=hint)
    return _clients[name]


def clear_connections() -> None:
    """Forgets every client."""
    _clients.clear()
