"""The interface of Rumi's prompt module: a `PromptManager` with six asynchronous methods, over a `Book`."""

from __future__ import annotations

import os
from typing import Any, Mapping

from ._book import Book
from ._stop import in_thread
from .errors import (
    CuebookError,
    PromptApprovalRequired,
    PromptConflictError,
    PromptHookError,
    PromptNotFoundError,
    PromptRenderError,
    PromptValidationError,
)

__all__ = [
    "CuebookError",
    "PromptApprovalRequired",
    "PromptConflictError",
    "PromptHookError",
    "PromptManager",
    "PromptNotFoundError",
    "PromptRenderError",
    "PromptValidationError",
]

_DIRECT = ("model", "session_id", "workspace_path", "session_state", "language")


class PromptManager:
    """Renders the prompts of a project. Unlike `Book.render`, it takes variables that a prompt does not have, and ignores them.

    >>> import asyncio
    >>> from cuebook.rumi import PromptManager
    >>> manager = PromptManager(".")
    >>> text = asyncio.run(manager.render("general_system", {"agent_name": "Rumi"}))
    >>> "Rumi" in text
    True
    """

    def __init__(self, root: str | os.PathLike[str] | Book = ".") -> None:
        self.book = root if isinstance(root, Book) else Book(root)

    async def render(
        self,
        prompt_id: str,
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> str:
        """Renders a prompt and returns its text."""
        rendered = await self.book.render_async(
            prompt_id, variables=dict(variables or {}), context=_context(context), allow_unknown=True
        )
        return rendered.text

    async def get_definition(self, prompt_id: str) -> dict[str, Any]:
        """The definition of a prompt: metadata, variables, permissions, limits."""
        return await in_thread(self.book.show, prompt_id)

    async def list_prompts(self, type_filter: str | None = None, tag_filter: str | None = None) -> list[dict[str, Any]]:
        """Every prompt, or those of a type or with a tag."""
        return await in_thread(lambda: self.book.list(type=type_filter, tag=tag_filter))

    async def list_candidates(self, prompt_id: str) -> list[dict[str, Any]]:
        """Every place that offers an id."""
        return await in_thread(self.book.candidates, prompt_id)

    async def set_resolution(self, prompt_id: str, source: str) -> None:
        """Records which place is meant."""
        await in_thread(self.book.resolve, prompt_id, source)

    async def validate(self, prompt_id: str, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Whether variables fit a prompt: `valid`, and the `errors`."""
        problems = await in_thread(
            lambda: self.book.validate(prompt_id, variables=dict(variables or {}))
        )
        return {"valid": not problems, "errors": problems}


def _context(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The part of a caller's context that a render knows."""
    given = given or {}
    known = {name: given[name] for name in _DIRECT if given.get(name) is not None}
    session = given.get("session")
    if session is not None:
        known["session"] = session if isinstance(session, Mapping) else _of_object(session)
        for name in ("session_id", "workspace_path"):
            if name in known["session"]:
                known.setdefault(name, known["session"][name])
    agent = {name: given[name] for name in ("agent_id", "prompt_variables") if given.get(name) is not None}
    if given.get("agent_name") is not None:
        agent["name"] = given["agent_name"]
    if isinstance(given.get("agent"), Mapping):
        agent = {**given["agent"], **agent}
    if agent:
        known["agent"] = agent
    if "workspace_path" in known:
        known["workspace_path"] = os.fspath(known["workspace_path"])
    return known


def _of_object(session: Any) -> dict[str, Any]:
    # A session is an object of the program. What a hook may know of it are its plain values.
    fields = getattr(session, "__dict__", {})
    plain = (str, int, float, bool, list, dict, type(None))
    return {name: value for name, value in fields.items() if not name.startswith("_") and isinstance(value, plain)}
