"""A rendered prompt: its text, and where every character came from."""

from __future__ import annotations

from . import errors
from ._stop import in_thread
from .errors import Diagnostic

# See `errors`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Mapping, TypeVar

    from ._native import Rendered as Native
    from ._parts import Found, Reply, Segment, Span, Tokens

    T = TypeVar("T")


class Wire(dict["str", "Any"]):
    """The body of a request, a dict that a provider's client takes unchanged. `notes` says what the body leaves out."""

    notes: list[Diagnostic]

    def __init__(self, body: Mapping[str, Any], notes: Iterable[Mapping[str, Any]] = ()) -> None:
        super().__init__(body)
        self.notes = [Diagnostic(note) for note in notes]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Wire, (dict(self), [note.raw for note in self.notes]))


class Rendered:
    """A rendered prompt.

    >>> from cuebook import Book
    >>> rendered = Book(".").render("general_system", agent_name="Rumi")
    >>> span = next(span for span in rendered.spans if span.kind == "value")
    >>> span.text, span.variables
    ('Rumi', ['agent_name'])
    """

    __slots__ = ("_frozen", "_native", "_spans", "_text", "_tools_of")

    def __init__(self, native: Native, tools: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self._native: Native | None = native
        self._text: str = native.text
        self._spans: tuple[Span, ...] | None = None
        self._tools_of = tools
        self._frozen: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text."""
        return self._text

    def __str__(self) -> str:
        return self._text

    def __len__(self) -> int:
        return len(self._text)

    def __repr__(self) -> str:
        return f"<Rendered {self.prompt_id!r}: {len(self._text)} characters, {len(self.spans)} spans>"

    @property
    def prompt_id(self) -> str:
        """The id of the prompt."""
        return self._live("prompt_id", lambda native: native.prompt_id)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The parts of the text, in order, each with its origin."""
        if self._spans is None:
            assert self._native is not None
            self._spans = tuple(_span(self._text, one) for one in self._native.spans())
        return self._spans

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the model may call."""
        return self._live("tools", lambda native: native.tools)

    @property
    def notes(self) -> list[Diagnostic]:
        """What is worth knowing about the render."""
        return [Diagnostic(note) for note in self._live("notes", lambda native: native.notes)]

    def messages(self) -> list[dict[str, Any]]:
        """The messages of the conversation."""
        return self._live("messages", lambda native: native.messages())

    def segments(self) -> list[Segment]:
        """Author's text and values, in order."""
        from ._parts import Segment

        return [Segment(**one) for one in self._live("segments", lambda native: native.segments())]

    def wire(self, api: str | None = None) -> Wire:
        """The body of a request for `openai`, `anthropic`, `gemini` or another interface; by default the prompt's own.

        With `google-genai`, the body for `gemini` in the form of that client: the arguments of `client.models.generate_content(**wire)`.
        """
        name = "gemini" if api == _GENAI else api
        body, notes = self._live(f"wire {name}", lambda native: native.wire(name))
        return Wire(_arguments(body, self._model()) if api == _GENAI else body, notes)

    def _model(self) -> str | None:
        return self._live("model", lambda native: native.model)

    def tokens(self, model: str | None = None) -> Tokens:
        """The tokens of the request, counted for a model; by default the prompt's own."""
        from ._parts import Tokens

        counted = self._counted(model)
        return Tokens(counted["total"], counted["exact"], counted["model"], tuple(counted["estimates"]), counted)

    def _counted(self, model: str | None) -> dict[str, Any]:
        if self._native is None and model is not None:
            from ._native import count_tokens

            return count_tokens(model, self.messages(), self.tools)
        return self._live(f"tokens {model}", lambda native: native.tokens(model))

    def explanation(self) -> dict[str, Any]:
        """Which file was chosen and why, and every variable with its value and layer."""
        return self._live("explanation", lambda native: native.explanation())

    def explain(self, offset: int) -> Found:
        """Where the character at an offset came from."""
        if offset < 0:
            offset += len(self._text)
        if not 0 <= offset < len(self._text):
            raise IndexError(f"the text has {len(self._text)} characters, and none at {offset}")
        if self._native is None:
            return self._from_spans(offset, offset + 1)
        return _found(self._native.explain(offset))

    def find(self, text: str) -> list[Found]:
        """Where every occurrence of a text came from. A text that does not occur is an error."""
        if self._native is None:
            starts = _occurrences(self._text, text)
            return [self._from_spans(start, start + len(text)) for start in starts]
        return [_found(one) for one in self._native.find(text)]

    def read_reply(self, response: Any, api: str | None = None) -> Reply:
        """What a provider's response says: its text, its outputs, or the tools that it calls."""
        from ._native import read_reply
        from ._parts import Reply

        provider, api_type, has_outputs = self._live("reply_form", lambda native: native.reply_form())
        name = "gemini" if api == _GENAI else api or provider
        return Reply(**read_reply(name, api_type, _body(response), has_outputs))

    def converse(
        self,
        ask: Callable[[dict[str, Any]], Any],
        *,
        api: str | None = None,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        most_turns: int = 10,
    ) -> dict[str, Any]:
        """Asks a model until it answers, and runs the tools that it calls.

        `ask` gets the body of a request and returns the response, as in `lambda body: client.chat.completions.create(**body)`. The tools
        are those of the book (`@book.tool`) and the given ones. Returns `result`, `turns`, `messages`, and `failures`: the exceptions that
        tools raised, with their tracebacks. The model gets their words.
        """
        functions = {**(self._tools_of or {}), **(tools or {})}

        def asked(body: dict[str, Any]) -> Any:
            from ._values import settle

            return _body(settle(ask(body)))

        return self._alive("converse").converse(api, asked, list(functions.items()), most_turns)

    async def converse_async(self, ask: Callable[[dict[str, Any]], Any], **more: Any) -> dict[str, Any]:
        """Like `converse`, in a worker thread. `ask` and the tools may be asynchronous; they run in a loop of that thread.

        Cancelling the task ends the conversation: what is asynchronous is cancelled, and nothing more is asked or called.
        """
        return await in_thread(self.converse, ask, **more)

    def _repr_html_(self) -> str:
        import html

        parts = []
        for span in self.spans:
            colour = _COLOURS.get(span.kind, "inherit")
            label = html.escape(span.label, quote=True)
            parts.append(f'<span title="{label}" style="background:{colour}">{html.escape(span.text)}</span>')
        return f'<pre style="white-space:pre-wrap">{"".join(parts)}</pre>'

    def __reduce__(self) -> tuple[Any, ...]:
        return (_thawed, (self._text, self.spans, self._freeze()))

    def _alive(self, what: str) -> Native:
        if self._native is None:
            said = f"`{what}` needs the render, and this is an unpickled copy"
            raise errors.UsageError(said, code="CB407", hint="render the prompt again")
        return self._native

    def _live(self, name: str, read: Callable[[Native], T]) -> T:
        if self._native is not None:
            return read(self._native)
        if self._frozen is None or name not in self._frozen:
            said = f"an unpickled copy does not have `{name}`"
            raise errors.UsageError(said, code="CB407", hint="render the prompt again")
        kept = self._frozen[name]
        if isinstance(kept, errors.CuebookError):
            raise kept
        result: T = kept
        return result

    def _freeze(self) -> dict[str, Any]:
        if self._native is None:
            return self._frozen or {}
        native = self._native
        kept: dict[str, Any] = {}
        kept.update(prompt_id=native.prompt_id, tools=native.tools, notes=native.notes, model=native.model)
        reads: dict[str, Callable[[], Any]] = {
            "messages": native.messages,
            "segments": native.segments,
            "explanation": native.explanation,
            "reply_form": native.reply_form,
            "tokens None": lambda: native.tokens(None),
            "wire None": lambda: native.wire(None),
        }
        for api in ("openai", "anthropic", "gemini", *native.wires()):
            reads[f"wire {api}"] = lambda api=api: native.wire(api)  # type: ignore[misc]
        for name, read in reads.items():
            try:
                kept[name] = read()
            except errors.CuebookError as error:
                kept[name] = error
        return kept

    def _from_spans(self, start: int, end: int) -> Found:
        from ._parts import Found, Piece

        pieces = []
        for span in self.spans:
            if span.start < end and start < span.end:
                first, last = max(start, span.start), min(end, span.end)
                text = self._text[first:last]
                pieces.append(Piece(first, last, text, span.label, span.origin, None, span.section))
        line = self._text.count("\n", 0, start) + 1
        column = start - (self._text.rfind("\n", 0, start) + 1) + 1
        return Found(start, end, line, column, self._text[start:end], tuple(pieces))


_COLOURS = {
    "literal": "transparent",
    "value": "#fde68a80",
    "rich": "#bfdbfe80",
    "hook": "#fbcfe880",
    "frame": "#d1d5db80",
}


def _span(text: str, one: dict[str, Any]) -> Span:
    from ._parts import Span

    start, end, origin = one["start"], one["end"], one["origin"]
    return Span(start, end, text[start:end], origin["kind"], one["label"], origin, one["section"])


def _found(one: dict[str, Any]) -> Found:
    from ._parts import Found, Piece

    pieces = tuple(Piece(**piece) for piece in one.pop("pieces"))
    return Found(**one, pieces=pieces)


def _occurrences(text: str, wanted: str) -> list[int]:
    starts, at = [], text.find(wanted) if wanted else -1
    while at >= 0:
        starts.append(at)
        at = text.find(wanted, at + len(wanted))
    if not starts:
        raise errors.PromptValidationError(f"the rendered text does not contain {wanted!r}", code="CB407")
    return starts


def _body(response: Any) -> Any:
    # The clients of OpenAI, Anthropic and Google return pydantic models, whose aliases are the names on the wire.
    return response.model_dump(mode="json", by_alias=True) if hasattr(response, "model_dump") else response


_GENAI = "google-genai"


def _arguments(body: dict[str, Any], model: str | None) -> dict[str, Any]:
    # The client has one object for what the interface has in several places.
    config = {name: value for name, value in body.items() if name not in ("model", "contents", "generationConfig")}
    return {"model": model, "contents": body["contents"], "config": {**body.get("generationConfig", {}), **config}}


def _thawed(text: str, spans: tuple[Span, ...], frozen: dict[str, Any]) -> Rendered:
    rendered = Rendered.__new__(Rendered)
    rendered._native = None
    rendered._text, rendered._spans, rendered._frozen, rendered._tools_of = text, spans, frozen, {}
    return rendered
