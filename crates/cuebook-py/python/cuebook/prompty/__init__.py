"""The interface of Prompty 2: `load`, `render`, `parse`, `prepare`, `run`, `process` and `invoke` for `.prompty` files, over a `Book`."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from .._book import Book
from .._native import parse_messages, read_reply
from ._parts import (
    ApiKeyConnection,
    Connection,
    CustomTool,
    FunctionTool,
    LoadError,
    McpTool,
    Message,
    MissingFileError,
    OpenApiTool,
    Property,
    Record,
    ReferenceConnection,
    TextPart,
    Tool,
    connection,
    references,
    resolved,
    tool,
)
from ._requests import request
from .core.connections import clear_connections, get_connection, register_connection
from .._rendered import Rendered, Wire, _body
from .._stop import in_thread
from .._values import settle
from ..errors import CuebookError, InvokerError, PromptReadError, PromptRenderError, PromptValidationError, StrictViolation

__all__ = [
    "Agent",
    "ApiKeyConnection",
    "Connection",
    "CuebookError",
    "CustomTool",
    "FunctionTool",
    "InvokerError",
    "Jinja2Renderer",
    "LoadError",
    "McpTool",
    "Message",
    "MissingFileError",
    "MustacheRenderer",
    "OpenApiTool",
    "PromptReadError",
    "PromptRenderError",
    "PromptValidationError",
    "Prompty",
    "PromptyChatParser",
    "Property",
    "ReferenceConnection",
    "StrictViolation",
    "TextPart",
    "Tool",
    "clear_connections",
    "clear_registry",
    "get_connection",
    "invoke",
    "invoke_async",
    "load",
    "load_async",
    "parse",
    "parse_async",
    "prepare",
    "prepare_async",
    "process",
    "process_async",
    "register_connection",
    "register_executor",
    "register_parser",
    "register_processor",
    "register_renderer",
    "render",
    "render_async",
    "run",
    "run_async",
    "validate_inputs",
    "wire",
]


class RenderedText(str):
    """The text of a prompt. `parse` finds its messages by who wrote what, so that no value begins one."""

    rendered: Rendered

    def __reduce__(self) -> tuple[Any, ...]:
        return (_text, (self.rendered,))


class Messages(list[Message]):
    """The messages of a prompt, with the render that they are from."""

    rendered: Rendered | None = None


def _text(rendered: Rendered) -> RenderedText:
    text = RenderedText(rendered.text)
    text.rendered = rendered
    return text


#: Sends requests to a model: gets the body of one and returns the response. Or an object with `execute(agent, messages)`.
Executor = Callable[[dict[str, Any]], Any]

_renderers: dict[str, Any] = {}
_parsers: dict[str, Any] = {}
_executors: dict[str, Any] = {}
_processors: dict[str, Any] = {}


def register_renderer(key: str, renderer: Any) -> None:
    """Registers a template engine for files that name it as their format: an object with `render(agent, template, inputs)`."""
    _renderers[key] = renderer


def register_parser(key: str, parser: Any) -> None:
    """Registers what makes messages of the text of files that name it: an object with `parse(agent, rendered)`."""
    _parsers[key] = parser


def register_executor(provider: str, executor: Any) -> None:
    """Registers what sends requests to a provider: an object with `execute(agent, messages)`, or a function that gets the body of a
    request, as in `lambda body: client.chat.completions.create(**body)`."""
    _executors[provider] = executor


def register_processor(provider: str, processor: Any) -> None:
    """Registers what reads the responses of a provider: an object with `process(agent, response)`."""
    _processors[provider] = processor


def clear_registry() -> None:
    """Forgets everything that was registered."""
    for registry in (_renderers, _parsers, _executors, _processors):
        registry.clear()


class Prompty:
    """A loaded `.prompty` file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        book: Book | None = None,
        *,
        allowed_file_roots: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        self.path = Path(path).absolute()
        if not self.path.exists():
            raise MissingFileError(f"the file {self.path} was not found", code="CB110", file=str(self.path))
        self._roots = [Path(root) for root in allowed_file_roots]
        front = self._front
        for kind, said in references(front):
            self._resolved(f"${{{kind}:{said}}}")
        names = [said.partition(":")[0] for kind, said in references(front) if kind == "env"]
        self.book = book or Book(self.path.parent, env=names)
        for key in _renderers:
            self.book.engine(key)(_Engine(self, key))
        self.definition: dict[str, Any] = self.book.show_file(self.path)

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Prompty:
        """A prompt from its definition instead of a file."""
        import json
        import tempfile

        folder = tempfile.TemporaryDirectory(prefix="cuebook-")
        path = Path(folder.name) / "prompt.prompty"
        front = {name: value for name, value in data.items() if name != "instructions"}
        path.write_text(f"---\n{json.dumps(front)}\n---\n{data.get('instructions') or ''}", encoding="utf-8")
        made = cls(path)
        made._folder, made._data = folder, dict(data)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        # The folder of a definition is of this process.
        if self._data is not None:
            return (type(self).load, (self._data,))
        return (_restored, (type(self), self.path, self.book, self._roots, self.definition))

    #: The model, once it was read.
    _model: Record | None = None
    #: The folder of a prompt that has no file of its own.
    _folder: Any = None
    _data: dict[str, Any] | None = None

    def _resolved(self, value: Any) -> Any:
        return resolved(value, self.path.parent, self._roots)

    def __repr__(self) -> str:
        return f"Prompty({str(self.path)!r})"

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.definition["name"]) if re.search(r"^name:|^\{.*\"name\":", self._front, re.MULTILINE) else ""

    @property
    def description(self) -> str | None:
        """What it is for."""
        said = self._resolved(self.definition.get("description"))
        return str(said) if said is not None else None

    @property
    def metadata(self) -> Record:
        """What else its front matter says."""
        version = self.definition.get("version")
        return Record({**(self.definition.get("metadata") or {}), **({} if version is None else {"version": version})})

    @property
    def model(self) -> Any:
        """The model, and how it is asked: `id`, `provider`, `api_type`, `connection`, `options`; `None` without one.

        A program may change it: executors use the change. `render`, `wire` and pickled copies use the file.
        """
        if self._model is None:
            said = dict(self.definition.get("model") or {})
            if said.get("connection"):
                said["connection"] = self.book._native.connection(str(self.path))
            said = self._resolved(said)
            if isinstance(said.get("connection"), dict):
                said["connection"] = connection(said["connection"])
            self._model = Record(said)
        return self._model or None

    @property
    def inputs(self) -> Any:
        """Its inputs, in order; `None` if it declares none."""
        variables = self.definition.get("variables") or {}
        groups = ("required", "optional", "custom")
        found = [
            Property({"kind": one.get("type"), **one, "required": group == "required"})
            for group in groups
            for one in variables.get(group) or []
        ]
        return found or None

    @property
    def outputs(self) -> list[Property]:
        """Its outputs, in order."""
        return [Property(one) for one in self.definition.get("outputs") or []]

    @property
    def tools(self) -> list[Tool]:
        """The tools that the model may call."""
        return [tool(self._resolved(one)) for one in self.definition.get("tools") or []]

    @property
    def template(self) -> Record:
        """The template engine and the parser: `format.kind` and `parser.kind`."""
        said = self.definition.get("format") or {}
        return Record(format=Record(kind=said.get("engine")), parser=Record(kind=said.get("parser")))

    @property
    def instructions(self) -> str:
        """The template: the file after its front matter."""
        return self._parts[1]

    @property
    def _front(self) -> str:
        return self._parts[0]

    @property
    def _parts(self) -> tuple[str, str]:
        text = self.path.read_text(encoding="utf-8-sig")
        lines = text.splitlines(keepends=True)
        if not lines or lines[0].strip() != "---":
            return "", text
        ends = [number for number, line in enumerate(lines) if number and line.strip() == "---"]
        return ("".join(lines[: ends[0]]), "".join(lines[ends[0] + 1 :]).lstrip("\r\n")) if ends else ("", text)

    def rendered(self, inputs: Mapping[str, Any] | None = None) -> Rendered:
        """The whole render: text, spans, messages, request."""
        return self.book.render_file(self.path, variables=dict(inputs or {}))


