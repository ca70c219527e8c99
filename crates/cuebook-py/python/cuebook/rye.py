"""The interface of Rye: `execute`, `search`, `load` and `sign` for directives, tools and knowledge, over a `Book`."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Callable, Mapping

from ._book import Book
from ._native import DIRECTIVE_INSTRUCTION
from .errors import CuebookError, ExecuteError, IntegrityError, ItemNotFoundError

__all__ = [
    "CuebookError",
    "DIRECTIVE_INSTRUCTION",
    "ExecuteError",
    "IntegrityError",
    "ItemNotFoundError",
    "execute",
    "load",
    "rye_execute",
    "rye_load",
    "rye_search",
    "rye_sign",
    "search",
    "sign",
]


@lru_cache(maxsize=64)
def _book(root: str) -> Book:
    return Book(root)


def _of(project_path: str | os.PathLike[str]) -> Book:
    return _book(os.path.abspath(project_path))


def _answer(project_path: str | os.PathLike[str], act: Callable[[Book], dict[str, Any]]) -> dict[str, Any]:
    """What an action answers. A project that cannot be opened is an answer too."""
    try:
        book = _of(project_path)
    except CuebookError as error:
        return {"status": "error", "error": error.message, "hint": error.hint, "metadata": {"error": error.details}}
    return act(book)


def execute(
    item_type: str,
    item_id: str,
    project_path: str | os.PathLike[str],
    parameters: Mapping[str, Any] | None = None,
    dry_run: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Runs a tool, or returns the instructions of a directive or the text of knowledge. The answer has a `status`, also for an error.

    `thread=True` runs a directive in a thread; `model` and `limit_overrides` go with it. `async` is a keyword of Python, so a
    background thread is asked for with `**{"async": True}`.
    """
    return _answer(project_path, lambda book: book.execute(item_type, item_id, parameters, dry_run=dry_run, **more))


def search(
    scope: str,
    query: str,
    project_path: str | os.PathLike[str],
    space: str = "all",
    limit: int = 10,
    offset: int = 0,
) -> dict[str, Any]:
    """Searches items. `scope` is a type, optionally with a folder."""
    return _answer(
        project_path, lambda book: book.search(query, scope=scope, space=space, limit=limit, offset=offset)
    )


def load(
    item_type: str,
    item_id: str,
    project_path: str | os.PathLike[str],
    source: str | None = None,
    destination: str | None = None,
    replace: bool = False,
) -> dict[str, Any]:
    """Reads an item's file. With a destination, also copies it."""
    more = {"source": source, "destination": destination, "replace": replace}
    given = {name: value for name, value in more.items() if value}
    return _answer(project_path, lambda book: book.load(item_type, item_id, **given))


def sign(
    item_type: str, item_id: str, project_path: str | os.PathLike[str], source: str = "project"
) -> dict[str, Any]:
    """Checks items and signs their files with your key."""
    return _answer(project_path, lambda book: book.sign(item_type, item_id, source=source))


rye_execute = execute
rye_search = search
rye_load = load
rye_sign = sign
