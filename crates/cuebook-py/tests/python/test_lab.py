"""List, show, check, test, attack, diff, convert."""

from __future__ import annotations

import pickle

import pytest

from conftest import GREETING, Project
from cuebook import Book, PromptReadError, UsageError

CASES = """\
## polite

```yaml inputs
name: Ada
```

```text expected
Hello Ada!
```

## wrong

```yaml inputs
name: Bo
```

```text expected
Hello Ada!
```
"""


@pytest.fixture
def two(project: Project) -> Book:
    files = {
        "prompts/greeting/template.md": GREETING,
        "prompts/greeting/tests.md": CASES,
        "prompts/farewell/template.md": "Bye {{ name }}!\n",
    }
    return Book(project(files))


def test_list_and_show(two: Book) -> None:
    ids = [prompt["id"] for prompt in two.list()]
    assert {"greeting", "farewell", "general_system"} <= set(ids)
    assert [prompt["id"] for prompt in two.list(type="planning")] == ["planning_task_decomposition"]
    assert two.show("coding_system")["extends"] == "general_system"
    assert two.candidates("greeting")[0]["source"] == "prompts/greeting"


def test_check_reports_findings_with_places(project: Project) -> None:
    book = Book(project({"prompts/p/template.md": "{{ name | uper }}\n"}))
    report = book.check("p")
    assert [(one.severity, one.file, one.line) for one in report.errors] == [("error", "prompts/p/template.md", 1)]
    assert "prompts/p/template.md:1" in str(report) and report.prompts == 1
    copy = pickle.loads(pickle.dumps(report))
    assert (copy, copy.prompts, copy.text) == (report, report.prompts, report.text)


def test_test_runs_the_cases_next_to_prompts(two: Book) -> None:
    done = two.test("greeting")
    assert [(case["case"], case["passed"]) for case in done[0]["cases"]] == [("polite", True), ("wrong", False)]
    diff = done[0]["cases"][1]["failures"][0]["diff"]
    assert {line["change"] for line in diff} == {"gone", "new"}


def test_attack_holds(two: Book) -> None:
    attack = two.attack("greeting")
    assert attack["breaches"] == [] and attack["inputs"]


def test_diff_compares_two_prompts(two: Book) -> None:
    diff = two.diff("greeting", "farewell", name="Ada")
    assert diff["same"] is False
    assert two.diff("greeting", "greeting", name="Ada")["same"] is True


def test_convert_gives_files_and_a_report(two: Book) -> None:
    made = two.convert("greeting", "prompty")
    assert made["files"][0]["path"] == "greeting.prompty" and "Hello {{ name }}" in made["files"][0]["text"]
    with pytest.raises(UsageError) as raised:
        two.convert("greeting", "promty")
    assert raised.value.hint == "did you mean `prompty`?"


def test_strict_convert_refuses_a_loss(project: Project) -> None:
    code = 'VARIABLES = {"custom": [{"name": "tone", "type": "string", "default": "calm"}]}\n\n\n'
    code += "def pre_render(variables, context):\n    return variables\n"
    book = Book(project({"prompts/p/prompt.py": code, "prompts/p/template.md": "{{ tone }}"}))
    assert book.convert("p", "prompty")["lossless"] is False
    with pytest.raises(PromptReadError):
        book.convert("p", "prompty", strict=True)
