"""Rows of a Ray data set, rendered, asked and judged as `cuebook batch` does it: the same columns, keys and error codes.

`render`, `run` and `judge` take a data set and return one with further columns. Each is a stage for `map_batches`, which pickles; the
classes `Render`, `Run` and `Judge` are those stages, for programs that call `map_batches` on their own. Ray is imported when a function
is called, and pyarrow when a stage gets its first block.

Every process that works on the data set keeps a journal of the answers in one folder, which all machines share. So an answer that was
recorded is not asked twice: not by another process, when a machine is lost, and not by the next run.
"""

from __future__ import annotations

import datetime
import os
import re
import uuid
from importlib import import_module
from typing import Any, Mapping

from . import _native
from ._book import Book
from .errors import UsageError

__all__ = ["Judge", "Render", "Run", "Stage", "judge", "render", "run"]

#: A column that numbers the rows, for data without a column `row`.
_NUMBER = "__cuebook_row"
_BLOCK = 256
_opened: dict[str, _native.Stage] = {}


class Stage:
    """A stage of a data set. It gets a block as a table of pyarrow, and returns the table with further columns."""

    def __init__(
        self,
        prompt: str,
        *,
        project: Book | str | os.PathLike[str],
        variables: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        prefix: str = "",
        no_inputs: bool = False,
        **options: Any,
    ) -> None:
        self.prompt = prompt
        # All processes have one clock, so that a prompt with a date renders the same in each of them.
        now = datetime.datetime.now(datetime.timezone.utc)
        self.book = project if isinstance(project, Book) else Book(project, clock=now.strftime("%Y-%m-%dT%H:%M:%S+00:00[UTC]"))
        self.variables, self.context = dict(variables or {}), dict(context or {})
        self.prefix, self.no_inputs = prefix, no_inputs
        self.options: dict[str, Any] = {**options, "prefix": prefix, "no_inputs": no_inputs}
        if options.get("journal") is not None:
            self.options["journal"] = os.path.abspath(options["journal"])
        if not isinstance(self.options.get("requests", 1), int) or not 1 <= self.options.get("requests", 1) <= 512:
            raise UsageError("`requests` must be a number from 1 to 512", code="CB407", hint="leave it out for 8")
        self._id = uuid.uuid4().hex

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.prompt!r}>"

    def open(self) -> None:
        """Reads the prompt, its model and its judge, so that what is wrong with them is raised here and not on another machine."""
        self._stage(self.book, {**self.options, "journal": None})

    def __call__(self, table: Any) -> Any:
        pa = import_module("pyarrow")
        row = f"{self.prefix}row"
        names = table.column_names
        if _NUMBER in names:
            number = table.column(_NUMBER)
            table = table.drop_columns([_NUMBER])
            if row not in names:
                table = table.append_column(row, number)
        if self._id not in _opened:
            _opened[self._id] = self._stage(self.book, self.options)
        added = _opened[self._id].columns(table)
        kinds = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
        columns = {name: pa.array(values, kinds.get(kind, pa.string())) for name, kind, values in added}
        given = {name: table.column(name) for name in table.column_names if name != row}
        first = {row: columns.pop(row, table.column(row) if row in table.column_names else None)}
        return pa.table({**_present(first), **({} if self.no_inputs else given), **columns})

    def _stage(self, book: Book, options: dict[str, Any]) -> _native.Stage:
        return _native.Stage(book._native, self.prompt, self.variables, self.context, options)


def _present(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if column is not None}


