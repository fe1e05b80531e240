"""Consumers that ask for what their queue does not have, and are sent to where it begins or ends. Pure.

    legal --a pull outside of the queue--> CORRECTED --a pull within it--> legal
                                              |  ^
                                              +--+ another one outside: from the third on it LOOPS

A consumer that takes the correction pulls within the queue next. One that comes again and again from outside
does not take it, and consumes nothing: an operator has to see to it. (Clients of RocketMQ do that in
broadcasting mode if all offsets in their file are wrong, before 4.9.8 and 5.2.) A run of corrections is one
event, however long it is: a new one begins after a pull within the queue, or from another offset outside.

Most brokers have nobody to watch at most times, and a pull costs them one look at an empty dict.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

LOOP_COUNT = 3
MAX_WATCHED = 10_000
"""Of one more it is not known whether it comes again: its event is told, and no loop is seen."""
FORGET_MS = 600_000
"""Who did not come again for so long is gone."""


class Place(NamedTuple):
    """A queue as one client of a group reads it."""

    group: str
    client: str
    """Its id, or its address if it has none here."""
    topic: str
    queue_id: int


@dataclass(slots=True)
class Run:
    """The corrections of one place since its last pull within the queue."""

    asked: int
    corrected: int
    count: int
    since_ms: int
    last_ms: int

    @property
    def is_loop(self) -> bool:
        return self.count >= LOOP_COUNT


Listener = Callable[[Place, Run], None]


class Corrections:
    """All of one broker, in memory alone."""

    def __init__(self) -> None:
        self.watched: dict[Place, Run] = {}
        self.count = 0
        """How often somebody was corrected since the start."""
        self.listeners: list[Listener] = []
        """Told of each event: the beginning of a run."""
        self.loop_listeners: list[Listener] = []
        """Told when a run turns out to be a loop, once."""

    def on_corrected(self, place: Place, asked: int, corrected: int, now_ms: int) -> None:
        """A client asked for an offset that the queue does not have, and is sent to another."""
        self.count += 1
        run = self.watched.get(place)
        if run is None or run.asked != asked:
            count, since_ms = (0, now_ms) if run is None else (run.count, run.since_ms)
            run = Run(asked, corrected, count, since_ms, now_ms)
            if place in self.watched or len(self.watched) < MAX_WATCHED:
                self.watched[place] = run
            self._tell(self.listeners, place, run)
        run.count += 1
        run.corrected, run.last_ms = corrected, now_ms
        if run.count == LOOP_COUNT:
            self._tell(self.loop_listeners, place, run)

    def on_legal(self, place: Place) -> None:
        """A client asks for what the queue has, or will have next."""
        self.watched.pop(place, None)

    def on_tick(self, now_ms: int) -> None:
        """Forget those that are gone. To be called every few seconds."""
        for place, run in [*self.watched.items()]:
            if now_ms - run.last_ms >= FORGET_MS:
                del self.watched[place]

    def loops(self) -> dict[Place, Run]:
        """Those who do not take their correction."""
        return {place: run for place, run in self.watched.items() if run.is_loop}

    @staticmethod
    def _tell(listeners: list[Listener], place: Place, run: Run) -> None:
        for listener in listeners:
            listener(place, run)
