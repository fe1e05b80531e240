"""Staying awake for an ack that is about to come.

Where nothing else is to do a process sleeps, and its core with it. To be woken then takes tens of
microseconds, as long as a slave takes to ack, and costs more than to look a few times. So while sends wait
for slaves the event loop looks at its sockets again and again, for ``AWAKE_S`` from the last that began to
wait. It does all its work meanwhile.

Only where it pays: acks that took longer, because slaves are far away or cores are busy with others, end it
for the next ``REST_WAITS`` waits. On a machine with one core it never begins, for that core is needed
elsewhere.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

AWAKE_S = 80e-6
"""Of an ack within a machine or a rack, twice its time."""
MOST_CREDIT = 8
VAIN_COST = 3
REST_WAITS = 200


@dataclass(slots=True)
class Credit:
    """Whether it pays, by how often it lately did. Pure."""

    _left: int = field(default=MOST_CREDIT, init=False)
    """Below one: how many waits it still rests for."""

    def take(self) -> bool:
        """Somebody begins to wait: whether to stay awake for him."""
        if self._left > 0:
            return True
        self._left += 1
        return False

    def on_paid(self) -> None:
        """The acks came in time."""
        self._left = min(self._left + 1, MOST_CREDIT)

    def on_vain(self) -> None:
        """They did not."""
        self._left -= VAIN_COST
        if self._left <= 0:
            self._left = -REST_WAITS


class Awake:
    """Keeps one event loop from sleeping."""

    def __init__(self, is_waited: Callable[[], bool], *, core_count: int | None = None) -> None:
        """``is_waited`` says whether anybody waits for an ack."""
        self._is_waited = is_waited
        self._can_pay = (core_count or len(os.sched_getaffinity(0))) > 1
        self._loop = asyncio.get_running_loop()
        self._credit = Credit()
        self._until_s = 0.0
        self._is_on = False

    @property
    def is_on(self) -> bool:
        return self._is_on

    def stay(self) -> None:
        """Somebody begins to wait for an ack."""
        if not self._can_pay or not (self._is_on or self._credit.take()):
            return
        self._until_s = time.perf_counter() + AWAKE_S
        if not self._is_on:
            self._is_on = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        if not self._is_waited():
            self._is_on = False
            self._credit.on_paid()
        elif time.perf_counter() < self._until_s:
            # What is due next turn keeps the loop from sleeping in this one.
            self._loop.call_soon(self._look)
        else:
            self._is_on = False
            self._credit.on_vain()