class Render(Stage):
    """Renders each row, as `cuebook batch PROMPT DATA`."""

    def __init__(
        self,
        prompt: str,
        *,
        project: Book | str | os.PathLike[str] = ".",
        form: str = "text",
        columns: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(prompt, project=project, form=form, columns=dict(columns or {}), **more)


class Run(Stage):
    """Asks the model for each row, as `cuebook batch PROMPT DATA --run`."""

    def __init__(
        self,
        prompt: str,
        *,
        journal: str | os.PathLike[str],
        project: Book | str | os.PathLike[str] = ".",
        model: str | None = None,
        provider: str | None = None,
        form: str | None = None,
        columns: Mapping[str, str] | None = None,
        requests: int = 8,
        **more: Any,
    ) -> None:
        asks: dict[str, Any] = {"run": True, "journal": journal, "model": model, "provider": provider, "requests": requests}
        super().__init__(prompt, project=project, form=form, columns=dict(columns or {}), **asks, **more)


class Judge(Stage):
    """Judges the answers of a prompt, as `cuebook batch PROMPT DATA --run --judge NAME=JUDGE`."""

    def __init__(
        self,
        judge: str,
        *,
        of: str,
        journal: str | os.PathLike[str],
        name: str | None = None,
        project: Book | str | os.PathLike[str] = ".",
        model: str | None = None,
        provider: str | None = None,
        columns: Mapping[str, str] | None = None,
        requests: int = 8,
        **more: Any,
    ) -> None:
        self.name = re.sub(r"\W", "_", judge.rsplit("/", 1)[-1].split(".")[0]) if name is None else name
        if not re.fullmatch(r"\w+", self.name) or self.name == "answer":
            hint = "pass a `name` of letters, digits and _, which is not `answer`"
            raise UsageError(f"`{self.name}` cannot begin the names of a judge's columns", code="CB407", hint=hint)
        told = {"name": self.name, "prompt": judge, "model": model}
        asks: dict[str, Any] = {"run": True, "journal": journal, "judge": told, "provider": provider, "requests": requests}
        super().__init__(of, project=project, columns=dict(columns or {}), **asks, **more)


def render(data: Any, prompt: str, /, *, ray: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """A Ray data set with the columns `row`, `text`, `render_hash`, `error` and `error_message`.

    `project` is a folder or a `Book`; each machine needs it at the same path. `form` is `text`, `messages`, `wire` or `wire:NAME`.
    `columns` maps columns to variables of other names. `variables` and `context` are those of all rows. `prefix` is put before the names
    of new columns, and `no_inputs` leaves out the others. `ray` has further arguments of `map_batches`.

    Rows keep their order. A column `row` numbers them; in data without one the numbers increase, with gaps between blocks.
    """
    return _staged(data, Render(prompt, **more), {"batch_size": None, **(ray or {})}, number=True)


def run(data: Any, prompt: str, /, *, journal: str | os.PathLike[str], ray: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """A Ray data set with the answers of the model: `answer`, its outputs, usage, cost and errors.

    `journal` is a folder that all machines share. An answer that is recorded there is not asked twice. `model` and `provider` choose who is
    asked. Each process has at most `requests` requests on their way at once. The other arguments are those of `render`.
    """
    return _staged(data, Run(prompt, journal=journal, **more), {"batch_size": _BLOCK, **(ray or {})}, number=True)


def judge(
    data: Any, judge: str, /, *, of: str, journal: str | os.PathLike[str], ray: Mapping[str, Any] | None = None, **more: Any
) -> Any:
    """The data set of `run` with what a judge says of each answer, in columns that begin with `name`.

    `of` is the prompt that was run. The judge's variables are the columns of the data, and `prompt`, `answer` and `outputs`. The other
    arguments are those of `run`; `columns`, `variables`, `context` and `prefix` are those with which the prompt was run.
    """
    return _staged(data, Judge(judge, of=of, journal=journal, **more), {"batch_size": _BLOCK, **(ray or {})}, number=False)


def _staged(data: Any, stage: Stage, arguments: dict[str, Any], *, number: bool) -> Any:
    stage.open()
    data.context.execution_options.preserve_order = True
    if number:
        count = import_module("ray.data.expressions").monotonically_increasing_id()
        data = data.with_column(_NUMBER, count + 1)
    # A function is a task, which Ray gives to another process when one is lost.
    return data.map_batches(stage.__call__, batch_format="pyarrow", zero_copy_batch=True, **arguments)