#: What Prompty calls a loaded file.
Agent = Prompty


class _Engine:
    """A registered renderer as a template engine of a book."""

    def __init__(self, agent: Prompty, key: str) -> None:
        self.agent, self.key = agent, key

    def __call__(self, template: str, variables: dict[str, Any]) -> Any:
        renderer = _renderers.get(self.key)
        if renderer is None:
            raise InvokerError(f"no renderer is registered for `{self.key}`", code="CB507", key=self.key)
        render = getattr(renderer, "render", renderer)
        return settle(render(self.agent, template, variables))


class _TextRenderer:
    """A template engine alone."""

    engine = ""

    def render(self, agent: Any, template: str, inputs: Mapping[str, Any]) -> str:
        """The text of a template."""
        definition = {"name": "template", "template": {"format": {"kind": self.engine}}, "instructions": template}
        made = Prompty.load(definition)
        return made.book.render_file(made.path, variables=dict(inputs), allow_unknown=True).text

    async def render_async(self, agent: Any, template: str, inputs: Mapping[str, Any]) -> str:
        """Like `render`, in a worker thread."""
        return await in_thread(self.render, agent, template, inputs)


def _restored(kind: type[Prompty], path: Path, book: Book, roots: list[Path], definition: dict[str, Any]) -> Prompty:
    made = kind.__new__(kind)
    made.path, made.book, made._roots, made.definition = path, book, roots, definition
    return made


