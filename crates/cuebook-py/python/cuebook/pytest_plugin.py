"""The pytest plugin: the cases next to prompts are tests, and a failure shows what differs and where it came from.

`pytest` collects `tests.md` and `*.tests.md` files of the projects that `cuebook_projects` in the configuration names; without it, of the
folder that pytest starts in, if that holds prompts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ._book import Book
from .errors import CuebookError


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("cuebook_projects", "Folders of Cuebook projects whose cases are tests", type="paths", default=[])
    parser.getgroup("cuebook").addoption(
        "--no-cuebook", action="store_true", help="Do not collect the cases next to prompts"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_PROJECTS] = {}


_PROJECTS: pytest.StashKey[dict[Path, dict[Path, str]]] = pytest.StashKey()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    config = parent.config
    if config.getoption("--no-cuebook") or not file_path.name.endswith("tests.md"):
        return None
    for root in _roots(config):
        if root in file_path.parents:
            prompt = _case_files(config, root).get(file_path.resolve())
            if prompt is not None:
                return PromptFile.from_parent(parent, path=file_path, root=root, prompt=prompt)
    return None


def _roots(config: pytest.Config) -> list[Path]:
    named = [Path(one) for one in config.getini("cuebook_projects")]
    return named or [config.rootpath]


def _case_files(config: pytest.Config, root: Path) -> dict[Path, str]:
    known = config.stash[_PROJECTS]
    if root not in known:
        try:
            files = Book(root)._native.case_files([])
        except CuebookError as error:
            raise pytest.UsageError(f"cuebook cannot read the project {root}:\n{error}") from error
        known[root] = {(root / one["file"]).resolve(): one["prompt"] for one in files}
    return known[root]


class PromptFile(pytest.File):
    """A file of cases."""

    def __init__(self, *, root: Path, prompt: str, **more: Any) -> None:
        super().__init__(**more)
        self.root = root
        self.prompt = prompt

    def collect(self) -> Iterator[pytest.Item]:
        for one in Book(self.root).test(self.prompt):
            if (self.root / one["file"]).resolve() != self.path.resolve():
                continue
            if "error" in one:
                yield PromptCase.from_parent(self, name=self.prompt, case={"passed": False, "error": one["error"]})
            for case in one.get("cases", ()):
                yield PromptCase.from_parent(self, name=case["case"], case=case)


class PromptCase(pytest.Item):
    """A case of a prompt. It ran when its file was collected, because the cases of a file run together."""

    def __init__(self, *, case: dict[str, Any], **more: Any) -> None:
        super().__init__(**more)
        self.case = case

    def runtest(self) -> None:
        if not self.case["passed"]:
            raise CaseFailed(self.case)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


class CaseFailed(Exception):
    """A case whose prompt does not render what it expects."""

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__(case)
        self.case = case

    def __str__(self) -> str:
        if "error" in self.case:
            return str(self.case["error"].get("report") or self.case["error"].get("message"))
        return "\n".join(line for failure in self.case.get("failures") or [] for line in _failure(failure))


def _failure(failure: dict[str, Any]) -> Iterator[str]:
    yield f"line {failure['line']}: {failure['message']}"
    if failure.get("origin"):
        yield f"  from {failure['origin']}"
    error = failure.get("error")
    if error:
        yield f"  {error.get('code')}: {error.get('message')}"
        if error.get("hint"):
            yield f"  help: {error['hint']}"
    for line in failure.get("diff") or []:
        origin = f"  <- {line['origin']}" if line.get("origin") else ""
        yield f"  {_SIGNS.get(line['change'], ' ')} {line['text']}{origin}".rstrip()


_SIGNS = {"gone": "-", "new": "+"}


class MockModel:
    """A model that gives prepared answers. It keeps the bodies of the requests in `asked`."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[dict[str, Any]] = []

    def say(self, text: str) -> MockModel:
        """Adds an answer in text."""
        return self._add({"role": "assistant", "content": text}, "stop")

    def call(self, name: str, **arguments: Any) -> MockModel:
        """Adds a call of a tool."""
        import json

        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call-{len(self.answers) + 1}", "type": "function", "function": function}
        return self._add({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")

    def _add(self, message: dict[str, Any], finish: str) -> MockModel:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        self.answers.append({"id": f"mock-{len(self.answers) + 1}", "object": "chat.completion", "choices": [choice]})
        return self

    def __call__(self, body: dict[str, Any]) -> Any:
        self.asked.append(body)
        if not self.answers:
            said = "the mock model has no answer left"
            raise CuebookError(said, code="CB722", hint="add one with `say` or `call`")
        return self.answers.pop(0)


@pytest.fixture
def mock_model() -> MockModel:
    """A model with prepared answers, for `Rendered.converse(mock_model)`."""
    return MockModel()


@pytest.fixture
def open_book() -> Callable[..., Book]:
    """Opens a book."""
    return Book
