"""Every example of the docstrings and of the guide's chapter runs, and prints what the page shows."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from cuebook.pytest_plugin import MockModel

GUIDE = Path(__file__).parents[4] / "docs/src/guide"
MODULES = ["cuebook", "cuebook._book", "cuebook._rendered", "cuebook.rumi", "cuebook.wink"]
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_are_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0 and done.failed == 0


def test_examples_of_the_python_chapter_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The chapter's clients ask a server; here a model with prepared answers takes their place.
    assert _run("python.md", tmp_path, monkeypatch, {"client": Client()}) >= 15


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


class Client:
    """The clients of OpenAI, Anthropic and Google, as far as the chapter uses them."""

    def __init__(self) -> None:
        self.chat = self.completions = self.messages = self.models = self

    def generate_content(self, *, model: str, contents: list[object], config: dict[str, object]) -> object:
        assert model and contents and config["systemInstruction"]
        content = {"role": "model", "parts": [{"text": "It is on its way."}]}
        return {"candidates": [{"content": content, "finishReason": "STOP"}]}

    def create(self, **body: object) -> object:
        assert body["model"] and body["messages"]
        if "max_tokens" in body and "system" in body:
            content = [{"type": "text", "text": "It is on its way."}]
            return {"id": "m1", "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}
        messages = body["messages"]
        assert isinstance(messages, list)
        if body.get("tools") and messages[-1]["role"] != "tool":
            return MockModel().call("order", number=7).answers[0]
        return MockModel().say("It is on its way.").answers[0]
