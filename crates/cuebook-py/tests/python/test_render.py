"""`Book.render` and what it returns."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from conftest import Project
from cuebook import Book, PromptNotFoundError, PromptValidationError, Rendered, UsageError
from cuebook.pytest_plugin import MockModel


def test_variables_are_keywords_or_a_mapping(book: Book) -> None:
    assert book.render("greeting", name="Ada").text == "Hello Ada!"
    assert book.render("greeting", variables={"name": "Ada"}, tone="hi").text == "Hello Ada, hi!"
    with pytest.raises(TypeError, match="name"):
        book.render("greeting", variables={"name": "Ada"}, name="Bo")


def test_an_id_is_not_a_path(book: Book) -> None:
    for wanted in ("/etc/passwd", "../greeting", "prompts/reply.prompty"):
        with pytest.raises((PromptNotFoundError, UsageError, PromptValidationError)):
            book.render(wanted)
    assert "You are kind." in book.render_file("prompts/reply.prompty", question="Why?").text


def test_unknown_variable_names_the_nearest(book: Book) -> None:
    with pytest.raises(PromptValidationError) as raised:
        book.render("greeting", nmae="Ada")
    assert raised.value.code == "CB404"
    assert raised.value.hint == "did you mean `name`?"
    assert book.render("greeting", name="Ada", nmae="x", allow_unknown=True).text == "Hello Ada!"


def test_spans_cover_the_text_in_characters(book: Book) -> None:
    rendered = book.render("greeting", name="日本 Ada 😀", tone="ça va")
    assert "".join(span.text for span in rendered.spans) == rendered.text
    values = {span.text: span.variables for span in rendered.spans if span.kind == "value"}
    assert values == {"日本 Ada 😀": ["name"], "ça va": ["tone"]}
    literal = rendered.spans[0]
    assert (literal.kind, literal.file, literal.line) == ("literal", "prompts/greeting/template.md", 1)


def test_explain_and_find_count_characters(book: Book) -> None:
    rendered = book.render("greeting", name="日本 Ada")
    found = rendered.find("Ada")[0]
    assert rendered.text[found.start : found.end] == "Ada"
    assert found.pieces[0].origin["variables"][0]["path"] == "name"
    assert rendered.explain(found.start).text == "A"
    assert rendered.explain(-1).text == "!"
    assert rendered.explain(0).pieces[0].source["file"] == "prompts/greeting/template.md"  # type: ignore[index]
    with pytest.raises(IndexError):
        rendered.explain(len(rendered.text))
    with pytest.raises(PromptValidationError, match="does not contain"):
        rendered.find("Bo")


def test_messages_wire_and_segments(book: Book) -> None:
    rendered = book.render("reply", question="user:\nIgnore that")
    assert [message["role"] for message in rendered.messages()] == ["system", "user"]
    body = rendered.wire("openai")
    assert body["model"] == "gpt-4o"
    assert body["messages"][1]["content"] == "user:\nIgnore that"
    assert body["tools"][0]["function"]["name"] == "weather"
    assert rendered.wire("anthropic")["system"]
    assert [tool["name"] for tool in rendered.tools] == ["weather"]
    assert [(one.kind, one.source) for one in rendered.segments()][1] == ("interp", "question")


def test_tokens_are_counted_for_a_model(book: Book) -> None:
    rendered = book.render("greeting", name="Ada")
    counted = rendered.tokens("gpt-4o")
    assert (counted.total, counted.exact, int(counted)) == (3, True, 3)
    assert rendered.tokens("claude-sonnet-4").exact is False
    assert book.render("reply", question="Why?").tokens().model == "gpt-4o"


def test_html_colours_values_and_escapes(book: Book) -> None:
    page = book.render("greeting", name="<b>Ada</b>")._repr_html_()
    assert "&lt;b&gt;Ada&lt;/b&gt;" in page and "<b>" not in page
    assert 'title="name (caller)"' in page and "prompts/greeting/template.md:1" in page


def test_context_reaches_the_render(project: Project) -> None:
    book = Book(project({"prompts/p/template.md": "{{ system.model }} {{ system.language }}"}))
    assert book.render("p", context={"model": "m1", "language": "de"}).text == "m1 de"
    with pytest.raises(UsageError) as raised:
        book.render("p", context={"langage": "de"})
    assert raised.value.hint == "did you mean `language`?"


def test_a_changed_file_is_seen(book: Book) -> None:
    assert book.render("greeting", name="Ada").text == "Hello Ada!"
    (book.root / "prompts/greeting/template.md").write_text("Bye {{ name }}")
    assert book.render("greeting", name="Ada").text == "Bye Ada"


def test_a_book_looks_for_changes_when_it_should(project: Project) -> None:
    root = project({"prompts/p/template.md": "old"})
    always, patient, manual = Book(root), Book(root, look_every=1e6), Book(root, look_every=float("inf"))
    copy: Book = pickle.loads(pickle.dumps(manual))
    kept = [patient, manual, copy]
    assert {book.render("p").text for book in (always, *kept)} == {"old"}
    (Path(root) / "prompts/p/template.md").write_text("changed")
    assert always.render("p").text == Book(root, look_every=0).render("p").text == "changed"
    assert {book.render("p").text for book in kept} == {"old"}
    for book in kept:
        book.refresh()
    assert {book.render("p").text for book in kept} == {"changed"}
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="look_every must be 0 seconds or more"):
            Book(root, look_every=wrong)


def test_rendered_survives_pickle(book: Book) -> None:
    rendered = book.render("reply", question="Why?")
    copy: Rendered = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(rendered))))
    assert copy.text == rendered.text and copy.spans == rendered.spans
    assert copy.messages() == rendered.messages() and copy.wire("openai") == rendered.wire("openai")
    assert copy.segments() == rendered.segments() and copy.tools == rendered.tools
    assert copy.find("Why?")[0].label == rendered.find("Why?")[0].label
    assert copy.tokens("gpt-4o") == rendered.tokens("gpt-4o")
    response = MockModel().say("Because.").answers[0]
    assert copy.read_reply(response) == rendered.read_reply(response)
    with pytest.raises(UsageError, match="unpickled"):
        copy.converse(MockModel())


def test_book_survives_pickle_and_keeps_its_options(project: Project) -> None:
    root = project({"prompts/p/template.md": "{{ team }} {{ system.date }}"})
    book = Book(root, globals={"team": "Tides"}, clock="2026-02-20T15:30:00+09:00[Asia/Tokyo]")
    copy: Book = pickle.loads(pickle.dumps(book))
    assert copy.render("p").text == "Tides 2026-02-20"


def _in_child(book: Book, name: str, answers: "multiprocessing.Queue[str]") -> None:
    answers.put(book.render("greeting", name=name).text)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_book_works_in_child_processes(book: Book, method: str) -> None:
    assert book.render("greeting", name="Ada").text == "Hello Ada!"
    context: Any = multiprocessing.get_context(method)
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(book, "Bo", answers))
    child.start()
    assert answers.get(timeout=60) == "Hello Bo!"
    child.join(60)
    assert child.exitcode == 0


def test_threads_share_a_book(book: Book) -> None:
    texts: list[str] = []

    def work(number: int) -> None:
        texts.extend(book.render("greeting", name=f"n{number}").text for _ in range(50))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(texts)) == sorted(f"Hello n{number}!" for number in range(8)) and len(texts) == 400


@pytest.mark.parametrize("threads", [1, 3, 100])
def test_a_batch_keeps_its_order_and_its_errors(book: Book, threads: int) -> None:
    rows: list[dict[str, Any]] = [{"name": f"n{number}"} for number in range(50)]
    assert book.render_batch("greeting", rows, threads=threads) == [f"Hello n{number}!" for number in range(50)]
    rows[7] = {"nmae": "Ada"}
    done = book.render_batch("greeting", rows, threads=threads, errors="return")
    assert isinstance(done[7], PromptValidationError) and done[8] == "Hello n8!"
    with pytest.raises(PromptValidationError) as raised:
        book.render_batch("greeting", rows, threads=threads)
    assert raised.value.details["row"] == 7
    assert book.render_batch("greeting", [], threads=threads) == []


async def _both(book: Book) -> list[str]:
    import asyncio

    done = await asyncio.gather(*(book.render_async("greeting", name=name) for name in ("Ada", "Bo")))
    return [rendered.text for rendered in done]


def test_render_async_awaits(book: Book) -> None:
    import asyncio

    assert asyncio.run(_both(book)) == ["Hello Ada!", "Hello Bo!"]


def test_python_files_run_as_sandboxed_hooks(project: Project) -> None:
    code = "def pre_render(variables, context):\n    variables['n'] = len(variables['name'])\n    return variables\n"
    root = project({"prompts/count/prompt.py": code, "prompts/count/template.md": "{{ name }} has {{ n }}"})
    assert Book(root).render("count", name="Ada").text == "Ada has 3"


def test_a_project_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError) as raised:
        Book(tmp_path / "missing")
    first, last = str(raised.value).splitlines()
    assert first.startswith("error[CB110]: the project ") and first.endswith("is not a directory")
    assert last == "help: pass the folder that holds the prompts"
    assert os.fspath(Book(tmp_path).root) == os.fspath(tmp_path)


def test_ctrl_c_ends_the_wait_for_a_hook(project: Project) -> None:
    hook = "import time\nLIMITS = {'max_execution_time': 60}\ndef pre_render(variables, context):\n    time.sleep(50)\n    return variables\n"
    root = project({"prompts/slow/template.md": "Hi", "prompts/slow/prompt.py": hook})
    # A timer raises what the key raises.
    listen = "signal.signal(signal.SIGALRM, signal.default_int_handler)\nsignal.setitimer(signal.ITIMER_REAL, 0.5)"
    code = f"import signal\nfrom cuebook import Book\nbook = Book({str(root)!r})\n{listen}\nbook.render('slow')\n"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, timeout=40)
    assert done.returncode != 0 and "KeyboardInterrupt" in done.stderr
