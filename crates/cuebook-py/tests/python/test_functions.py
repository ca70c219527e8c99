"""Functions of Python as hooks, providers, filters, tests and tools."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from typing import Any

import pytest

from conftest import Project
from cuebook import Book, CuebookError, InvokerError, PromptHookError
from cuebook.pytest_plugin import MockModel


def test_hooks_and_providers_take_part(project: Project) -> None:
    book = Book(project({"prompts/review/template.md": "Review {{ git.branch }} for {{ who }}."}))

    @book.provider("git")
    def git(context: dict[str, Any]) -> dict[str, Any]:
        assert context["workspace_path"] == str(book.root)
        return {"branch": "main"}

    @book.pre_render("review")
    async def who(variables: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {**variables, "who": "Ada"}

    @book.post_render("review")
    def loud(text: str, variables: dict[str, Any], context: dict[str, Any]) -> str:
        return text + " Now!"

    rendered = book.render("review")
    assert rendered.text == "Review main for Ada. Now!"
    assert rendered.find("Now!")[0].pieces[0].origin["kind"] == "hook"
    assert asyncio.run(_inside_a_loop(book)) == rendered.text


async def _inside_a_loop(book: Book) -> str:
    return book.render("review").text


def test_an_exception_in_a_hook_keeps_its_traceback(book: Book) -> None:
    @book.pre_render("greeting")
    def fails(variables: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("lost")

    with pytest.raises(PromptHookError) as raised:
        book.render("greeting", name="Ada")
    assert raised.value.code == "CB410" and "KeyError: 'lost'" in raised.value.message
    cause = raised.value.__cause__
    assert isinstance(cause, KeyError)
    assert "in fails" in "".join(traceback.format_exception(cause))


def test_a_wrong_return_type_is_an_error(book: Book) -> None:
    @book.pre_render("greeting")
    def nothing(variables: dict[str, Any], context: dict[str, Any]) -> None:
        return None

    with pytest.raises(PromptHookError) as raised:
        book.render("greeting", name="Ada")
    assert raised.value.code == "CB411" and "must return a dict" in raised.value.message


def test_filters_tests_and_functions_extend_templates(project: Project) -> None:
    text = "{{ greet(name) | shout }}{% if name is short %}, {{ team }}{% endif %}"
    book = Book(project({"prompts/p/template.md": text}), globals={"team": "Tides"})

    @book.filter
    def shout(text: str) -> str:
        return text.upper()

    @book.template_test
    def short(text: str) -> bool:
        return len(text) < 20

    @book.function(name="greet")
    def hello(name: str) -> str:
        return f"Hello {name}"

    assert book.render("p", name="Ada").text == "HELLO ADA, Tides"


def test_an_exception_in_a_filter_keeps_its_traceback(project: Project) -> None:
    book = Book(project({"prompts/p/template.md": "a\n{{ name | breaks }}"}))

    @book.filter
    def breaks(text: str) -> str:
        raise ValueError("no more")

    with pytest.raises(CuebookError) as raised:
        book.render("p", name="Ada")
    assert raised.value.line == 2 and isinstance(raised.value.__cause__, ValueError)
    assert "in breaks" in "".join(traceback.format_exception(raised.value))
    with pytest.raises(CuebookError) as raised:
        book.render("missing")
    assert raised.value.__cause__ is None


def upper(text: str) -> str:
    return text.upper()


def test_a_book_with_functions_survives_pickle(project: Project) -> None:
    book = Book(project({"prompts/p/template.md": "{{ name | upper2 }}"}))
    book.filter(upper, name="upper2")
    copy: Book = pickle.loads(pickle.dumps(book))
    assert copy.render("p", name="Ada").text == "ADA"


def test_a_model_calls_functions_of_python(book: Book, mock_model: MockModel) -> None:
    @book.tool
    def weather(city: str) -> dict[str, Any]:
        return {"city": city, "sky": "grey"}

    mock_model.call("weather", city="Oslo").say("It is grey.")
    done = book.render("reply", question="And in Oslo?").converse(mock_model)
    assert (done["result"], done["turns"]) == ("It is grey.", 2)
    told = mock_model.asked[1]["messages"][-1]
    assert told["role"] == "tool" and '"sky": "grey"' in told["content"]


def test_a_model_learns_of_a_tool_that_failed(book: Book, mock_model: MockModel) -> None:
    @book.tool(name="weather")
    async def broken(city: str) -> str:
        raise RuntimeError("no satellite")

    mock_model.call("weather", city="Oslo").say("Unknown.")
    assert book.render("reply", question="?").converse(mock_model)["result"] == "Unknown."
    assert "no satellite" in mock_model.asked[1]["messages"][-1]["content"]


def test_an_exception_of_the_client_is_raised_as_it_is(book: Book) -> None:
    def fails(body: dict[str, Any]) -> Any:
        raise ConnectionError("down")

    with pytest.raises(ConnectionError, match="down"):
        book.render("reply", question="?").converse(fails)


def test_an_asynchronous_client_is_awaited(book: Book, mock_model: MockModel) -> None:
    @book.tool
    async def weather(city: str) -> str:
        await asyncio.sleep(0)
        return f"grey in {city}"

    async def ask(body: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return mock_model(body)

    mock_model.call("weather", city="Oslo").say("Grey.")
    rendered = book.render("reply", question="?")
    assert asyncio.run(rendered.converse_async(ask))["result"] == "Grey."
    assert mock_model.asked[1]["messages"][-1]["content"] == "grey in Oslo"


def test_a_tool_is_called_by_name(book: Book) -> None:
    @book.tool
    def add(a: int, b: int) -> int:
        return a + b

    assert book.call_tool("add", {"a": 1, "b": 2}) == "3"
    with pytest.raises(InvokerError) as raised:
        book.call_tool("ad")
    assert raised.value.hint == "did you mean `add`?"


def test_a_run_calls_functions_and_keeps_what_they_raised(book: Book, mock_provider: MockModel) -> None:
    @book.tool
    async def weather(city: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        if city == "Atlantis":
            raise KeyError(city)
        return {"city": city, "sky": "grey"}

    mock_provider.call("weather", city="Oslo").call("weather", city="Atlantis").say("It is grey.")
    done = book.run("reply", question="And in Oslo?").check()
    assert done.result == "It is grey."
    told = [body["messages"][-1]["content"] for body in mock_provider.asked[1:]]
    assert '"sky": "grey"' in told[0] and "KeyError: 'Atlantis'" in told[1]
    [failure] = done.failures
    assert isinstance(failure, KeyError) and "in weather" in "".join(traceback.format_exception(failure))
    assert str(book.events(done.thread_id)).count("'weather'") > 1


def test_a_resumed_run_calls_functions(book: Book, mock_provider: MockModel) -> None:
    called: list[str] = []
    book.tool(lambda city: called.append(city) or "grey", name="weather")  # type: ignore[func-returns-value]
    mock_provider.call("weather", city="Oslo").call("weather", city="Rome").say("It is grey.")
    done = book.run("reply", question="?", limits={"turns": 1})
    assert (done.status, called) == ("suspended", ["Oslo"])
    again = book.resume(done.thread_id, limits={"turns": 9}).result()
    assert (again.status, again.result, called) == ("completed", "It is grey.", ["Oslo", "Rome"])


def test_a_conversation_keeps_what_tools_raised(book: Book, mock_model: MockModel) -> None:
    @book.tool
    def weather(city: str) -> str:
        raise RuntimeError("no satellite")

    mock_model.call("weather", city="Oslo").say("Unknown.")
    [failure] = book.render("reply", question="?").converse(mock_model)["failures"]
    assert isinstance(failure, RuntimeError) and "in weather" in "".join(traceback.format_exception(failure))
