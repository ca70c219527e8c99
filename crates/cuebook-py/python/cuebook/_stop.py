"""What a cancelled task ends: the wait of its worker thread for hooks, models and tools."""

from __future__ import annotations

from contextvars import ContextVar

from ._native import Cancel

# See `errors`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any, Callable, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")


class Stop:
    """Ends the work of a thread: what the native half does, and the asynchronous functions that it waits for."""

    def __init__(self) -> None:
        self.flag = Cancel()
        self._tasks: set[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = set()

    def cancel(self) -> None:
        """Ends it."""
        self.flag.cancel()
        for loop, task in [*self._tasks]:
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:
                pass  # The loop has ended in the meantime.

    async def wait(self, answer: Any) -> Any:
        """Waits for an asynchronous function in a loop of this thread."""
        import asyncio

        task = asyncio.current_task()
        assert task is not None
        one = (asyncio.get_running_loop(), task)
        self._tasks.add(one)
        try:
            if self.flag.cancelled:
                raise asyncio.CancelledError
            return await answer
        finally:
            self._tasks.discard(one)


_stop: ContextVar[Stop | None] = ContextVar("cuebook stop", default=None)


def stop() -> Stop | None:
    """What ends the work of this thread, if a task waits for it."""
    return _stop.get()


def current() -> Cancel | None:
    """Its flag."""
    stop = _stop.get()
    return None if stop is None else stop.flag


async def in_thread(work: Callable[P, T], /, *given: P.args, **more: P.kwargs) -> T:
    """Calls a function in a worker thread. Cancelling the task ends what the function waits for."""
    import asyncio

    stop = Stop()

    def run() -> T:
        # The thread has a copy of the context.
        _stop.set(stop)
        return work(*given, **more)

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        stop.cancel()
        raise
