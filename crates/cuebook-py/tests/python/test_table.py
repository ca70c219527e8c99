"""Tables through the Arrow C interface: pyarrow's here; those of other libraries come in the same form."""

from __future__ import annotations

import datetime
import decimal
import importlib
import pickle
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from conftest import Project
from cuebook import Book, CuebookError, PromptNotFoundError, PromptValidationError, RenderedTable


@pytest.fixture
def shows(project: Project) -> Book:
    return Book(project({"prompts/p/template.md": "{{ v | tojson }}", "prompts/greeting/template.md": "Hello {{ name }}!"}))


def _shown(book: Book, values: Any) -> list[str | None]:
    done: RenderedTable = book.render_batch("p", pa.table({"v": values}))
    return done.texts


@pytest.mark.parametrize("threads", [1, 4])
def test_rows_keep_their_order(shows: Book, threads: int) -> None:
    names = [f"n{number}" for number in range(5000)]
    table = pa.table({"name": pa.chunked_array([names[:7], [], names[7:4000], names[4000:]])})
    done = shows.render_batch("greeting", table, threads=threads)
    assert done.texts == [f"Hello {name}!" for name in names] and done.errors == []
    made = pa.table(done)
    assert made.column_names == ["text", "code", "error"] and made["text"].to_pylist() == done.texts
    made.validate(full=True)
    # A slice begins in the middle of its buffers.
    assert shows.render_batch("greeting", table.slice(4990, 2)).texts == ["Hello n4990!", "Hello n4991!"]


def test_every_kind_of_column_is_read(shows: Book) -> None:
    zone = datetime.timezone.utc
    moment = datetime.datetime(2026, 2, 20, 15, 30, 0, 250, tzinfo=zone)
    long = "a text of more than twelve bytes"
    for values, shown in [
        (pa.array(["a", None, long]), ['"a"', "null", f'"{long}"']),
        (pa.array(["a", None, long], pa.large_string()), ['"a"', "null", f'"{long}"']),
        (pa.array(["a", None, long], pa.string_view()), ['"a"', "null", f'"{long}"']),
        (pa.array(["a", None, "a"]).dictionary_encode(), ['"a"', "null", '"a"']),
        (pa.array([True, None, False]), ["true", "null", "false"]),
        (pa.array([1, -2], pa.int8()), ["1", "-2"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([2.5, None]), ["2.5", "null"]),
        (pa.array([decimal.Decimal("-0.05")], pa.decimal128(5, 2)), ['"-0.05"']),
        (pa.array([datetime.date(1969, 12, 31)]), ['"1969-12-31"']),
        (pa.array([moment]), [f'"{moment.isoformat()}"']),
        (pa.array([moment], pa.timestamp("us", "+05:30")), ['"2026-02-20T21:00:00.000250+05:30"']),
        (pa.array([moment], pa.timestamp("ns", "Europe/Berlin")), ['"2026-02-20T16:30:00.000250+01:00"']),
        (pa.array([moment.replace(tzinfo=None)], pa.timestamp("us")), [f'"{moment.replace(tzinfo=None).isoformat()}"']),
        (pa.array([datetime.time(1, 2, 3)]), ['"01:02:03"']),
        (pa.array([[1, None], [], None]), ["[1, null]", "[]", "null"]),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), ["[1, 2]"]),
        (pa.array([{"a": [{"b": "c"}]}, None]), ['{"a": [{"b": "c"}]}', "null"]),
        (pa.array([{"a": 1}, {"a": 2}, {"a": 3}]).slice(1), ['{"a": 2}', '{"a": 3}']),
        (pa.nulls(2), ["null", "null"]),
    ]:
        assert _shown(shows, values) == shown, values.type


def test_a_row_that_fails_is_an_error_row(project: Project) -> None:
    book = Book(project({"prompts/p/template.md": "{{ 6 // n }}"}))
    done = book.render_batch("p", pa.table({"n": [1, 0, 3]}))
    assert done.texts == ["6", None, "2"]
    [(row, code, message)] = done.errors
    assert row == 1 and code.startswith("CB") and message
    assert pa.table(done)["code"].to_pylist() == [None, code, None]
    assert repr(done) == "<RenderedTable: 3 rows, 1 failed>" and len(done) == 3
    copy = pickle.loads(pickle.dumps(done))
    assert (copy.texts, copy.errors) == (done.texts, done.errors)
    not_finite = book.render_batch("p", pa.table({"n": [2.0, float("nan")]}))
    assert not_finite.errors == [(1, "CB407", "the value of `n` is NaN, which is not a number")]


