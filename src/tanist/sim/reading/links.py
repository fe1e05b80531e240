"""Replication links that are played: each end notices for itself that the other one is gone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tanist.sim.cables import Cables, Line
from tanist.sim.clockwork import Clockwork, Process

BEAT_S = 0.4


@dataclass(eq=False, slots=True)
class LinkEnd:
    """What one of two processes has of a link."""

    owner: Process
    clockwork: Clockwork
    cables: Cables
    on_heard: Callable[[Any], None]
    on_closed: Callable[[], None]
    other: "LinkEnd | None" = None
    is_open: bool = True
    life: int = field(init=False)
    _heard_s: float = field(init=False)
    line: Line = field(default_factory=Line, init=False)

    def __post_init__(self) -> None:
        self.life = self.owner.life
        self._heard_s = self.clockwork.now_s
        self._beat()

    def say(self, what: Any) -> None:
        """Tell the other end something, if there is one that can still hear it."""
        other = self.other
        if not self.is_open or other is None:
            return
        way = (self.owner.name, other.owner.name)
        if other.owner.is_up and other.owner.life == other.life:
            self.cables.say(way, other.owner, lambda: other.hear(what), line=other.line)
        elif way not in self.cables.cut:
            # Nobody is there any more: that is answered too.
            self.cables.say((other.owner.name, self.owner.name), self.owner, self.close)

    def hear(self, what: Any) -> None:
        if self.is_open:
            self._heard_s = self.clockwork.now_s
            if what is not None:
                self.on_heard(what)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.on_closed()

    def _beat(self) -> None:
        if not self.is_open:
            return
        if self.clockwork.now_s - self._heard_s >= self.cables.silence_s:
            self.close()
            return
        self.say(None)
        self.clockwork.after(BEAT_S, self._beat, process=self.owner)
