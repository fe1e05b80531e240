"""Events on a virtual clock, and processes that stand still, die and begin another life."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

Do = Callable[[], None]


@dataclass(eq=False, slots=True)
class Process:
    """One process. Its clock has a rate of its own, and runs on while the process stands still."""

    name: str
    rate: float = 1.0
    life: int = 0
    is_up: bool = False
    is_frozen: bool = False
    waiting: list[tuple[bool, Do]] = field(default_factory=list[tuple[bool, Do]])
    """What came while it stood still, and whether each was a timer."""

    @property
    def is_awake(self) -> bool:
        return self.is_up and not self.is_frozen


class Clockwork:
    """Runs what is due, one thing after the other."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._due: list[tuple[float, int, Process | None, int, bool, Do]] = []
        self._order = count()
        self.after_each: Do | None = None

    def after(
        self,
        delay_s: float,
        do: Do,
        *,
        process: Process | None = None,
        life: int | None = None,
        is_timer: bool = True,
    ) -> None:
        """Have it done later; with a process only in that life of it, and not while it stands still."""
        if process is not None and life is None:
            life = process.life
        heapq.heappush(self._due, (self.now_s + delay_s, next(self._order), process, life or 0, is_timer, do))

    def run_for(self, duration_s: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; whether ``until`` came true, which ends it."""
        end_s, due = self.now_s + duration_s, self._due
        while due and due[0][0] <= end_s:
            self._step()
            if until is not None and until():
                return True
        self.now_s = end_s
        self._look()
        return until is not None and until()

    def thaw(
        self, process: Process, arrange: Callable[[list[tuple[bool, Do]]], Iterable[tuple[bool, Do]]]
    ) -> None:
        """Let a process go on: it finds all at once what came in the meantime."""
        if not process.is_frozen:
            return
        process.is_frozen = False
        waiting, process.waiting = process.waiting, []
        self._look()
        for is_timer, do in arrange(waiting):
            self.after(0.0, do, process=process, is_timer=is_timer)

    def _step(self) -> None:
        self.now_s, _, process, life, is_timer, do = heapq.heappop(self._due)
        if process is not None:
            if not process.is_up or process.life != life:
                return
            if process.is_frozen:
                process.waiting.append((is_timer, do))
                return
        do()
        if self.after_each is not None:
            self.after_each()

    def _look(self) -> None:
        if self.after_each is not None:
            self.after_each()
