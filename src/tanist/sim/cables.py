"""Who reaches whom: what is said takes its time, and can be held back or lost on the way."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tanist.sim.clockwork import Clockwork, Do, Process

DELAY_S = 0.01


@dataclass(slots=True)
class _Held:
    """What was said into a cable that is cut."""

    way: tuple[str, str]
    process: Process
    life: int
    do: Do
    line: "Line | None"


@dataclass(eq=False, slots=True)
class Line:
    """One connection, one way: what is said on it arrives in its order."""

    last_s: float = 0.0


@dataclass(slots=True)
class Cables:
    """All cables between the processes. Without ``chance`` all takes the same time, and nothing is lost."""

    clockwork: Clockwork
    chance: Random | None = None
    is_slow: bool = False
    is_repeating: bool = False
    """Whether what is asked may be heard again later, as from who asks again after a lost connection."""
    far: str = "registry"
    """Whom what is said on slow cables often reaches late: how their names begin."""
    silence_s: float = 1.5
    """After so long without a word an end of a link takes the other one for gone."""
    latest_s: float = 0.0
    """When all is heard that was said and is not held."""
    cut: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    delays_s: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    _held: list[_Held] = field(default_factory=list[_Held])

    def say(
        self,
        way: tuple[str, str],
        process: Process,
        do: Do,
        *,
        line: Line | None = None,
        life: int | None = None,
    ) -> None:
        """Have a process hear something in one life of it, which is the one it has now unless told."""
        life = process.life if life is None else life
        if way in self.cut:
            # A connection that outlives the cut says it again later.
            if line is not None or self.chance is None or self.chance.random() < 0.5:
                self._held.append(_Held(way, process, life, do, line))
            return
        self._send(way, process, life, do, line)

    def mend(self, is_mended: Callable[[tuple[str, str]], bool]) -> None:
        """Make cables whole; what was held comes through."""
        self.cut = {way for way in self.cut if not is_mended(way)}
        held, self._held = self._held, []
        for each in held:
            if each.way in self.cut:
                self._held.append(each)
            else:
                self._send(each.way, each.process, each.life, each.do, each.line)

    def _send(self, way: tuple[str, str], process: Process, life: int, do: Do, line: Line | None) -> None:
        at_s = self.clockwork.now_s + self._delay_s(way)
        if line is not None:
            line.last_s = at_s = max(at_s, line.last_s)
        self.latest_s = max(self.latest_s, at_s)
        delay_s = at_s - self.clockwork.now_s
        self.clockwork.after(delay_s, do, process=process, life=life, is_timer=False)

    def _delay_s(self, way: tuple[str, str]) -> float:
        delay_s = self.delays_s.get(way, DELAY_S)
        if self.chance is None:
            return delay_s
        # What goes on one connection waits for what is before it, so few delays hold up much.
        if self.is_slow and self.chance.random() < (
            0.2 if way[0].startswith(self.far) or way[1].startswith(self.far) else 0.01
        ):
            return self.chance.uniform(0.3, 4.0)
        return self.chance.uniform(0.002, 0.04)
