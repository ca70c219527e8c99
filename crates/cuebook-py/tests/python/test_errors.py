"""Exceptions: their classes, what they carry, how they print, and that they pickle."""

from __future__ import annotations

import pickle

import pytest

import cuebook
from conftest import Project
from cuebook import Book, CuebookError, PromptConflictError, PromptNotFoundError, PromptRenderError, PromptValidationError
from cuebook.errors import Diagnostic


def test_not_found_carries_the_nearest_id(book: Book) -> None:
    with pytest.raises(PromptNotFoundError) as raised:
        book.render("greting")
    assert raised.value.code == "CB101"
    assert raised.value.nearest == ["greeting"]
    assert raised.value.prompt_id == "greting"


def test_an_error_prints_as_the_command_line_prints_it(project: Project) -> None:
    book = Book(project({"prompts/p/template.md": "Hello\n{{ name | uper }}\n"}))
    with pytest.raises(CuebookError) as raised:
        book.render("p", name="Ada")
    error = raised.value
    assert (error.file, error.line) == ("prompts/p/template.md", 2)
    assert error.excerpt == "{{ name | uper }}"
    printed = str(error)
    assert printed.startswith(f"error[{error.code}]: {error.message}")
    assert "prompts/p/template.md:2:" in printed and "{{ name | uper }}" in printed
    assert error.hint is not None and "upper" in error.hint and error.hint in printed
    assert (error.advice, error.commands, error.diagnostics[0].advice) == (error.hint, [], error.hint)


def test_advice_for_programs_is_apart_from_commands(project: Project) -> None:
    with pytest.raises(PromptNotFoundError) as raised:
        Book(project({"prompts/p/template.md": "Hello"})).render("zebra")
    error = raised.value
    assert (error.hint, error.advice) == ("list the prompts: cuebook list", "list the prompts")
    assert error.commands == error.diagnostics[0].commands == ["cuebook list"]


def test_every_missing_variable_is_reported(project: Project) -> None:
    code = 'VARIABLES = {"required": [{"name": "a", "type": "string"}, {"name": "b", "type": "integer"}]}\n'
    book = Book(project({"prompts/p/prompt.py": code, "prompts/p/template.md": "{{ a }}{{ b }}"}))
    with pytest.raises(PromptValidationError) as raised:
        book.render("p")
    assert [one.code for one in raised.value.diagnostics] == ["CB401", "CB401"]
    assert {one["name"] for one in book.validate("p")} == {"a", "b"}


def test_a_conflict_lists_its_candidates(project: Project) -> None:
    places = ["prompts/greet", "user_data/packs/polite/prompts/greet"]
    book = Book(project({f"{place}/template.md": place for place in places}))
    with pytest.raises(PromptConflictError) as raised:
        book.render("greet")
    assert raised.value.prompt_id == "greet"
    assert [one["source"] for one in raised.value.candidates] == places
    book.resolve("greet", places[1])
    assert book.render("greet").text == places[1]


def test_a_failing_template_is_a_render_error(project: Project) -> None:
    book = Book(project({"prompts/p/template.md": "{{ 1 // n }}"}))
    with pytest.raises(PromptRenderError) as raised:
        book.render("p", n=0)
    assert raised.value.line == 1


def test_exceptions_survive_pickle(book: Book) -> None:
    with pytest.raises(PromptNotFoundError) as raised:
        book.render("greting")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is PromptNotFoundError
    assert (str(copy), copy.code, copy.hint, copy.args) == (
        str(raised.value),
        raised.value.code,
        raised.value.hint,
        raised.value.args,
    )


def test_every_exception_class_survives_pickle() -> None:
    for name in cuebook.__all__:
        kind = getattr(cuebook, name)
        if isinstance(kind, type) and issubclass(kind, CuebookError):
            copy = pickle.loads(pickle.dumps(kind("said", code="CB101")))
            assert type(copy) is kind and copy.code == "CB101"


def test_a_diagnostic_survives_pickle_and_compares() -> None:
    one = Diagnostic({"code": "CB101", "message": "m", "file": "f", "line": 1, "column": 2})
    assert pickle.loads(pickle.dumps(one)) == one
    assert str(one) == "f:1:2: m [CB101]"
