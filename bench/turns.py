"""The loop of all benchmarks that set sides beside each other: A B, B A, A B, within a time.

A neighbour's noise hits all sides alike, and none of them always has the warmer client. A round in which a
send failed counts for nobody: that side did other work.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bench.figures import Series

_T = TypeVar("_T")
_QUICK_SHARE = 0.1
_MOST_VOID = 2
_WARM_UP_MS = 4_000


@dataclass(slots=True)
class Allowance:
    """How long a row may take. ``is_quick`` is for seeing that it works: its figures are worth nothing."""

    limit_s: float
    is_quick: bool = False
    notes: list[str] = field(default_factory=list[str])
    """What a reader of the figures has to know: rounds that are missing or void."""
    _ends_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._ends_s = time.monotonic() + self.limit_s

    def amount(self, usual: int, *, least: int = 1) -> int:
        """So many messages, milliseconds or bytes."""
        return max(least, int(usual * _QUICK_SHARE)) if self.is_quick else usual

    def rounds(self, usual: int) -> int:
        return 1 if self.is_quick else usual

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._ends_s

    def note(self, text: str) -> None:
        print(f"  {text}", file=sys.stderr)
        self.notes.append(text)


@dataclass(slots=True)
class Turns(Generic[_T]):
    """What each side did in each round that counts."""

    seen: dict[str, list[_T]]

    def series(self, read: Callable[[_T], float]) -> tuple[Series, ...]:
        return tuple(Series(side, tuple(map(read, results))) for side, results in self.seen.items())


def warm_up(
    sends: Iterable[Callable[[int], object]], allowance: Allowance, *, duration_ms: int = _WARM_UP_MS
) -> None:
    """Have each side work so long, with many senders, before the first round of few.

    A JVM compiles what has run thousands of times.
    """
    for send in sends:
        send(allowance.amount(duration_ms))


def take_turns(
    what: str,
    sides: Mapping[str, Callable[[], _T]],
    allowance: Allowance,
    *,
    rounds: int,
    warm_rounds: int = 0,
    is_void: Callable[[_T], bool] = lambda _: False,
) -> Turns[_T]:
    """Have all sides work in turns. Rounds for which there is no time are left out, but not the first."""
    turns = Turns({side: list[_T]() for side in sides})
    wanted = allowance.rounds(rounds)
    for number in range(-allowance.rounds(warm_rounds) if warm_rounds else 0, 0):
        _round(sides, number)
    done = void = number = 0
    while done < wanted:
        if done and allowance.is_over:
            allowance.note(f"{what}: {done} of {wanted} rounds, for want of time")
            break
        results = _round(sides, number)
        number += 1
        if any(map(is_void, results.values())):
            void += 1
            allowance.note(f"{what}: a round was void, because sends failed")
            if void > _MOST_VOID:
                break
            continue
        done += 1
        for side, result in results.items():
            turns.seen[side].append(result)
    print(f"  {what}: load of the machine {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return turns


def _round(sides: Mapping[str, Callable[[], _T]], number: int) -> dict[str, _T]:
    names = list(sides) if number % 2 == 0 else list(sides)[::-1]
    return {name: sides[name]() for name in names}
