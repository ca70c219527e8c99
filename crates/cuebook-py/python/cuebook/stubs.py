"""Typed prompts: a module in which `Book.render` and `Book.run` know the prompts of a project, their variables and their outputs.

`cuebook stubs --out prompts.py` writes it, and so does `python -m cuebook.stubs PROJECT > prompts.py`. With `from prompts import Book`, mypy
and pyright report a missing variable, a wrong type and an unknown id.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ._book import Book
from .errors import CuebookError

__all__ = ["main", "write"]


def write(book: Book) -> str:
    """The module for the prompts of a book."""
    return book._native.stubs()


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the module for the project that is named, or for the current folder."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if len(words) > 1 or any(word.startswith("-") for word in words):
        print("usage: python -m cuebook.stubs [PROJECT]", file=sys.stderr)
        return 2
    try:
        print(write(Book(words[0] if words else ".")), end="")
    except CuebookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
