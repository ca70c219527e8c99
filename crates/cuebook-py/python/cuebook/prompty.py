"""The interface of Prompty: `load`, `render`, `prepare`, `parse` and `run` for `.prompty` files, over a `Book`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Callable, Mapping

from ._book import Book
from ._rendered import Rendered, Wire
from .errors import CuebookError, InvokerError, PromptRenderError, PromptValidationError, StrictViolation

__all__ = [
    "CuebookError",
    "InvokerError",
    "PromptRenderError",
    "PromptValidationError",
    "Prompty",
    "StrictViolation",
    "load",
    "load_async",
    "parse",
    "parse_async",
    "prepare",
    "prepare_async",
    "process",
    "register_executor",
    "render",
    "render_async",
    "run",
    "run_async",
]

#: Asks a model: gets the body of a request, returns the response.
Executor = Callable[[dict[str, Any]], Any]

_executors: dict[str, Executor] = {}


def register_executor(provider: str, executor: Executor) -> None:
    """Registers the function that sends requests to a provider, as in `lambda body: client.chat.completions.create(**body)`."""
    _executors[provider] = executor


class Prompty:
    """A loaded `.prompty` file."""

    def __init__(self, path: str | os.PathLike[str], book: Book | None = None) -> None:
        self.path = Path(path).absolute()
        self.book = book or Book(self.path.parent)
        self.definition: dict[str, Any] = self.book.show_file(self.path)

    def __repr__(self) -> str:
        return f"Prompty({str(self.path)!r})"

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.definition["name"])

    @property
    def description(self) -> str | None:
        """What it is for."""
        return self.definition.get("description")

    @property
    def metadata(self) -> dict[str, Any]:
        """What else its front matter says."""
        return dict(self.definition.get("metadata") or {})

    @property
    def model(self) -> dict[str, Any]:
        """The model, and how it is asked."""
        return dict(self.definition.get("model") or {})

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Its inputs, in order."""
        variables = self.definition.get("variables") or {}
        return [one for group in ("required", "optional", "custom") for one in variables.get(group) or []]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the model may call."""
        return list(self.definition.get("tools") or [])

    def rendered(self, inputs: Mapping[str, Any] | None = None) -> Rendered:
        """The whole render: text, spans, messages, request."""
        return self.book.render_file(self.path, variables=dict(inputs or {}))


_Agent = Prompty | str | os.PathLike[str]


def load(path: str | os.PathLike[str], configuration: str | None = None) -> Prompty:
    """Loads a `.prompty` file; its errors are raised here. `configuration` is for compatibility and must be left out or `"default"`."""
    if configuration not in (None, "default"):
        said = f"there is no configuration `{configuration}`"
        raise InvokerError(said, code="CB507", hint='leave it out, or pass "default"')
    return Prompty(path)


def _loaded(agent: _Agent) -> Prompty:
    return agent if isinstance(agent, Prompty) else load(agent)


def render(agent: _Agent, inputs: Mapping[str, Any] | None = None) -> str:
    """The text of a prompt. A conversation, image, file or audio input is a nonce in it."""
    return _loaded(agent).rendered(inputs).text


def parse(agent: _Agent, inputs: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The messages of a prompt."""
    return _loaded(agent).rendered(inputs).messages()


def prepare(agent: _Agent, inputs: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Renders a prompt and parses it: the messages that a model gets."""
    return parse(agent, inputs)


def wire(agent: _Agent, inputs: Mapping[str, Any] | None = None, provider: str | None = None) -> Wire:
    """The body of a request."""
    return _loaded(agent).rendered(inputs).wire(provider)


def process(agent: _Agent, response: Any, inputs: Mapping[str, Any] | None = None) -> Any:
    """What a response says: text, outputs, or calls of tools."""
    return _loaded(agent).rendered(inputs).read_reply(response).value


def run(
    agent: _Agent,
    inputs: Mapping[str, Any] | None = None,
    *,
    executor: Executor | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    most_turns: int = 10,
) -> Any:
    """Renders a prompt, asks the model and returns its answer. Functions in `tools` are called when the model asks for them.

    The executor is the given one, or the one that is registered for the prompt's provider.
    """
    prompty = _loaded(agent)
    send = executor or _executor(prompty)
    return prompty.rendered(inputs).converse(send, tools=tools, most_turns=most_turns)["result"]


def _executor(prompty: Prompty) -> Executor:
    provider = prompty.model.get("provider") or "openai"
    if provider not in _executors:
        hint = "pass `executor=`, or call `register_executor` with a function that sends the body of a request"
        raise InvokerError(f"no executor is registered for the provider `{provider}`", code="CB507", key=provider, hint=hint)
    return _executors[provider]


async def load_async(path: str | os.PathLike[str], configuration: str | None = None) -> Prompty:
    """Like `load`, in a worker thread."""
    return await asyncio.to_thread(load, path, configuration)


async def render_async(agent: _Agent, inputs: Mapping[str, Any] | None = None) -> str:
    """Like `render`, in a worker thread."""
    return await asyncio.to_thread(render, agent, inputs)


async def parse_async(agent: _Agent, inputs: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Like `parse`, in a worker thread."""
    return await asyncio.to_thread(parse, agent, inputs)


async def prepare_async(agent: _Agent, inputs: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Like `prepare`, in a worker thread."""
    return await asyncio.to_thread(prepare, agent, inputs)


async def run_async(
    agent: _Agent,
    inputs: Mapping[str, Any] | None = None,
    *,
    executor: Executor | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    most_turns: int = 10,
) -> Any:
    """Like `run`, in a worker thread. The executor and the tools may be asynchronous."""
    return await asyncio.to_thread(
        lambda: run(agent, inputs, executor=executor, tools=tools, most_turns=most_turns)
    )
