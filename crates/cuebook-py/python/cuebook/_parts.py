"""Parts of a rendered prompt and of replies. A separate module, so that `import cuebook` does not wait for `typing`."""

from __future__ import annotations

from typing import Any, NamedTuple


class Span(NamedTuple):
    """A part of a text with one origin. Offsets are characters, so `text[span.start:span.end]` is its text."""

    start: int
    end: int
    text: str
    #: `literal`, `value`, `rich`, `hook` or `frame`.
    kind: str
    #: The origin in a few words: a file and line, or a variable and its layer.
    label: str
    #: Everything about the origin.
    origin: dict[str, Any]
    #: The section of a tree that it is in.
    section: str | None = None

    @property
    def file(self) -> str | None:
        """The author's file."""
        return self.origin.get("file")

    @property
    def line(self) -> int | None:
        """The line in the author's file, from 1."""
        return self.origin.get("line")

    @property
    def variables(self) -> list[str]:
        """The paths of the variables whose values it shows."""
        return [variable["path"] for variable in self.origin.get("variables") or []]


class Segment(NamedTuple):
    """Author's text (`literal`) or a value (`interp`)."""

    kind: str
    text: str
    source: str | None
    strict: bool


class Piece(NamedTuple):
    """A part of a found text with one origin."""

    start: int
    end: int
    text: str
    label: str
    origin: dict[str, Any]
    #: The author's place: `file`, `line`, `column`, `excerpt`.
    source: dict[str, Any] | None = None
    section: str | None = None
    pack_id: str | None = None
    signature: str | None = None


class Found(NamedTuple):
    """A place in a text, and where its characters came from."""

    start: int
    end: int
    line: int
    column: int
    text: str
    pieces: tuple[Piece, ...]

    @property
    def label(self) -> str:
        """The origins in a few words."""
        return ", ".join(dict.fromkeys(piece.label for piece in self.pieces))


class Tokens(NamedTuple):
    """The tokens of a request."""

    total: int
    exact: bool
    model: str | None
    #: Why the count is an estimate, if it is one.
    estimates: tuple[str, ...]
    #: Every count, as `cuebook tokens --json` prints it.
    details: dict[str, Any]

    def __int__(self) -> int:
        return self.total


class Reply(NamedTuple):
    """What a provider's response says."""

    #: `text`, `tool_calls`, `structured`, `refusal` or `media` (pictures and embeddings).
    kind: str
    #: The text, the list of calls, the outputs, or the media.
    value: Any
    thinking: str | None = None
    #: Why the model stopped, in the provider's words.
    finish: str | None = None
    model: str | None = None
