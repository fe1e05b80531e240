"""An event loop in a thread of its own, which a blocking client hands its work to."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from tanist.client import ClientClosed
from tanist.remoting.event_loop import find_loop_factory

T = TypeVar("T")


class LoopThread:
    """Runs from ``enter`` to ``leave``. Any thread may call; each waits for its own answer."""

    def __init__(self, kind: str) -> None:
        """``kind`` is what errors call the client, and the thread too."""
        self._kind = kind
        # Whoever has it and finds a loop may hand work to it: the loop is not stopped meanwhile.
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def enter(self, client: AbstractAsyncContextManager[object]) -> None:
        """Begin, and open the client that lives here."""
        self.start()
        try:
            self.call(client.__aenter__())
        except BaseException:
            self.close()
            raise

    def leave(self, client: AbstractAsyncContextManager[object], error: BaseException | None) -> None:
        """Close the client, then end."""
        try:
            self.call(client.__aexit__(None if error is None else type(error), error, None))
        finally:
            self.close()

    @property
    def is_open(self) -> bool:
        """Whether nobody has closed it since it was opened."""
        return self._loop is not None

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work`` in the loop and wait for what comes of it. Ctrl-C cancels it first."""
        try:
            return self.wait(self.begin(work))
        except CancelledError:
            # Nobody else could cancel it: the loop has ended under it.
            raise ClientClosed(self._kind) from None

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin with ``work`` in the loop. Cancelling what is returned cancels the work."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                f"a blocking call in the thread of the {self._kind}'s loop would wait for itself"
            )
        with self._lock:
            # In a forked process there is no such thread any more.
            if self._loop is not None and self._thread is not None and self._thread.is_alive():
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise ClientClosed(self._kind)

    def wait(self, future: "Future[T]") -> T:
        """What comes of work that was begun. Ctrl-C cancels it."""
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def apply(self, function: Callable[[], T]) -> T:
        """Call a function in the loop's thread, which alone may touch what lives there."""

        async def work() -> T:
            return function()

        return self.call(work())

    def start(self) -> None:
        """Begin. What is handed in from now on is done."""
        if self.is_open:
            raise RuntimeError(f"the {self._kind} is open already")
        started = Future[asyncio.AbstractEventLoop]()
        # A program that ends without closing its client must not hang for it.
        self._thread = threading.Thread(target=self._run, args=(started,), name=self._kind, daemon=True)
        self._thread.start()
        self._loop = started.result()

    def close(self) -> None:
        """End. Whoever still waits for an answer gets ClientClosed."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def _run(self, started: "Future[asyncio.AbstractEventLoop]") -> None:
        with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
            loop = runner.get_loop()
            loop.call_soon(started.set_result, loop)
            loop.run_forever()