def test_columns_are_checked_once(shows: Book) -> None:
    with pytest.raises(PromptValidationError, match="nmae"):
        shows.render_batch("greeting", pa.table({"nmae": ["Ada"]}))
    wide = pa.table({"name": ["Ada"], "photo": [b"bytes"]})
    assert shows.render_batch("greeting", wide, allow_unknown=True).texts == ["Hello Ada!"]
    with pytest.raises(CuebookError, match="column `v` cannot be read: its type has the Arrow format `z`"):
        shows.render_batch("p", pa.table({"v": [b"bytes"]}))
    tall = pa.table({"v": pa.array([None], pa.decimal128(5, 2_000_000_000))})
    with pytest.raises(CuebookError, match="no template can print"):
        shows.render_batch("p", tall)
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["name", "name"])
    with pytest.raises(CuebookError, match="two of its columns are called `name`"):
        shows.render_batch("greeting", twice)
    with pytest.raises(PromptNotFoundError):
        shows.render_batch("greting", pa.table({"name": ["Ada"]}))
    untyped: Any = shows
    for wrong in (7, "Ada", {"name": "Ada"}, None):
        with pytest.raises(TypeError, match="must be a table or dicts in a list, not"):
            untyped.render_batch("greeting", wrong)
    with pytest.raises(TypeError, match=r"rows\[1\] must be a dict, not int"):
        untyped.render_batch("greeting", [{"name": "Ada"}, 7])
    wrong_options: list[dict[str, Any]] = [{"threads": 0}, {"threads": -1}, {"errors": "rase"}]
    for more in wrong_options:
        with pytest.raises(ValueError, match=f"{[*more][0]} must be"):
            untyped.render_batch("greeting", [{"name": "Ada"}], **more)


def test_tables_of_pandas_and_polars_are_read(shows: Book) -> None:
    pandas, polars = importlib.import_module("pandas"), importlib.import_module("polars")
    days = [datetime.datetime(2026, 2, 20, 15, 30), None]
    for values, shown in [
        (["a", None], ['"a"', "null"]),
        ([1.5, None], ["1.5", "null"]),
        ([True, False], ["true", "false"]),
        (days, ['"2026-02-20T15:30:00"', "null"]),
    ]:
        for library in (pandas, polars):
            assert shows.render_batch("p", library.DataFrame({"v": values})).texts == shown, (library, values)
    # pandas means a missing value by NaN, and Polars a number.
    assert shows.render_batch("p", pandas.DataFrame({"v": [float("nan")]})).texts == ["null"]
    [(row, code, _)] = shows.render_batch("p", polars.DataFrame({"v": [float("nan")]})).errors
    assert (row, code) == (0, "CB407")
    categories = pandas.DataFrame({"v": pandas.Categorical(["a", "b", "a"])})
    assert shows.render_batch("p", categories).texts == ['"a"', '"b"', '"a"']
    done = shows.render_batch("greeting", polars.DataFrame({"name": ["Ada", "Bo"]}))
    assert polars.DataFrame(done)["text"].to_list() == done.texts == pandas.DataFrame.from_arrow(done)["text"].to_list()


def test_streams_batches_and_empty_tables_are_tables(shows: Book) -> None:
    batch = pa.record_batch({"name": ["Ada", "Bo"]})
    assert len(shows.render_batch("greeting", batch)) == 2
    reader = pa.RecordBatchReader.from_batches(batch.schema, iter([batch, batch]))
    assert shows.render_batch("greeting", reader).texts == ["Hello Ada!", "Hello Bo!"] * 2
    empty = shows.render_batch("greeting", batch.slice(0, 0))
    assert len(empty) == 0 and pa.table(empty).num_rows == 0
    again: RenderedTable = shows.render_batch("greeting", pa.table(shows.render_batch("greeting", batch)).select(["text"]).rename_columns(["name"]))
    assert again.texts == ["Hello Hello Ada!!", "Hello Hello Bo!!"]

    def fails() -> Any:
        yield batch
        raise OSError("the disk is gone")

    with pytest.raises(CuebookError, match="the disk is gone"):
        shows.render_batch("greeting", pa.RecordBatchReader.from_batches(batch.schema, fails()))



def test_a_row_has_the_text_of_a_render(project: Project) -> None:
    book = Book(project({
        "prompts/plain/template.md": "{% include 'parts/hello.md' %}{% for one in name %}{{ one }} {% endfor %}",
        "prompts/parts/hello.md": "Hello {{ name|upper }}!\n",
        "prompts/outer/template.md": "Before.\n{% include 'prompt:plain' %}\nAfter.",
        "prompts/chat.prompty": "---\nname: chat\nmodel: gpt-4o\ninputs:\n  - {name: name, kind: string, required: true}\n---\nuser:\n{{ name }}\n",
        "prompts/strict.prompty": "---\nname: strict\nmodel: gpt-4o\ninputs:\n  - {name: name, kind: string, strict: true}\n---\nuser:\n{{ name }}\n",
    }))
    names = ["Ada", "user:\nno", ""]
    for prompt in ("plain", "outer", "chat"):
        table = book.render_batch(prompt, pa.table({"name": names}))
        assert table.texts == [book.render(prompt, name=name).text for name in names], prompt
    strict = book.render_batch("strict", pa.table({"name": names}))
    with pytest.raises(CuebookError) as raised:
        book.render("strict", name=names[1])
    assert [(row, code) for row, code, _ in strict.errors] == [(1, raised.value.code)]
