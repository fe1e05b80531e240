"""The one task that looks at the cluster, and those who wait for what it finds.

However many pages are open, the brokers are asked by this task alone: every two seconds while somebody
looks, and now and then while nobody does, so that the charts have a past.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from tanist.clock import Clock
from tanist.console.watching.history import History, Recorder
from tanist.console.watching.snapshot import Snapshot

_log = logging.getLogger(__name__)

WATCHED_S, UNWATCHED_S = 2.0, 15.0
"""From one look to the next while somebody watches, and while nobody does."""
THOROUGH_EVERY = 5
_STILL_WATCHED_S = 30.0
READY_S = 3 * UNWATCHED_S
"""A look that is older than this means that the console does not see."""

Look = Callable[..., Awaitable[Snapshot]]
Digests = Callable[[Snapshot], Mapping[str, str]]
Observer = Callable[[Snapshot], Awaitable[Mapping[str, str]]]
"""Is shown each look, and says how views of its own look now, as digests do."""


class Watcher:
    """Looks, keeps what it saw last, and tells who waits which views have changed."""

    def __init__(self, look: Look, digests: Digests, clock: Clock) -> None:
        self._look = look
        self._digest = digests
        self._clock = clock
        self._recorder = Recorder()
        self._observers: list[Observer] = []
        self._snapshot: Snapshot | None = None
        self._told: Mapping[str, str] = {}
        self._changed = asyncio.Condition()
        self._hurry = asyncio.Event()
        self._watched_s = clock.monotonic_s()
        self._listeners = 0
        self._open: Counter[str] = Counter()
        """How often each view lies open."""
        self._is_thorough_next = True
        self.is_closed = False

    @property
    def snapshot(self) -> Snapshot | None:
        """What was seen last; None before the first look is over."""
        return self._snapshot

    @property
    def digests(self) -> Mapping[str, str]:
        """How each view looked at the last look; nothing before the first is over."""
        return self._told

    @property
    def history(self) -> History:
        return self._recorder.history()

    def lack(self) -> str | None:
        """Why this console is not ready; nothing if it is."""
        seen = self._snapshot
        if seen is None:
            return "the cluster was not looked at yet"
        if seen.failure is not None:
            return f"no name server answers: {seen.failure}"
        if self._clock.now_ms() - seen.taken_ms > READY_S * 1000:
            return "the last look at the cluster is too old"
        return None

    def observe(self, observer: Observer) -> None:
        """Have somebody see every look before others hear of it."""
        self._observers.append(observer)

    def touch(self) -> None:
        """Note that somebody looks at a page."""
        now_s = self._clock.monotonic_s()
        if now_s - self._watched_s > _STILL_WATCHED_S:
            self._hurry.set()
        self._watched_s = now_s

    def look_soon(self) -> None:
        """Look at everything again at once: somebody has changed something."""
        self._is_thorough_next = True
        self._hurry.set()

    async def wait_first(self, timeout_s: float) -> None:
        """Wait until there is something to show, or for so long."""
        async with self._changed:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait_for(lambda: self._snapshot is not None)
            except TimeoutError:
                return

    def is_open(self, view: str) -> bool:
        """Whether somebody who listens has this view before him."""
        return self._open[view] > 0

    async def changes(
        self, *, heartbeat_s: float, views: Collection[str] = ()
    ) -> AsyncGenerator[Mapping[str, str] | None]:
        """The digests of all views, at once and whenever one has changed; None if nothing did for so long.

        ``views`` are those that lie open before who listens.
        """
        self._listeners += 1
        self._open.update(views)
        self.touch()
        told: Mapping[str, str] = {}
        try:
            while not self.is_closed:
                if self._told != told:
                    told = self._told
                    yield told
                    continue
                yield None if not await self._wait(told, heartbeat_s) else (told := self._told)
        finally:
            self._listeners -= 1
            self._open -= Counter(views)
            self.touch()

    async def _wait(self, told: Mapping[str, str], timeout_s: float) -> bool:
        async with self._changed:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait_for(lambda: self.is_closed or self._told != told)
            except TimeoutError:
                return False
        return not self.is_closed

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Look at the cluster while the block lasts."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._watch())
            try:
                yield
            finally:
                task.cancel()
                await self.close()

    async def close(self) -> None:
        """Let those go who wait: the console stops."""
        async with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    async def _watch(self) -> None:
        turn = 0
        while True:
            is_thorough = self._is_thorough_next or turn % THOROUGH_EVERY == 0
            self._is_thorough_next = False
            self._hurry.clear()
            await self._publish(await self._look(is_thorough=is_thorough))
            turn += 1
            pause_s = WATCHED_S if self._is_watched() else UNWATCHED_S
            try:
                # Not wait_for, which on Python 3.11 loses a cancellation that comes together with the event.
                async with asyncio.timeout(pause_s):
                    await self._hurry.wait()
            except TimeoutError:
                continue

    def _is_watched(self) -> bool:
        return self._listeners > 0 or self._clock.monotonic_s() - self._watched_s < _STILL_WATCHED_S

    async def _publish(self, snapshot: Snapshot) -> None:
        self._recorder.on_snapshot(snapshot)
        told = dict(self._digest(snapshot))
        for observer in self._observers:
            told |= await observer(snapshot)
        async with self._changed:
            self._snapshot = snapshot
            self._told = told
            self._changed.notify_all()
