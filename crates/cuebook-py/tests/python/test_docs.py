"""Every example of the docstrings and of the guide's chapter runs, and prints what the page shows."""

from __future__ import annotations

import contextlib
import doctest
import http.server
import importlib
import io
import json
import re
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuebook import Book
from cuebook.pytest_plugin import MockModel

GUIDE = Path(__file__).parents[4] / "docs/src/guide"
MODULES = ["cuebook", "cuebook._book", "cuebook._rendered", "cuebook.rumi", "cuebook.wink"]
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_are_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0 and done.failed == 0


def test_examples_of_the_python_chapter_are_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clients: types.SimpleNamespace
) -> None:
    assert _run("python.md", tmp_path, monkeypatch, {"client": clients}) >= 15


def test_examples_of_the_data_chapter_are_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock_provider: MockModel
) -> None:
    def answer(body: dict[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        return '{"passed": true}' if "Is this one word?" in asked else "support" if "late" in asked else "sales"

    mock_provider.reply(answer)
    monkeypatch.setenv("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    try:
        assert _run("data.md", tmp_path, monkeypatch, {}) >= 6
    finally:
        importlib.import_module("ray").shutdown()
    assert len(mock_provider.asked) == 4


def _run(chapter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, object]) -> int:
    """Files are written, pieces of Python run one after another, and `text` after one is what it printed."""
    here = tmp_path / "desk"
    here.mkdir()
    monkeypatch.chdir(here)
    names: dict[str, object] = {"__name__": "chapter", **more}
    printed, pieces = "", 0
    for block in FENCE.finditer((GUIDE / chapter).read_text(encoding="utf-8")):
        info, text = block["info"].split(), block["text"]
        if "file" in info:
            path = here / info[-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif info == ["python"]:
            assert printed == "", f"the page does not show what this printed: {printed}"
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, chapter, "exec", dont_inherit=True), names)
            printed, pieces = out.getvalue(), pieces + 1
        elif info == ["text"]:
            assert printed == text
            printed = ""
    assert printed == ""
    return pieces


class Provider(http.server.BaseHTTPRequestHandler):
    """The servers of OpenAI, Anthropic and Google, as far as the chapter uses them."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/chat/completions"):
            asks = body.get("tools") and body["messages"][-1]["role"] != "tool"
            model = MockModel()
            answer = (model.call("order", number=7) if asks else model.say("It is on its way.")).answers[0]
        elif self.path.endswith("/messages"):
            assert body["model"] and body["system"] and body["max_tokens"] and body["messages"]
            content = [{"type": "text", "text": "It is on its way."}]
            usage = {"input_tokens": 1, "output_tokens": 1}
            answer = {"id": "m1", "type": "message", "role": "assistant", "model": body["model"], "content": content}
            answer.update(stop_reason="end_turn", stop_sequence=None, usage=usage)
        else:
            assert self.path.endswith("gemini-2.5-pro:generateContent") and body["systemInstruction"], self.path
            said = {"role": "model", "parts": [{"text": "It is on its way."}]}
            answer = {"candidates": [{"content": said, "finishReason": "STOP"}]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """The providers' own clients, which ask a server of this process."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    openai, anthropic, genai = (importlib.import_module(name) for name in ("openai", "anthropic", "google.genai"))
    # A client that is not kept is closed.
    gemini = genai.Client(api_key="k", http_options={"base_url": url})
    yield types.SimpleNamespace(
        chat=openai.OpenAI(api_key="k", base_url=f"{url}/v1").chat,
        messages=anthropic.Anthropic(api_key="k", base_url=url).messages,
        models=gemini.models,
    )
    server.shutdown()
    server.server_close()


def test_a_notebook_cell_shows_the_origins(book: Book) -> None:
    shell = importlib.import_module("IPython.core.interactiveshell").InteractiveShell(user_ns={"book": book})
    # A notebook shows more than the text of a terminal.
    shell.display_formatter.active_types = shell.display_formatter.format_types
    with contextlib.redirect_stdout(io.StringIO()):
        done = shell.run_cell("book.render('greeting', name='Ada')")
    shown, _ = shell.display_formatter.format(done.result)
    assert 'title="name (caller)"' in shown["text/html"] and shown["text/plain"].startswith("<Rendered 'greeting'")
