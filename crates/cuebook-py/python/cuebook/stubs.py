"""Typed prompts: a module in which `Book.render` knows the prompts of a project, their variables and their outputs.

`python -m cuebook.stubs PROJECT > prompts.py` writes it. With `from prompts import Book`, mypy and pyright report a missing variable, a wrong
type and an unknown id.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ._book import Book
from .errors import CuebookError

__all__ = ["main", "write"]

_TYPES = {
    "string": "str",
    "str": "str",
    "integer": "int",
    "int": "int",
    "number": "float",
    "float": "float",
    "boolean": "bool",
    "bool": "bool",
    "list": "Sequence[Any]",
    "array": "Sequence[Any]",
    "object": "Mapping[str, Any]",
    "dict": "Mapping[str, Any]",
}

_HEAD = '''\
"""Typed prompts. Written by `python -m cuebook.stubs`; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import cuebook
from cuebook import Rendered

'''


def write(book: Book) -> str:
    """The module for the prompts of a book."""
    definitions = []
    for listed in book.list():
        try:
            definitions.append(book.show(listed["id"]))
        except CuebookError:
            # `check` reports a prompt that cannot be read; the others have types all the same.
            continue
    text = _HEAD
    for definition in definitions:
        if definition["outputs"]:
            text += "\n".join(_dataclass(_class(definition["id"]), definition["outputs"])) + "\n\n"
    text += "\nclass Book(cuebook.Book):\n    if TYPE_CHECKING:\n"
    for number, definition in enumerate(definitions):
        # It takes less than the method that it replaces, on purpose.
        ignored = "" if number else "  # type: ignore[override]"
        text += f"\n        @overload{ignored}\n        def render({_parameters(definition)}) -> Rendered: ...\n"
    if len(definitions) < 2:
        # An overload has two forms or more.
        text += "\n        @overload\n        def render(self, prompt_id: Literal[\"\"], /) -> Rendered: ...\n"
    text += "\n        def render(self, prompt_id: str, /, **more: Any) -> Rendered: ...\n"
    return text


def _class(prompt_id: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"\W+|_", prompt_id)) + "Output"


# The keywords that `Book.render` has itself. A variable of such a name goes into `variables`.
_TAKEN = {"self", "variables", "context", "allow_unknown"}


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _is_keyword(name: str) -> bool:
    return _is_name(name) and name not in _TAKEN


def _parameters(definition: dict[str, Any]) -> str:
    declared = definition["variables"]
    required = declared["required"]
    more = [*declared["optional"], *declared["custom"]]
    names = {one["name"] for one in (*required, *more)}
    read = {re.split(r"[.\[]", path)[0] for path in definition["names"]["variables"]}
    spaces = set(definition["names"]["namespaces"]) | {"system"}
    parts = ["self", f"prompt_id: Literal[{definition['id']!r}]", "/", "*"]
    if all(_is_keyword(one["name"]) for one in required):
        parts += [f"{one['name']}: {_annotation(one)}" for one in required]
        parts += [f"{one['name']}: {_annotation(one)} | None = ..." for one in more if _is_keyword(one["name"])]
        parts += [f"{name}: Any = ..." for name in sorted(read - names - spaces) if _is_keyword(name)]
        parts.append("variables: Mapping[str, Any] | None = ...")
    else:
        parts.append("variables: Mapping[str, Any]")
    parts.append("context: Mapping[str, Any] | None = ...")
    return ", ".join(parts)


def _annotation(variable: dict[str, Any]) -> str:
    return _TYPES.get(variable.get("type") or variable.get("kind") or "", "Any")


def _dataclass(name: str, outputs: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "@dataclass"
    yield f"class {name}:"
    # Fields with a default follow the others.
    ordered = sorted(outputs, key=lambda output: output.get("required") is False)
    for output in ordered:
        if _is_name(output["name"]):
            optional = " | None = None" if output.get("required") is False else ""
            yield f"    {output['name']}: {_annotation(output)}{optional}"
    if not any(_is_name(output["name"]) for output in outputs):
        yield "    pass"
    yield ""


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
