"""Runs of prompts: threads of a model and its tools."""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from typing import Any, AsyncIterator, Callable, Generic, Iterable, Iterator, Mapping, NamedTuple, TypedDict, TypeVar

from ._native import Cancel
from .errors import CuebookError, UsageError

T = TypeVar("T")


class Event(NamedTuple):
    """Something that happened in a run: an `event` of the log, further `text` or `thinking`, a `pulse`, or a `retry`."""

    thread_id: str
    kind: str
    data: Any


class RunOptions(TypedDict, total=False):
    """The options of `Book.run` and `Book.start`, beside variables and context."""

    model: str | None
    provider: str | None
    limits: Mapping[str, Any] | None
    tools: Mapping[str, str] | None
    allow: Iterable[str]
    skills: Iterable[str]
    replay: str | os.PathLike[str] | None
    record: str | os.PathLike[str] | None
    store: str | None
    unfenced: bool


class RunResult(Generic[T]):
    """How a run ended."""

    def __init__(
        self,
        thread_id: str,
        status: str,
        result: Any,
        outputs: T,
        cost: dict[str, Any],
        error: CuebookError | None = None,
        failures: list[BaseException] | None = None,
    ) -> None:
        self.thread_id = thread_id
        #: `completed`, `error`, `cancelled`, `suspended` or `interrupted`.
        self.status = status
        #: The model's last answer.
        self.result = result
        #: The outputs that the prompt declares: an object of the `output_type`, or a dict.
        self.outputs = outputs
        self.cost = cost
        self.error = error
        #: The exceptions that functions behind tools raised, with their tracebacks. The model got their words.
        self.failures = failures or []

    def __repr__(self) -> str:
        return f"<RunResult {self.thread_id!r}: {self.status}>"

    def check(self) -> RunResult[T]:
        """Raises the error of the run, if it has one."""
        if self.error is not None:
            raise self.error
        return self


def _typed(outputs: Any, kind: type[Any] | None) -> Any:
    """The outputs as an object of a class: a dataclass, a pydantic model, or any class that takes them by name."""
    if kind is None or not isinstance(outputs, dict):
        return outputs
    if hasattr(kind, "model_validate"):
        return kind.model_validate(outputs)
    known = getattr(kind, "__dataclass_fields__", outputs)
    return kind(**{name: value for name, value in outputs.items() if name in known})


Work = Callable[[Callable[[str, str, Any], None], Cancel], dict[str, Any]]


class Run(Generic[T]):
    """A run in a worker thread. Iterate over it for its events; `result()` waits for its end."""

    def __init__(self, work: Work, output_type: type[T] | None = None) -> None:
        self._output_type = output_type
        self._cancel = Cancel()
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._thread_id: str | None = None
        self._ended = threading.Event()
        self._answer: dict[str, Any] | None = None
        self._failed: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, name="cuebook run", daemon=True)
        _runs.add(self)
        self._thread.start()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.running:
            said = "a run that has not ended cannot be pickled"
            raise UsageError(said, code="CB407", hint="wait for `result()`, or pickle its `thread_id`")
        return (_ended, (type(self), self._output_type, self._answer, self._failed))

    def _run(self) -> None:
        try:
            self._answer = self._work(self._hear, self._cancel)
        except BaseException as error:
            self._failed = error
        finally:
            self._ended.set()
            self._events.put(None)

    def _hear(self, thread_id: str, kind: str, data: Any) -> None:
        if self._thread_id is None:
            self._thread_id = thread_id
        self._events.put(Event(thread_id, kind, data))

    @property
    def thread_id(self) -> str | None:
        """The id of the thread; `None` until its first event."""
        return self._answer["thread_id"] if self._answer else self._thread_id

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._ended.is_set()

    def cancel(self) -> None:
        """Stops the run. `result()` returns once it has stopped."""
        self._cancel.cancel()

    def __iter__(self) -> Iterator[Event]:
        while (event := self._next()) is not None:
            yield event
        # A second loop over the same run ends at once.
        self._events.put(None)

    def _next(self) -> Event | None:
        try:
            return self._events.get()
        except KeyboardInterrupt:
            self._stop()
            raise

    def _stop(self) -> None:
        self.cancel()
        self._ended.wait()

    async def __aiter__(self) -> AsyncIterator[Event]:
        import asyncio

        try:
            while (event := await asyncio.to_thread(self._events.get)) is not None:
                yield event
        except (asyncio.CancelledError, GeneratorExit):
            self.cancel()
            raise
        self._events.put(None)

    def result(self, timeout: float | None = None) -> RunResult[T]:
        """Waits for the end. Ctrl-C while it waits stops the run."""
        try:
            if not self._ended.wait(timeout):
                raise TimeoutError("the run has not ended")
        except KeyboardInterrupt:
            self._stop()
            raise
        if self._failed is not None:
            raise self._failed
        assert self._answer is not None
        answer = self._answer
        return RunResult(
            answer["thread_id"],
            answer["status"],
            answer.get("result"),
            _typed(answer.get("outputs"), self._output_type),
            answer.get("cost") or {},
            answer.get("error"),
            answer.get("failures"),
        )

    async def result_async(self) -> RunResult[T]:
        """Waits for the end without blocking the loop. Cancelling the task stops the run."""
        import asyncio

        try:
            return await asyncio.to_thread(self.result)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def __enter__(self) -> Run[T]:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.cancel()
        self._ended.wait()


def _ended(
    kind: type[Run[T]], output_type: type[T] | None, answer: dict[str, Any] | None, failed: BaseException | None
) -> Run[T]:
    run = kind.__new__(kind)
    run._output_type, run._answer, run._failed, run._thread_id = output_type, answer, failed, None
    run._cancel, run._events, run._ended = Cancel(), queue.SimpleQueue(), threading.Event()
    # Its events went to the first copy.
    run._events.put(None)
    run._ended.set()
    return run


_runs: weakref.WeakSet[Run[Any]] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    # A run calls functions of Python until it ends, so it has to end before the interpreter does.
    running = [run for run in _runs if run.running]
    for run in running:
        run.cancel()
    for run in running:
        run._ended.wait()