class Jinja2Renderer(_TextRenderer):
    """Jinja2."""

    engine = "jinja2"


class MustacheRenderer(_TextRenderer):
    """Mustache."""

    engine = "mustache"


_ROLE = re.compile(r"^[ \t]*#?[ \t]*(system|user|assistant|developer|tool)[ \t]*(?:\[([^\]\n]*)\])?[ \t]*:[ \t]*$", re.M | re.I)


class PromptyChatParser:
    """Makes messages of a text by its lines such as `user:`."""

    def pre_render(self, template: str) -> tuple[str, dict[str, Any]]:
        """A template whose role lines carry a nonce, and the nonce."""
        nonce = secrets.token_hex(8)

        def marked(found: re.Match[str]) -> str:
            more = f"{found[2]}," if found[2] else ""
            return f'{found[1]}[{more}nonce="{nonce}"]:'

        return _ROLE.sub(marked, template), {"nonce": nonce}

    def parse(self, agent: Any, rendered: str, *, nonce: str | None = None) -> list[Message]:
        """The messages. With a nonce, a role line without it is an error."""
        if nonce is not None and any(f'nonce="{nonce}"' not in (found[2] or "") for found in _ROLE.finditer(rendered)):
            said = "Nonce mismatch: a value of the prompt looks like a role line"
            raise LoadError(said, code="CB508", hint="escape role lines in values")
        text = _ROLE.sub(lambda found: re.sub(r',?nonce="[^"]*"', "", found[0]).replace("[]", ""), rendered) if nonce else rendered
        return Messages(Message(one) for one in parse_messages(text))

    async def parse_async(self, agent: Any, rendered: str, *, nonce: str | None = None) -> list[Message]:
        """Like `parse`."""
        return self.parse(agent, rendered, nonce=nonce)


_Source = Prompty | str | os.PathLike[str]


def load(
    path: str | os.PathLike[str],
    configuration: str | None = None,
    *,
    allowed_file_roots: Sequence[str | os.PathLike[str]] = (),
) -> Prompty:
    """Loads a `.prompty` file; its errors are raised here. `configuration` is for compatibility and must be left out or `"default"`.

    References `${file:...}` stay in the folder of the file, or in `allowed_file_roots`.
    """
    if configuration not in (None, "default"):
        said = f"there is no configuration `{configuration}`"
        raise InvokerError(said, code="CB507", hint='leave it out, or pass "default"')
    return Prompty(path, allowed_file_roots=allowed_file_roots)


def _loaded(agent: _Source) -> Prompty:
    return agent if isinstance(agent, Prompty) else load(agent)


