"""Asynchronous methods: the same answers, and a cancelled task ends what it waits for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Project
from cuebook import Book, prompty
from cuebook.pytest_plugin import MockModel

# A hook that outlives every test that waits for it.
SLOW = "import time\nLIMITS = {'max_execution_time': 300}\ndef pre_render(variables, context):\n    time.sleep(200)\n    return variables\n"
CASES = "## one\n\n```yaml inputs\nname: Ada\n```\n\n```text expected\nHello Ada!\n```\n"


@pytest.fixture
def slow(project: Project) -> Book:
    files = {"slow/template.md": "Hi", "slow/prompt.py": SLOW, "slow/tests.md": CASES.replace("Hello Ada!", "Hi")}
    return Book(project({f"prompts/{name}": text for name, text in files.items()}))


def test_every_method_has_the_answer_of_its_twin(project: Project) -> None:
    files = {"greeting/template.md": "Hello {{ name }}!", "greeting/tests.md": CASES, "bye/template.md": "Bye {{ name }}!"}
    book = Book(project({f"prompts/{name}": text for name, text in files.items()}))
    rows = [{"name": "Ada"}, {"name": "Bo"}]

    async def all() -> None:
        assert await book.render_batch_async("greeting", rows) == book.render_batch("greeting", rows)
        assert (await book.check_async("greeting")).text == book.check("greeting").text
        assert await book.test_async("greeting") == book.test("greeting")
        assert await book.attack_async("greeting", name="Ada") == book.attack("greeting", name="Ada")
        assert await book.diff_async("greeting", "bye", name="Ada") == book.diff("greeting", "bye", name="Ada")
        assert await book.search_async("core", scope="tool") == book.search("core", scope="tool")
        assert (await book.render_file_async("prompts/bye/template.md", name="Ada")).text == "Bye Ada!"

    asyncio.run(all())


WAYS: list[Callable[[Book], Any]] = [
    lambda book: book.render_async("slow"),
    lambda book: book.render_batch_async("slow", [{}] * 3),
    lambda book: book.test_async("slow"),
    lambda book: book.attack_async("slow"),
]


@pytest.mark.parametrize("way", WAYS, ids=["render", "render_batch", "test", "attack"])
def test_a_cancelled_task_ends_the_wait_for_a_hook(slow: Book, way: Callable[[Book], Any]) -> None:
    async def begin() -> None:
        await asyncio.wait_for(way(slow), timeout=0.5)

    # The loop ends when its threads have ended, long before the hook.
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(begin())


PROGRAMS = [
    "book.render_async('slow')",
    "book.execute_async('tool', 'team/slow')",
]
TOOL = """\
version: 1.0.0
category: team
tool_type: shell
executor_id: rye/core/primitives/subprocess
description: Sleeps
config: {command: sleep, args: ["200"]}
"""


@pytest.mark.parametrize("call", PROGRAMS)
def test_ctrl_c_ends_a_program_that_awaits(slow: Book, call: str) -> None:
    (slow.root / ".ai/tools/team").mkdir(parents=True)
    (slow.root / ".ai/tools/team/slow.yaml").write_text(TOOL)
    slow.generate_key()
    assert slow.sign("tool", "team/slow")["status"] == "signed"
    # A timer raises what the key raises.
    listen = "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))\nsignal.setitimer(signal.ITIMER_REAL, 1.5)"
    code = f"import asyncio, signal\nfrom cuebook import Book\nbook = Book({str(slow.root)!r})\n{listen}\nasync def main():\n    print(await {call})\nasyncio.run(main())\n"

    # A shell that runs the tests in the background ignores Ctrl-C, and its programs inherit that.
    def hear() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    done = subprocess.run([sys.executable, "-c", f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"], capture_output=True, text=True, timeout=100, preexec_fn=hear, env=dict(os.environ))
    assert done.returncode != 0 and "KeyboardInterrupt" in done.stderr, done.stdout + done.stderr


def test_a_cancelled_conversation_asks_no_more(book: Book, mock_model: MockModel) -> None:
    asked: list[str] = []

    async def ask(body: dict[str, Any]) -> Any:
        asked.append("began")
        try:
            await asyncio.sleep(200)
        except asyncio.CancelledError:
            asked.append("cancelled")
            raise

    async def begin() -> None:
        task = asyncio.create_task(book.render("reply", question="?").converse_async(ask))
        while not asked:
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(begin())
    assert asked == ["began", "cancelled"]


def test_a_cancelled_conversation_calls_no_more_tools(book: Book, mock_model: MockModel) -> None:
    calls: list[str] = []

    @book.tool
    async def weather(city: str) -> str:
        calls.append(city)
        await asyncio.sleep(200)
        return "grey"

    mock_model.call("weather", city="Oslo").call("weather", city="Rome").say("Grey.")

    async def begin() -> None:
        task = asyncio.create_task(book.render("reply", question="?").converse_async(mock_model))
        while not calls:
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(begin())
    assert calls == ["Oslo"] and len(mock_model.asked) == 1


def test_prompty_waits_are_cancelled_too(slow: Book, tmp_path: Path) -> None:
    path = tmp_path / "p.prompty"
    path.write_text("---\nname: p\nmodel: gpt-4o\n---\nuser:\nHi\n")

    async def ask(body: dict[str, Any]) -> Any:
        await asyncio.sleep(200)

    async def begin() -> None:
        await asyncio.wait_for(prompty.invoke_async(path, executor=ask), timeout=0.5)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(begin())
