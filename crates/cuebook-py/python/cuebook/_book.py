"""A book: the prompts of a project."""

from __future__ import annotations

import os
import sys
import weakref

from . import _native, errors
from ._rendered import Rendered
from ._stop import in_thread
from .errors import CuebookError, Diagnostic

# See `errors`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any, Callable, ClassVar, Literal, Mapping, Protocol, TypeVar, Union, overload

    import typing_extensions

    from ._native import RenderedTable
    from ._runs import Run, RunResult

    # `Book.list` hides the type of that name in annotations.
    Rows = list[dict[str, Any]]
    Batch = list[Union[str, Exception]]
    Functions = list[tuple[str, str, Callable[..., Any]]]
    T = typing_extensions.TypeVar("T", default=Any)
    F = TypeVar("F", bound=Callable[..., Any])

    class ArrowTable(Protocol):
        """A table of another library, such as `pyarrow.Table`, `polars.DataFrame` or `pandas.DataFrame`."""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            """A capsule with a stream of Arrow's C interface."""

else:

    def overload(function):
        return function


_books: weakref.WeakSet[Book]


class Report(list[Diagnostic]):
    """The findings of a check. `str(report)` prints them as the command line does."""

    prompts: int
    text: str

    def __init__(self, findings: Iterable[Diagnostic] = (), prompts: int = 0, text: str = "") -> None:
        super().__init__(findings)
        self.prompts = prompts
        self.text = text

    @property
    def errors(self) -> list[Diagnostic]:
        """The findings that are errors."""
        return [finding for finding in self if finding.severity == "error"]

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return (Report, (list(self), self.prompts, self.text))


