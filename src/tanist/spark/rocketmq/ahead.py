"""Reads a range ahead: several stretches of it are pulled at once, and are given out in their order.

One pull after another leaves a broker idle while its answer travels and is read, and brokers answer with
few messages. How many is only known when they have answered, so where the next pull will begin is not; but
a stretch of the range is some answers long, and who pulls it needs to know nothing of who pulls the others.

What is held is bounded by bytes, not by messages, whose sizes nobody knows before: a stretch that turns out
large ends early, and its rest is pulled when it is its turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tanist.spark.rocketmq.access import TIMEOUT_S

STRETCHES = 8
"""So many are pulled at once."""
STRETCH_BYTES = 1 << 20
"""A stretch that has so much ends early."""
FIRST_STRETCH = 32
"""Messages in the first stretches: as many as brokers answer with if nobody has changed their settings."""
_ANSWERS_IN_STRETCH = 8
_MOST_IN_STRETCH = 8192
_STANDSTILL_S = TIMEOUT_S / 2


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was pulled from ``first`` on: the records of each answer, and where to go on."""

    first: int
    answers: list[bytes | memoryview]
    next_offset: int

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.answers))


PullStretch: TypeAlias = Callable[[int, int], Coroutine[None, None, Stretch]]
"""Pulls from an offset on: up to another, or beyond it, or not as far if that is much. At least something."""


class _UnderWay(NamedTuple):
    first: int
    end: int
    task: asyncio.Task[Stretch]


@dataclass
class ReadAhead:
    """The stretches of a range ``[offset, end)``. ``offset`` is where what was not given out yet begins.

    The loop runs only while a stretch is asked for.
    """

    loop: asyncio.AbstractEventLoop
    pull: PullStretch
    offset: int
    end: int
    _begun_to: int = field(init=False)
    _message_count: int = field(default=FIRST_STRETCH, init=False)
    """In a stretch that begins now."""
    _under_way: deque[_UnderWay] = field(default_factory=deque[_UnderWay], init=False)
    _ran_at_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun_to = self.offset
        self._ran_at_s = self.loop.time()

    @property
    def is_done(self) -> bool:
        return self.offset >= self.end

    def next(self) -> Stretch:
        """The stretch that begins at ``offset``. What it has beyond its end comes again with the next one."""
        if self.loop.time() - self._ran_at_s > _STANDSTILL_S:
            self._ask_anew()
        stretch = self.loop.run_until_complete(self._next())
        self._ran_at_s = self.loop.time()
        return stretch

    def close(self) -> None:
        """Leave what is under way."""
        for one in self._under_way:
            one.task.cancel()
        self._under_way.clear()

    async def _next(self) -> Stretch:
        self._begin()
        _, end, task = self._under_way.popleft()
        stretch = await task
        self.offset = stretch.next_offset
        if self.offset < end:
            self._under_way.appendleft(self._begun(self.offset, end))
        self._learn(stretch)
        self._pass_over()
        self._begin()
        # A turn of the loop sends the requests; their answers come while others are decoded.
        await asyncio.sleep(0)
        return stretch

    def _learn(self, stretch: Stretch) -> None:
        """Brokers answer with more or less than was thought, by their settings and the messages' sizes."""
        by_answer = (stretch.next_offset - stretch.first) // len(stretch.answers)
        self._message_count = min(max(by_answer, 1) * _ANSWERS_IN_STRETCH, _MOST_IN_STRETCH)

    def _pass_over(self) -> None:
        """Answers may go far beyond their stretch: past what no filter matches, or what was deleted."""
        while self._under_way and self._under_way[0].end <= self.offset:
            self._under_way.popleft().task.cancel()
        self._begun_to = max(self._begun_to, self.offset)

    def _begin(self) -> None:
        while len(self._under_way) < STRETCHES and self._begun_to < self.end:
            end = min(self._begun_to + self._message_count, self.end)
            self._under_way.append(self._begun(self._begun_to, end))
            self._begun_to = end

    def _ask_anew(self) -> None:
        """Whoever reads took long: answers lay there unread, and would count as late before they are seen."""
        for place, (first, end, task) in enumerate(self._under_way):
            if not task.done():
                task.cancel()
                self._under_way[place] = self._begun(first, end)

    def _begun(self, first: int, end: int) -> _UnderWay:
        task = self.loop.create_task(self.pull(first, end))
        task.add_done_callback(_read_failure)
        return _UnderWay(first, end, task)


@contextmanager
def reading_ahead(
    loop: asyncio.AbstractEventLoop, pull: PullStretch, first: int, end: int
) -> Generator[ReadAhead]:
    """Reads ahead within the block."""
    ahead = ReadAhead(loop, pull, first, end)
    try:
        yield ahead
    finally:
        ahead.close()


def _read_failure(task: asyncio.Task[Stretch]) -> None:
    """One that is left before its turn may have failed: nobody else would look at that."""
    if not task.cancelled():
        task.exception()