def validate_inputs(agent: _Source, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The inputs with the defaults of those that are missing. A required one that is missing is an error."""
    prompty, given = _loaded(agent), dict(inputs or {})
    known = {one["name"]: one["default"] for one in prompty.inputs or [] if one.get("default") is not None}
    required = (prompty.definition.get("variables") or {}).get("required") or []
    missing = [one["name"] for one in required if one["name"] not in {**known, **given}]
    if missing:
        said = f"the required input `{missing[0]}` is missing"
        raise PromptValidationError(said, code="CB401", hint=f"pass a value for `{missing[0]}`", variable=missing[0])
    return {**known, **given}


def render(agent: _Source, inputs: Mapping[str, Any] | None = None) -> str:
    """The text of a prompt. A conversation, image, file or audio input is a nonce in it."""
    return _text(_loaded(agent).rendered(inputs))


def parse(agent: _Source, rendered: str) -> list[Message]:
    """The messages of a rendered text.

    In a text that `render` returned, only the author's lines begin messages. In any other text, every line such as `user:` does.
    """
    prompty = _loaded(agent)
    kind = prompty.template.parser.kind
    if kind in _parsers:
        return Messages(_message(one) for one in settle(_parsers[kind].parse(prompty, str(rendered))))
    if isinstance(rendered, RenderedText) and not _has_own_engine(prompty):
        return _messages(rendered.rendered)
    return Messages(Message(one) for one in parse_messages(str(rendered)))


def _has_own_engine(prompty: Prompty) -> bool:
    return prompty.template.format.kind in _renderers


def _message(one: Any) -> Message:
    return one if isinstance(one, Message) else Message(one)


def _messages(rendered: Rendered) -> Messages:
    messages = Messages(Message(one) for one in rendered.messages())
    messages.rendered = rendered
    return messages


def prepare(agent: _Source, inputs: Mapping[str, Any] | None = None) -> list[Message]:
    """Renders a prompt and parses it: the messages that a model gets."""
    prompty = _loaded(agent)
    return parse(prompty, render(prompty, inputs))


def wire(agent: _Source, inputs: Mapping[str, Any] | None = None, provider: str | None = None) -> Wire:
    """The body of a request."""
    return _loaded(agent).rendered(inputs).wire(provider)


def run(agent: _Source, messages: Sequence[Message], *, raw: bool = False) -> Any:
    """Asks the model with messages of `prepare`, and returns what it says; with `raw`, the response.

    The executor is the one that is registered for the prompt's provider.
    """
    prompty = _loaded(agent)
    executor = _registered(_executors, prompty, "executor", "register_executor")
    if hasattr(executor, "execute"):
        response = settle(executor.execute(prompty, messages))
    else:
        rendered = getattr(messages, "rendered", None)
        response = settle(executor(request(prompty, messages) if rendered is None else rendered.wire()))
    return response if raw else process(prompty, response)


def process(agent: _Source, response: Any) -> Any:
    """What a response says: text, outputs, or calls of tools."""
    prompty = _loaded(agent)
    processor = _processors.get(_provider(prompty))
    if processor is not None:
        return settle(processor.process(prompty, response))
    return read_reply(_provider(prompty), prompty.model.api_type if prompty.model else None, _body(response), bool(prompty.outputs))["value"]


def invoke(
    prompt: _Source,
    inputs: Mapping[str, Any] | None = None,
    *,
    raw: bool = False,
    target_type: Callable[..., Any] | None = None,
    executor: Executor | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    most_turns: int = 10,
) -> Any:
    """Loads and renders a prompt, asks the model and returns its answer; with `raw`, the response.

    The executor is the given one, or the one that is registered for the prompt's provider. Functions in `tools` are called when the model
    asks for them. Outputs become an object of `target_type`, such as a dataclass.
    """
    prompty = _loaded(prompt)
    send = executor or _registered(_executors, prompty, "executor", "pass `executor=`, or call `register_executor`")
    if raw or hasattr(send, "execute") or _processors.get(_provider(prompty)) is not None:
        result = run(prompty, prepare(prompty, inputs), raw=raw)
    else:
        result = prompty.rendered(inputs).converse(send, tools=tools, most_turns=most_turns)["result"]
    if raw or target_type is None:
        return result
    return target_type(**result) if isinstance(result, dict) else target_type(result)


def _provider(prompty: Prompty) -> str:
    model = prompty.model
    return (model.provider if model is not None else None) or "openai"


def _registered(registry: dict[str, Any], prompty: Prompty, what: str, how: str) -> Any:
    provider = _provider(prompty)
    if provider not in registry:
        hint = f"{how} with a function that sends the body of a request"
        raise InvokerError(f"no {what} is registered for the provider `{provider}`", code="CB507", key=provider, hint=hint)
    return registry[provider]


async def load_async(path: str | os.PathLike[str], configuration: str | None = None) -> Prompty:
    """Like `load`, in a worker thread."""
    return await in_thread(load, path, configuration)


async def render_async(agent: _Source, inputs: Mapping[str, Any] | None = None) -> str:
    """Like `render`, in a worker thread."""
    return await in_thread(render, agent, inputs)


async def parse_async(agent: _Source, rendered: str) -> list[Message]:
    """Like `parse`, in a worker thread."""
    return await in_thread(parse, agent, rendered)


async def prepare_async(agent: _Source, inputs: Mapping[str, Any] | None = None) -> list[Message]:
    """Like `prepare`, in a worker thread."""
    return await in_thread(prepare, agent, inputs)


async def process_async(agent: _Source, response: Any) -> Any:
    """Like `process`, in a worker thread."""
    return await in_thread(process, agent, response)


async def run_async(agent: _Source, messages: Sequence[Message], *, raw: bool = False) -> Any:
    """Like `run`, in a worker thread. The executor may be asynchronous."""
    return await in_thread(run, agent, messages, raw=raw)


async def invoke_async(prompt: _Source, inputs: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Like `invoke`, in a worker thread. The executor and the tools may be asynchronous."""
    return await in_thread(invoke, prompt, inputs, **more)
