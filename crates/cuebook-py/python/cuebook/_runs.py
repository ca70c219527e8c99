"""Runs of prompts: threads of a model and its tools."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from typing import Any, AsyncIterator, Callable, Iterator, NamedTuple

from ._native import Cancel
from .errors import CuebookError


class Event(NamedTuple):
    """Something that happened in a run: an `event` of the log, further `text` or `thinking`, a `pulse`, or a `retry`."""

    thread_id: str
    kind: str
    data: Any


class RunResult(NamedTuple):
    """How a run ended."""

    thread_id: str
    #: `completed`, `error`, `cancelled`, `suspended` or `interrupted`.
    status: str
    #: The model's last answer.
    result: Any
    #: The outputs that the prompt declares.
    outputs: Any
    cost: dict[str, Any]
    error: CuebookError | None = None

    def check(self) -> RunResult:
        """Raises the error of the run, if it has one."""
        if self.error is not None:
            raise self.error
        return self


Work = Callable[[Callable[[str, str, Any], None], Cancel], dict[str, Any]]


class Run:
    """A run in a worker thread. Iterate over it for its events; `result()` waits for its end."""

    def __init__(self, work: Work) -> None:
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

    def result(self, timeout: float | None = None) -> RunResult:
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
            answer.get("outputs"),
            answer.get("cost") or {},
            answer.get("error"),
        )

    async def result_async(self) -> RunResult:
        """Waits for the end without blocking the loop. Cancelling the task stops the run."""
        import asyncio

        try:
            return await asyncio.to_thread(self.result)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.cancel()
        self._ended.wait()


_runs: weakref.WeakSet[Run] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    # A run calls functions of Python until it ends, so it has to end before the interpreter does.
    running = [run for run in _runs if run.running]
    for run in running:
        run.cancel()
    for run in running:
        run._ended.wait()
