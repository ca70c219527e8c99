"""Runs: events, results, cancellation, resumption. The provider is a server of this process."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pydantic
import pytest

from conftest import Project
from cuebook import Book, CuebookError

PROVIDER = """\
name: local
api: openai-chat
base_url: http://127.0.0.1:{port}/v1
stream: false
tiers: {{fast: small, general: small, high: small}}
models:
  small: {{context_window: 32000, max_output: 4096, price: {{input: 1, output: 10}}}}
"""
PROMPT = """\
---
name: answer
model: small
inputs:
  - name: question
    kind: string
---
system:
Be brief.

user:
{{ question }}
"""


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[dict[str, Any]] = []
        self.waits = threading.Event()
        self.waits.set()
        #: Seconds that an answer takes.
        self.pause = 0.0


class Answer(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body)
        self.server.waits.wait(30)
        time.sleep(self.server.pause)
        said = '{"word": "yes", "score": 0.5}' if "response_format" in body else f"You asked: {body['messages'][-1]['content']}"
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        answer = {"id": "a1", "object": "chat.completion", "model": "small", "choices": [choice], "usage": usage}
        data = json.dumps(answer).encode()
        try:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass  # A cancelled run has closed the connection.

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def model(home: Path) -> Iterator[Model]:
    server = Model()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    file = home / ".ai/config/providers/local.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(PROVIDER.format(port=server.server_address[1]))
    yield server
    server.waits.set()
    server.shutdown()


@pytest.fixture
def answers(project: Project, model: Model) -> Book:
    return Book(project({"prompts/answer.prompty": PROMPT}))


def test_a_run_answers_and_is_logged(answers: Book, model: Model) -> None:
    done = answers.run("answer", question="Why?", provider="local").check()
    assert (done.status, done.result) == ("completed", "You asked: Why?")
    assert done.cost["turns"] == 1
    assert answers.threads()[0]["thread_id"] == done.thread_id
    assert len(answers.events(done.thread_id)) > 2
    assert model.asked[0]["messages"][0] == {"role": "system", "content": "Be brief."}


@dataclasses.dataclass
class Verdict:
    word: str
    score: float


def test_outputs_are_objects_of_their_type(project: Project, model: Model) -> None:
    outputs = "outputs:\n  - {name: word, kind: string}\n  - {name: score, kind: float}\n---\nsystem:"
    book = Book(project({"prompts/judge.prompty": PROMPT.replace("name: answer", "name: judge").replace("---\nsystem:", outputs)}))
    plain = book.run("judge", question="Why?", provider="local").check()
    assert plain.outputs == {"word": "yes", "score": 0.5}
    typed = book.run("judge", question="Why?", provider="local", output_type=Verdict)
    assert typed.outputs == Verdict("yes", 0.5) and repr(typed) == f"<RunResult {typed.thread_id!r}: completed>"
    copy = pickle.loads(pickle.dumps(typed))
    assert (copy.outputs, copy.cost) == (typed.outputs, typed.cost)
    modelled = pydantic.create_model("Modelled", word=(str, ...), score=(float, ...))
    checked: Any = book.start("judge", question="Why?", provider="local", output_type=modelled).result(60).outputs
    assert (checked.word, checked.score) == ("yes", 0.5)

    class Typed(Book):
        _outputs = {"judge": Verdict}

    assert asyncio.run(Typed(book.root).run_async("judge", question="Why?", provider="local")).outputs == typed.outputs


def test_a_run_that_has_ended_survives_pickle(answers: Book, model: Model) -> None:
    model.waits.clear()
    run = answers.start("answer", question="Why?", provider="local")
    with pytest.raises(CuebookError, match="has not ended"):
        pickle.dumps(run)
    model.waits.set()
    done = run.result(60)
    copy = pickle.loads(pickle.dumps(run))
    assert (copy.thread_id, copy.running, list(copy)) == (run.thread_id, False, [])
    assert copy.result().result == done.result == "You asked: Why?"


def test_events_are_iterated(answers: Book) -> None:
    run = answers.start("answer", question="Why?", provider="local")
    events = list(run)
    assert {event.thread_id for event in events} == {run.thread_id}
    assert [event.data["seq"] for event in events if event.kind == "event"][0] == 1
    assert list(run) == [] and run.result().status == "completed"


def test_events_are_iterated_asynchronously(answers: Book) -> None:
    async def follow() -> tuple[int, str]:
        run = answers.start("answer", question="Why?", provider="local")
        count = 0
        async for _ in run:
            count += 1
        return count, (await run.result_async()).status

    count, status = asyncio.run(follow())
    assert count > 2 and status == "completed"
    assert asyncio.run(answers.run_async("answer", question="Why?", provider="local")).status == "completed"


def _until(answers: Any) -> None:
    end = time.monotonic() + 30
    while not answers() and time.monotonic() < end:
        time.sleep(0.02)
    assert answers()


def test_a_cancelled_run_stops(answers: Book, model: Model) -> None:
    model.waits.clear()
    run = answers.start("answer", question="Why?", provider="local")
    _until(lambda: model.asked)
    run.cancel()
    done = run.result(timeout=30)
    assert done.status == "cancelled" and done.error is not None and done.error.code == "CB727"


def test_a_cancelled_task_stops_its_run(answers: Book, model: Model) -> None:
    model.waits.clear()

    async def begin() -> None:
        task = asyncio.create_task(answers.run_async("answer", question="Why?", provider="local"))
        while not model.asked:
            await asyncio.sleep(0.02)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(begin())
    _until(lambda: answers.threads()[0]["status"] == "cancelled")


def test_a_limited_run_is_resumed(answers: Book, model: Model) -> None:
    done = answers.run("answer", question="Why?", provider="local", limits={"tokens": 1})
    assert done.status == "suspended" and done.error is not None and done.error.code == "CB716"
    again = answers.resume(done.thread_id, provider="local", limits={"tokens": 100000}).result(timeout=60)
    assert again.status == "completed"


def test_what_keeps_a_run_from_starting_is_raised(answers: Book) -> None:
    with pytest.raises(CuebookError) as raised:
        answers.run("answer", question="Why?", provider="nowhere")
    assert raised.value.code is not None
    with pytest.raises(CuebookError, match="no variable `questoin`"):
        answers.run("answer", questoin="Why?", provider="local")


WAYS = [
    "run.result()",
    "for event in run:\n    pass",
]


def _program(book: Book, more: str) -> subprocess.Popen[str]:
    start = f"run = Book({str(book.root)!r}).start('answer', question='Why?', provider='local')"
    code = f"import time\nfrom cuebook import Book\n{start}\n{more}\n"

    # A shell that runs the tests in the background ignores Ctrl-C, and its programs inherit that.
    def listen() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ), preexec_fn=listen)


def test_a_program_that_ends_stops_its_runs(answers: Book, model: Model) -> None:
    model.waits.clear()
    started = _program(answers, "while run.thread_id is None: time.sleep(0.01)")
    _, said = started.communicate(timeout=60)
    assert (started.returncode, said) == (0, "")
    assert answers.threads()[0]["status"] == "cancelled"


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_stops_a_run(answers: Book, model: Model, way: str) -> None:
    model.waits.clear()
    started = _program(answers, way)
    _until(lambda: model.asked)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=30)
    assert "KeyboardInterrupt" in said and started.returncode != 0
    assert answers.threads()[0]["status"] == "cancelled"
