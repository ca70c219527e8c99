"""The pytest plugin: the cases next to prompts are tests, and a failure shows what differs and where it came from.

`pytest` collects `tests.md` and `*.tests.md` files of the projects that `cuebook_projects` in the configuration names; without it, of the
folder that pytest starts in, if that holds prompts.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import threading
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
        self._outcomes: dict[str, dict[str, Any]] | None = None

    def collect(self) -> Iterator[pytest.Item]:
        # Nothing runs yet, and an invalid file is an error of its tests.
        for name in _names(self.path.read_text(encoding="utf-8", errors="replace")) or [self.prompt]:
            yield PromptCase.from_parent(self, name=name)

    def outcome(self, name: str) -> dict[str, Any]:
        """What a case did. The cases of a file run together, with the first of them."""
        if self._outcomes is None:
            self._outcomes = {}
            for one in Book(self.root).test(self.prompt):
                if (self.root / one["file"]).resolve() != self.path.resolve():
                    continue
                if "error" in one:
                    self._outcomes[_ALL] = {"passed": False, "error": one["error"]}
                self._outcomes.update((case["case"], case) for case in one.get("cases", ()))
        missing = {"passed": False, "error": {"message": f"the file has no case `{name}`"}}
        return self._outcomes.get(name) or self._outcomes.get(_ALL) or missing


#: The error of a whole file, beside the outcomes of its cases.
_ALL = ""


def _names(text: str) -> list[str]:
    """The headings of cases, outside of blocks."""
    names, fence = [], ""
    for line in text.splitlines():
        marks = re.match(r"(`{3,}|~{3,})", line)
        if fence:
            closes = marks is not None and marks[0].startswith(fence) and not line[len(marks[0]) :].strip()
            fence = "" if closes else fence
        elif marks:
            fence = marks[0]
        elif line.startswith("## "):
            names.append(line[3:].strip())
    return names


class PromptCase(pytest.Item):
    """A case of a prompt."""

    def runtest(self) -> None:
        file = self.parent
        assert isinstance(file, PromptFile)
        case = file.outcome(self.name)
        if not case["passed"]:
            raise CaseFailed(case)

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
        self._reply: Callable[[dict[str, Any]], str] | None = None

    def say(self, text: str) -> MockModel:
        """Adds an answer in text."""
        self.answers.append(self._answer({"role": "assistant", "content": text}, "stop"))
        return self

    def call(self, name: str, **arguments: Any) -> MockModel:
        """Adds a call of a tool."""
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call-{len(self.answers) + 1}", "type": "function", "function": function}
        self.answers.append(self._answer({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"))
        return self

    def reply(self, function: Callable[[dict[str, Any]], str] | None) -> MockModel:
        """Answers what has no prepared answer with the text that a function of the request's body returns."""
        self._reply = function
        return self

    def _answer(self, message: dict[str, Any], finish: str) -> dict[str, Any]:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            "id": f"mock-{len(self.answers) + 1}",
            "object": "chat.completion",
            "created": 0,
            "model": "mock-model",
            "choices": [choice],
            "usage": {"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 32},
        }

    def __call__(self, body: dict[str, Any]) -> Any:
        self.asked.append(body)
        if self.answers:
            return self.answers.pop(0)
        if self._reply is not None:
            return self._answer({"role": "assistant", "content": self._reply(body)}, "stop")
        said = "the mock model has no answer left"
        raise CuebookError(said, code="CB722", hint="add one with `say`, `call` or `reply`")

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serves the model on this machine, in the interface of OpenAI, and gives the address."""
        server = _Server(self)
        thread = threading.Thread(target=server.serve_forever, name="mock model", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: MockModel) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert isinstance(self.server, _Server)
        try:
            status, answer = 200, self.server.model(body)
        except CuebookError as error:
            # A status after which a client does not ask again.
            status, answer = 400, {"error": {"message": error.message}}
        data = json.dumps(answer).encode()
        with contextlib.suppress(OSError):  # A cancelled run has closed the connection.
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


_PROVIDER = """\
name: mock
api: openai-chat
base_url: {url}
stream: false
tiers: {{fast: mock-model, general: mock-model, high: mock-model}}
models:
  mock-model: &model {{context_window: 1000000, max_output: 32768, price: {{input: 0, output: 0}}}}
  "*": *model
"""


@pytest.fixture
def mock_model() -> MockModel:
    """A model with prepared answers, for `Rendered.converse(mock_model)`."""
    return MockModel()


@pytest.fixture
def mock_provider(
    mock_model: MockModel, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MockModel]:
    """The mock model as the provider of every run and thread, whatever model their prompts name: `Book.run`, `Book.start`, `cuebook.ray`.

    The user's folder is an empty one for the test.
    """
    folder = tmp_path_factory.mktemp("user")
    file = folder / ".ai/config/providers/mock.yaml"
    file.parent.mkdir(parents=True)
    with mock_model.serve() as url:
        file.write_text(_PROVIDER.format(url=url), encoding="utf-8")
        monkeypatch.setenv("USER_SPACE", str(folder))
        monkeypatch.setenv("CUEBOOK_PROVIDER", "mock")
        yield mock_model


@pytest.fixture
def open_book() -> Callable[..., Book]:
    """Opens a book."""
    return Book