class Book:
    """The prompts of a project. Share one between threads; it notices when files change.

    >>> from cuebook import Book
    >>> book = Book(".")
    >>> [prompt["id"] for prompt in book.list(type="planning")]
    ['planning_task_decomposition']
    """

    #: The classes of outputs by prompt, in the modules that `cuebook stubs` writes.
    _outputs: ClassVar[Mapping[str, type[Any]]] = {}

    def __init__(
        self,
        path: str | os.PathLike[str] = ".",
        *,
        env: Iterable[str] = (),
        globals: Mapping[str, Any] | None = None,
        user: str | os.PathLike[str] | None = None,
        clock: str | None = None,
        look_every: float | None = None,
    ) -> None:
        """Opens a project.

        `env` names environment variables that prompts may read. `globals` are values that every template finds. `user` is the folder of
        your keys and items instead of the usual one. `clock` is a fixed time, such as `2026-02-20T15:30:00+09:00[Asia/Tokyo]`.

        The book looks for changed files before every render. With `look_every` it looks at most once in so many seconds, and with
        `look_every=float("inf")` only after `refresh()`.
        """
        if look_every is not None and not look_every >= 0:
            raise ValueError(f"look_every must be 0 seconds or more, not {look_every}")
        self._root = os.path.abspath(path)
        if not os.path.isdir(self._root):
            said = f"the project {self._root} is not a directory"
            raise errors.IoError(said, code="CB110", file=self._root, hint="pass the folder that holds the prompts")
        self._options: dict[str, Any] = {
            "env": list(env),
            "globals": dict(globals or {}),
            "user": os.fspath(user) if user is not None else None,
            "clock": clock,
            "look_every": look_every,
        }
        self._functions: Functions = []
        self._tools: dict[str, Callable[..., Any]] = {}
        self._native_book: _native.Book | None = None
        _books.add(self)
        self._native  # A wrong clock or global is an error of this line.

    def refresh(self) -> None:
        """Looks for changed files at the next render of each prompt, whatever `look_every` is."""
        self._native.refresh()

    @property
    def root(self) -> Path:
        """The project's folder."""
        from pathlib import Path

        return Path(self._root)

    def __repr__(self) -> str:
        return f"Book({self._root!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native_book": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _books.add(self)

    @property
    def _native(self) -> _native.Book:
        if self._native_book is None:
            self._native_book = _native.Book(
                self._root,
                functions=self._functions,
                python=sys.executable or "python3",
                folder=os.path.dirname(os.path.abspath(_native.__file__)),
                **self._options,
            )
        return self._native_book

    # Rendering

    def render(
        self,
        prompt_id: str,
        /,
        *,
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        allow_unknown: bool = False,
        **more: Any,
    ) -> Rendered:
        """Renders a prompt, given by its id.

        Variables are keyword arguments, or `variables={...}` for names that are not Python's. `context` may have the keys `agent`,
        `model`, `language`, `session`, `session_id`, `session_state`, `workspace_path`, `strict`, `visibility`, `fit`, `overrides_tag`,
        `without_hooks` and `message`. A variable that the prompt does not have is an error, unless `allow_unknown` is set.
        """
        return self._render(prompt_id, variables, more, context, False, allow_unknown)

    def render_file(
        self,
        path: str | os.PathLike[str],
        /,
        *,
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        allow_unknown: bool = False,
        **more: Any,
    ) -> Rendered:
        """Renders the prompt of a file or folder, whose path is relative to the project."""
        return self._render(self._path(path), variables, more, context, True, allow_unknown)

    async def render_async(self, prompt_id: str, /, **more: Any) -> Rendered:
        """Like `render`, in a worker thread: the loop goes on while hooks run. Cancelling the task ends the wait for them."""
        return await in_thread(self.render, prompt_id, **more)

    async def render_file_async(self, path: str | os.PathLike[str], /, **more: Any) -> Rendered:
        """Like `render_file`, in a worker thread."""
        return await in_thread(self.render_file, path, **more)

    @overload
    def render_batch(
        self,
        prompt_id: str,
        rows: ArrowTable,
        /,
        *,
        context: Mapping[str, Any] | None = None,
        allow_unknown: bool = False,
        threads: int | None = None,
    ) -> RenderedTable: ...

    @overload
    def render_batch(
        self,
        prompt_id: str,
        rows: Iterable[Mapping[str, Any]],
        /,
        *,
        context: Mapping[str, Any] | None = None,
        allow_unknown: bool = False,
        threads: int | None = None,
        errors: Literal["raise", "return"] = "raise",
    ) -> Batch: ...

    def render_batch(
        self,
        prompt_id: str,
        rows: ArrowTable | Iterable[Mapping[str, Any]],
        /,
        *,
        context: Mapping[str, Any] | None = None,
        allow_unknown: bool = False,
        threads: int | None = None,
        errors: Literal["raise", "return"] = "raise",
    ) -> RenderedTable | Batch:
        """Renders a prompt once for each row of variables. Files are looked at once; `threads` render at the same time, by default one
        for each core.

        `rows` is a table of pyarrow, Polars, pandas or another library with `__arrow_c_stream__`, whose columns are the variables. The
        answer is a table with the columns `text`, `code` and `error`, in the same order; a row that fails has no text. With
        `allow_unknown`, columns that the prompt does not have are left out.

        `rows` may also be dicts. Then the answer is a list of texts. The first error is raised, unless `errors="return"` puts it into the
        list.

        >>> from cuebook import Book
        >>> Book(".").render_batch("general_system", [{"agent_name": name} for name in ("Rumi", "Ada")])[1].count("Ada")
        1
        """
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        if errors not in ("raise", "return"):
            raise ValueError(f"errors must be 'raise' or 'return', not {errors!r}")
        native, circumstances = self._native, dict(context or {})
        table = native.render_table(prompt_id, rows, circumstances, allow_unknown, threads)
        if table is not None:
            return table
        if TYPE_CHECKING:
            assert isinstance(rows, Iterable)
        if not hasattr(rows, "__iter__") or hasattr(rows, "keys") or isinstance(rows, (str, bytes)):
            raise TypeError(f"rows must be a table or dicts in a list, not {type(rows).__name__}")
        given = [_row(number, row) for number, row in enumerate(rows)]
        done = native.render_rows(prompt_id, given, circumstances, allow_unknown, threads)
        if errors == "raise":
            for number, text in enumerate(done):
                if isinstance(text, CuebookError):
                    text.details["row"] = number
                    raise text
        return done

    @overload
    async def render_batch_async(self, prompt_id: str, rows: ArrowTable, /, **more: Any) -> RenderedTable: ...

    @overload
    async def render_batch_async(self, prompt_id: str, rows: Iterable[Mapping[str, Any]], /, **more: Any) -> Batch: ...

    async def render_batch_async(self, prompt_id: str, rows: Any, /, **more: Any) -> RenderedTable | Batch:
        """Like `render_batch`, in a worker thread. Cancelling the task ends it."""
        work: Callable[..., RenderedTable | Batch] = self.render_batch
        return await in_thread(work, prompt_id, rows, **more)

    def validate(
        self,
        prompt_id: str,
        /,
        *,
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Rows:
        """Problems with variables for a prompt: missing ones and wrong types."""
        return self._native.validate(prompt_id, _joined(variables, more), dict(context or {}))

    # Finding

    def list(self, *, type: str | None = None, tag: str | None = None) -> Rows:
        """Every prompt by id, or those of a type or with a tag."""
        return self._native.list(type, tag)

    def show(self, prompt_id: str, /) -> dict[str, Any]:
        """The definition of a prompt: metadata, variables, permissions, limits."""
        return self._native.show(prompt_id, False)

    def show_file(self, path: str | os.PathLike[str], /) -> dict[str, Any]:
        """The definition of the prompt in a file or folder."""
        return self._native.show(self._path(path), True)

    def candidates(self, prompt_id: str, /) -> Rows:
        """Every place that offers an id."""
        return self._native.candidates(prompt_id)

    def resolve(self, prompt_id: str, source: str, /) -> dict[str, Any]:
        """Records which place is meant by an id."""
        return self._native.resolve(prompt_id, source)

    # Checking

    def check(self, *targets: str | os.PathLike[str]) -> Report:
        """Checks prompts (ids or paths), or the whole project."""
        found = self._native.check([os.fspath(target) for target in targets])
        return Report(map(Diagnostic, found["findings"]), found["prompts"], found["report"])

    async def check_async(self, *targets: str | os.PathLike[str]) -> Report:
        """Like `check`, in a worker thread."""
        return await in_thread(self.check, *targets)

    def test(self, *targets: str | os.PathLike[str]) -> Rows:
        """Runs the cases next to prompts: for each file its `cases`, or the `error` that it has."""
        return self._native.test([os.fspath(target) for target in targets])

    async def test_async(self, *targets: str | os.PathLike[str]) -> Rows:
        """Like `test`, in a worker thread."""
        return await in_thread(self.test, *targets)

    def attack(
        self,
        prompt_id: str,
        /,
        *,
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Tries injection strings in every input, and reports whether roles, messages and tools stay the same."""
        return self._native.attack(prompt_id, _joined(variables, more), dict(context or {}))

    async def attack_async(self, prompt_id: str, /, **more: Any) -> dict[str, Any]:
        """Like `attack`, in a worker thread."""
        return await in_thread(self.attack, prompt_id, **more)

    def diff(
        self,
        before: str,
        after: str,
        /,
        *,
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Compares two prompts: ids, paths, or sources of candidates."""
        return self._native.diff(before, after, _joined(variables, more), dict(context or {}))

    async def diff_async(self, before: str, after: str, /, **more: Any) -> dict[str, Any]:
        """Like `diff`, in a worker thread."""
        return await in_thread(self.diff, before, after, **more)

    def convert(
        self, prompt_id: str, to: str, /, *, name: str | None = None, category: str = "", strict: bool = False
    ) -> dict[str, Any]:
        """A prompt in another dialect (`template`, `prompty`, `sections`, `directive`): `files`, and a `report` of what is lost.

        With `strict`, a loss is an error. Nothing is written.
        """
        return self._native.convert(prompt_id, to, name, category, strict)

    # Items

    def execute(
        self,
        item_type: str,
        item_id: str,
        /,
        parameters: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        **more: Any,
    ) -> dict[str, Any]:
        """Runs a tool, or returns the instructions of a directive or the text of knowledge. Every item is verified first."""
        arguments = {"item_type": item_type, "item_id": item_id, "dry_run": dry_run, **more}
        return self._act("execute", {**arguments, "parameters": dict(parameters or {})})

    async def execute_async(self, item_type: str, item_id: str, /, *given: Any, **more: Any) -> dict[str, Any]:
        """Like `execute`, in a worker thread. Cancelling the task stops the tool."""
        return await in_thread(self.execute, item_type, item_id, *given, **more)

    def search(self, query: str = "", /, *, scope: str = "directive", **more: Any) -> dict[str, Any]:
        """Searches items. `scope` is a type, optionally with a folder: `tool.rye.core.*`."""
        return self._act("search", {"query": query, "scope": scope, **more})

    async def search_async(self, query: str = "", /, **more: Any) -> dict[str, Any]:
        """Like `search`, in a worker thread."""
        return await in_thread(self.search, query, **more)

    def load(self, item_type: str, item_id: str, /, **more: Any) -> dict[str, Any]:
        """Reads an item's file; with `destination="project"`, also copies it."""
        return self._act("load", {"item_type": item_type, "item_id": item_id, **more})

    def sign(self, item_type: str, item_id: str, /, *, source: str = "project") -> dict[str, Any]:
        """Checks items and signs their files with your key. The id may be a pattern."""
        return self._act("sign", {"item_type": item_type, "item_id": item_id, "source": source})

    def generate_key(self, *, owner: str = "", replace: bool = False) -> str:
        """Makes your key, with which `sign` signs, and returns its fingerprint. A key that you have is kept unless `replace` is set."""
        import getpass

        return self._native.generate_key(owner or getpass.getuser(), replace)

    def verify(self, item_type: str, item_id: str, /) -> dict[str, Any]:
        """Verifies an item's signature."""
        return self._native.verify(item_type, item_id)

    def _act(self, action: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self._native.act(action, {"project_path": self._root, **arguments})

    # Running

    def start(
        self,
        prompt_id: str,
        /,
        *,
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        model: str | None = None,
        provider: str | None = None,
        limits: Mapping[str, Any] | None = None,
        tools: Mapping[str, str] | None = None,
        allow: Iterable[str] = (),
        skills: Iterable[str] = (),
        replay: str | os.PathLike[str] | None = None,
        record: str | os.PathLike[str] | None = None,
        store: str | None = None,
        unfenced: bool = False,
        output_type: type[T] | None = None,
        **more: Any,
    ) -> Run[T]:
        """Starts a run of a prompt in a worker thread.

        The outputs that the prompt declares are an object of `output_type`, a dataclass or pydantic model; without it, a dict. The
        prompt's tools are functions (`@book.tool`), or items that `tools` names. `limits` replaces limits, such as `{"turns": 4}`.
        The model can open `skills`, given by their ids. `replay` plays recorded replies back instead of calling a provider, and
        `record` records them.
        """
        from ._runs import Run

        options = _options(model, provider, limits, replay, record, store, unfenced)
        options.update(tools=dict(tools or {}), allow=[*allow], skills=[*skills])
        given, circumstances, native = _joined(variables, more), dict(context or {}), self._native
        kind = output_type or self._outputs.get(prompt_id)
        functions = [*self._tools.items()]
        return Run(lambda hear, cancel: native.run(prompt_id, given, circumstances, options, functions, hear, cancel), kind)

    @overload
    def run(self, prompt_id: str, /, *, output_type: type[T], **more: Any) -> RunResult[T]: ...

    @overload
    def run(self, prompt_id: str, /, **more: Any) -> RunResult[Any]: ...

    def run(self, prompt_id: str, /, **more: Any) -> RunResult[Any]:
        """Runs a prompt and waits for its end. Takes what `start` takes. Ctrl-C stops the run."""
        return self.start(prompt_id, **more).result()

    @overload
    async def run_async(self, prompt_id: str, /, *, output_type: type[T], **more: Any) -> RunResult[T]: ...

    @overload
    async def run_async(self, prompt_id: str, /, **more: Any) -> RunResult[Any]: ...

    async def run_async(self, prompt_id: str, /, **more: Any) -> RunResult[Any]:
        """Like `run`, without blocking the loop. Cancelling the task stops the run."""
        return await self.start(prompt_id, **more).result_async()

    def resume(
        self,
        thread_id: str,
        /,
        *,
        model: str | None = None,
        provider: str | None = None,
        limits: Mapping[str, Any] | None = None,
        replay: str | os.PathLike[str] | None = None,
        record: str | os.PathLike[str] | None = None,
        store: str | None = None,
        unfenced: bool = False,
        allow_again: bool = False,
        take_over: bool = False,
        output_type: type[T] | None = None,
    ) -> Run[T]:
        """Takes a thread up again, from its log."""
        from ._runs import Run

        options = _options(model, provider, limits, replay, record, store, unfenced)
        options.update(allow_again=allow_again, take_over=take_over)
        functions, native = [*self._tools.items()], self._native
        return Run(lambda hear, cancel: native.resume(thread_id, options, functions, hear, cancel), output_type)

    def threads(self, *, prompt: str | None = None, most: int | None = None, store: str | None = None) -> Rows:
        """The threads of the project, newest first."""
        return self._native.threads({"prompt": prompt, "store": store}, most)

    def events(self, thread_id: str, /, *, store: str | None = None) -> Rows:
        """The log of a thread."""
        return self._native.events(thread_id, {"store": store})

    def cancel(self, thread_id: str, /, *, take_over: bool = False, store: str | None = None) -> dict[str, Any]:
        """Stops a thread that any process runs, and those below it."""
        return self._native.cancel_thread(thread_id, {"take_over": take_over, "store": store})

    # Functions of Python

    def pre_render(self, prompt_id: str) -> Callable[[F], F]:
        """Registers a function that changes the variables before a prompt is rendered: `(variables, context) -> variables`."""
        return self._registers("pre_render", prompt_id)

    def post_render(self, prompt_id: str) -> Callable[[F], F]:
        """Registers a function that changes the text after a prompt was rendered: `(text, variables, context) -> text`."""
        return self._registers("post_render", prompt_id)

    def provider(self, namespace: str) -> Callable[[F], F]:
        """Registers a function that gives the variables of a namespace: `(context) -> dict`."""
        return self._registers("provider", namespace)

    def engine(self, key: str) -> Callable[[F], F]:
        """Registers a template engine for `.prompty` files that name it: `(template, variables) -> text`."""
        return self._registers("engine", key)

    @overload
    def filter(self, function: F, /, *, name: str | None = None) -> F: ...

    @overload
    def filter(self, function: None = None, /, *, name: str | None = None) -> Callable[[F], F]: ...

    def filter(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
        """Registers a filter for Jinja2 templates: `{{ value | shout }}`."""
        return self._decorates("filter", function, name)

    @overload
    def template_test(self, function: F, /, *, name: str | None = None) -> F: ...

    @overload
    def template_test(self, function: None = None, /, *, name: str | None = None) -> Callable[[F], F]: ...

    def template_test(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
        """Registers a test for Jinja2 templates: `{% if value is short %}`."""
        return self._decorates("test", function, name)

    @overload
    def function(self, function: F, /, *, name: str | None = None) -> F: ...

    @overload
    def function(self, function: None = None, /, *, name: str | None = None) -> Callable[[F], F]: ...

    def function(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
        """Registers a function for Jinja2 templates: `{{ greeting(name) }}`."""
        return self._decorates("function", function, name)

    @overload
    def tool(self, function: F, /, *, name: str | None = None) -> F: ...

    @overload
    def tool(self, function: None = None, /, *, name: str | None = None) -> Callable[[F], F]: ...

    def tool(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
        """Registers the function behind a tool, for `Rendered.converse`, `run` and `start`."""

        def register(function: F) -> F:
            self._tools[name or function.__name__] = function
            return function

        return register if function is None else register(function)

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, /) -> str:
        """Calls a registered tool, and returns the text that a model gets."""
        from ._values import call_tool

        if name not in self._tools:
            near = _native.nearest(name, list(self._tools))
            known = f"the tools are {', '.join(self._tools)}" if self._tools else "register it with @book.tool"
            hint = f"did you mean `{near[0]}`?" if near else known
            raise errors.InvokerError(f"no function is registered for the tool `{name}`", code="CB730", hint=hint)
        return call_tool(self._tools[name], dict(arguments or {}))

    def _registers(self, kind: str, name: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            self._functions = [one for one in self._functions if one[:2] != (kind, name)]
            self._functions.append((kind, name, function))
            self._native_book = None
            return function

        return register

    def _decorates(self, kind: str, function: Callable[..., Any] | None, name: str | None) -> Any:
        def register(function: F) -> F:
            return self._registers(kind, name or function.__name__)(function)

        return register if function is None else register(function)

    def _render(
        self,
        prompt: str,
        variables: Mapping[str, Any] | None,
        more: dict[str, Any],
        context: Mapping[str, Any] | None,
        is_path: bool,
        allow_unknown: bool,
    ) -> Rendered:
        # This is the shortest way on purpose: a small prompt takes less time to render than to get here.
        book = self._native_book or self._native
        given = more if variables is None else _joined(variables, more)
        native = book.render(prompt, given, None if context is None else dict(context), is_path, allow_unknown)
        return Rendered(native, {**self._tools} if self._tools else None)

    def _path(self, path: str | os.PathLike[str]) -> str:
        return os.path.join(self._root, os.fspath(path))


def _row(number: int, row: Any) -> dict[str, Any]:
    try:
        return dict(row)
    except (TypeError, ValueError):
        raise TypeError(f"rows[{number}] must be a dict, not {type(row).__name__}") from None


def _joined(variables: Mapping[str, Any] | None, more: dict[str, Any]) -> dict[str, Any]:
    if variables is None:
        return more
    if not more:
        return variables if type(variables) is dict else dict(variables)
    twice = [name for name in more if name in variables]
    if twice:
        raise TypeError(f"the variable {twice[0]!r} is in `variables` and is a keyword argument")
    return {**variables, **more}


def _options(
    model: str | None,
    provider: str | None,
    limits: Mapping[str, Any] | None,
    replay: str | os.PathLike[str] | None,
    record: str | os.PathLike[str] | None,
    store: str | None,
    unfenced: bool,
) -> dict[str, Any]:
    return {
        "model": model,
        "provider": provider,
        "limits": dict(limits or {}),
        "replay": os.path.abspath(replay) if replay is not None else None,
        "record": os.path.abspath(record) if record is not None else None,
        "store": store,
        "unfenced": unfenced,
    }


_books = weakref.WeakSet()
_left: list[Any] = []


def _after_fork() -> None:
    # Workers and locks belong to the parent. The child leaves them alone, and makes its own when it needs them.
    for book in _books:
        _left.append(book._native_book)
        book._native_book = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
