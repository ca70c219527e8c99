"""Values of Python in templates."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import importlib
import pathlib
import uuid
from collections import OrderedDict, namedtuple
from typing import Any

import pytest

from conftest import Project
from cuebook import Book, PromptValidationError


@dataclasses.dataclass
class Inner:
    when: datetime.date


@dataclasses.dataclass
class Outer:
    name: str
    inner: Inner


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Loud(str):
    def __str__(self) -> str:
        return "LOUD"


Point = namedtuple("Point", "x y")


@pytest.fixture
def shown(project: Project) -> Any:
    book = Book(project({"prompts/p/template.md": "{{ v }}", "prompts/j/template.md": "{{ v | tojson }}"}))

    def show(value: Any, prompt: str = "p") -> str:
        return book.render(prompt, v=value).text

    return show


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (7, "7"),
        (-(2**63), "-9223372036854775808"),
        (2**64 - 1, "18446744073709551615"),
        (10**30, "1" + "0" * 30),
        (2.5, "2.5"),
        (True, "True"),
        (Colour.RED, "red"),
        (Level.HIGH, "3"),
        (Loud("quiet"), "quiet"),
        (datetime.date(2026, 2, 20), "2026-02-20"),
        (datetime.datetime(2026, 2, 20, 15, 30, tzinfo=datetime.timezone.utc), "2026-02-20T15:30:00+00:00"),
        (datetime.time(15, 30), "15:30:00"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
    ],
)
def test_a_value_prints(shown: Any, value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (None, "null"),
        ((1, "a"), '[1, "a"]'),
        (OrderedDict(a=1), '{"a": 1}'),
        (Outer("Ada", Inner(datetime.date(2026, 1, 2))), '{"inner": {"when": "2026-01-02"}, "name": "Ada"}'),
        (Point(1, 2), '{"x": 1, "y": 2}'),
        (range(3), "[0, 1, 2]"),
    ],
)
def test_a_structure_is_read(shown: Any, value: Any, json: str) -> None:
    assert shown(value, "j") == json


def test_pydantic_models_and_numpy_values_are_read(shown: Any) -> None:
    pydantic, numpy = importlib.import_module("pydantic"), importlib.import_module("numpy")
    model = pydantic.create_model("Person", name=(str, ...), born=(datetime.date, ...))
    assert shown(model(name="Ada", born="1815-12-10"), "j") == '{"born": "1815-12-10", "name": "Ada"}'
    assert shown(numpy.int64(7)) == "7" and shown(numpy.float32(0.5)) == "0.5"
    assert shown(numpy.array([1, 2]), "j") == "[1, 2]"


def test_missing_values_of_pandas_are_null(shown: Any) -> None:
    pandas, numpy = importlib.import_module("pandas"), importlib.import_module("numpy")
    for missing in (pandas.NA, pandas.NaT, numpy.datetime64("NaT")):
        assert shown([missing], "j") == "[null]"
    assert shown(pandas.Timestamp("2026-02-20T15:30")) == "2026-02-20T15:30:00"
    assert shown(pandas.Series([1, 2]), "j") == "[1, 2]"
    for number in (numpy.nan, numpy.float64("nan")):
        with pytest.raises(PromptValidationError, match="`v` is NaN"):
            shown(number)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, object()]}, "`v.a[1]` is a `object`"),
        ({"a": float("nan")}, "`v.a` is NaN"),
        ([float("inf")], "`v[0]` is inf"),
        ({"a": {1: 2}}, "`v.a` has the key 1"),
        ({1, 2}, "`v` is a `set`"),
        (b"bytes", "`v` is a `bytes`"),
        (["\ud800"], "`v[0]` is not valid Unicode"),
    ],
)
def test_a_refused_value_is_named_by_its_path(shown: Any, value: Any, said: str) -> None:
    with pytest.raises(PromptValidationError) as raised:
        shown(value)
    assert said in raised.value.message
    assert raised.value.code == "CB407" and raised.value.hint


def test_a_value_that_contains_itself_is_refused(shown: Any) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PromptValidationError, match="nested more than"):
        shown(loop)
