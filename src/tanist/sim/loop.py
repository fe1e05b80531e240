"""What awaits, on the virtual clock: each process has a loop of its own, and the loop dies with it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any

from tanist.sim.clockwork import Clockwork, Process

_EPOCH_MS = 1_700_000_000_000
_MOST_WAITS = 10


class PlayedClock:
    """The clocks of one machine, a ``tanist.clock.Clock``. Somebody may set the one that people read."""

    def __init__(self, clockwork: Clockwork, *, rate: float = 1.0) -> None:
        self._clockwork = clockwork
        self._rate = rate
        self.is_wrong_by_ms = 0

    def now_ms(self) -> int:
        return _EPOCH_MS + self.is_wrong_by_ms + int(self._clockwork.now_s * 1000)

    def monotonic_s(self) -> float:
        return self._clockwork.now_s * self._rate


class PlayedLoop(asyncio.AbstractEventLoop):
    """The event loop of one life of a process. What it has to do are events of the clockwork."""

    def __init__(self, clockwork: Clockwork, process: Process) -> None:
        self._clockwork = clockwork
        self._process = process
        self._life = process.life
        self._failure: BaseException | None = None
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._is_over = False

    def time(self) -> float:
        return self._clockwork.now_s * self._process.rate

    def run(self, do: Callable[[], object]) -> None:
        """Do it now, as something that the loop has come to."""
        before = asyncio._get_running_loop()  # noqa: SLF001
        asyncio._set_running_loop(self)  # noqa: SLF001
        try:
            do()
        finally:
            asyncio._set_running_loop(before)  # noqa: SLF001

    def end(self) -> None:
        """The process is dead. What it was at is closed here, and not whenever its memory is collected."""
        self._is_over = True
        for task in [*self._tasks]:
            self.run(partial(_close, task.get_coro()))

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._run_after(0.0, handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        delay_s = max(0.0, delay)
        handle = asyncio.TimerHandle(self.time() + delay_s, callback, args, self, context)
        self._run_after(delay_s, handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **named: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, **named)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    def run_in_executor(
        self,
        executor: Any,  # noqa: ARG002
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """At once: there are no threads here. Who is dead writes nothing any more."""
        done = self.create_future()
        if self._is_over:
            return done
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What a callback raised is the history's end: it is a broken rule, or a mistake of the simulator's.

        Tasks that are left behind by a process that died complain too, and have no exception.
        """
        self._failure = self._failure or context.get("exception")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Its event comes, and finds it cancelled."""

    def _run_after(self, delay_s: float, handle: asyncio.Handle) -> None:
        def run() -> None:
            if not handle.cancelled():
                self.run(handle._run)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if self._failure is not None:
                raise self._failure

        delay_s /= self._process.rate
        self._clockwork.after(delay_s, run, process=self._process, life=self._life)


def _close(work: Any) -> None:
    """What waits once more on its way out is closed once more."""
    for _ in range(_MOST_WAITS):
        with suppress(RuntimeError):
            work.close()
            return
