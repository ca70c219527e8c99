"""Typed prompts of a project."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Project
from cuebook import Book
from cuebook import stubs

GREETING = 'VARIABLES = {"required": [{"name": "name", "type": "string"}], "custom": [{"name": "n", "type": "integer", "default": 1}]}\n'
JUDGE = """\
---
name: judge
model: gpt-4o
inputs:
  - name: text
    kind: string
    required: true
outputs:
  - name: verdict
    kind: string
  - name: score
    kind: float
---
user:
{{ text }}
"""
PROGRAM = """\
from prompts import Book, JudgeOutput

book = Book({root!r})
print(book.render("greeting", name="Ada").text)
print(JudgeOutput(verdict="good", score=0.5).score)
def judged() -> float:
    return book.run("judge", text="x", model="m", limits={{"turns": 2}}).outputs.score
{more}
"""


@pytest.fixture
def typed(project: Project, tmp_path: Path) -> Path:
    root = project({
        "prompts/greeting/prompt.py": GREETING,
        "prompts/greeting/template.md": "Hello {{ name }}",
        "prompts/judge.prompty": JUDGE,
        "prompts/broken/template.md": "{% if %}",
    })
    (tmp_path / "prompts.py").write_text(stubs.write(Book(root)))
    return root


def _program(tmp_path: Path, root: Path, more: str = "") -> Path:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=str(root), more=more))
    return program


def test_the_module_runs(typed: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, _program(tmp_path, typed)], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("Hello Ada\n0.5\n", "")


WRONG = [
    'book.render("greeting")',
    'book.render("greeting", name=7)',
    'book.render("greeting", name="Ada", n="x")',
    'book.render("greeting", nmae="Ada")',
    'book.render("greting", name="Ada")',
    'JudgeOutput(verdict=1, score=0.5)',
    'book.run("judge")',
    'book.run("judge", text="x", modle="m")',
    'book.run("judge", text="x").outputs.verdikt',
]


def test_mypy_finds_wrong_calls_and_no_others(typed: Path, tmp_path: Path) -> None:
    _program(tmp_path, typed, "\n".join(WRONG))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    places = {line.split(": error")[0] for line in done.stdout.splitlines() if ": error" in line}
    assert places == {f"program.py:{8 + number}" for number in range(len(WRONG))}, done.stdout


def test_pyright_finds_wrong_calls_and_no_others(typed: Path, tmp_path: Path) -> None:
    import cuebook

    (tmp_path / "cuebook").symlink_to(Path(cuebook.__file__).parent)
    _program(tmp_path, typed, "\n".join(WRONG))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "program.py", "prompts.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    places = {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found}
    assert places == {("program.py", 8 + number) for number in range(len(WRONG))}, done.stdout


def test_the_command_writes_the_module(typed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert stubs.main([str(typed)]) == 0
    assert capsys.readouterr().out == (tmp_path / "prompts.py").read_text()
    assert stubs.main([str(tmp_path / "missing")]) == 1
    assert "not a directory" in capsys.readouterr().err
    assert stubs.main(["--help"]) == 2
