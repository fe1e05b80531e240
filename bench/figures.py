"""What was measured, round by round, and what it is worth. Pure.

The sides of a figure were measured in turns, so the ratios of the same round tell more than those of two
medians: a noisy neighbour had hit both. Whether a goal is met is judged by these ratios. If they lie on both
sides of it, the figure does not say, and the verdict is that it is unclear.
"""

import math
import statistics
from enum import StrEnum

import msgspec

OURS = "Tanist"


class Verdict(StrEnum):
    WON = "won"
    LOST = "lost"
    UNCLEAR = "unclear"
    """The goal is within the range of what was seen."""
    NOT_RUN = "not run"


class Series(msgspec.Struct, frozen=True):
    """What one side did, a sample a round; ``lack`` says why there are none."""

    side: str
    samples: tuple[float, ...] = ()
    lack: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """The range as a share of the median."""
        if not self.samples or not self.median:
            return 0.0
        return (max(self.samples) - min(self.samples)) / abs(self.median)


class Goal(msgspec.Struct, frozen=True):
    """Our figure beside that of ``peer`` is to reach ``bound``; without a peer, our figure itself."""

    bound: float
    peer: str = ""


class Figure(msgspec.Struct, frozen=True):
    """One thing that was measured on several sides, in the same rounds.

    Those that differ in ``at`` alone make up a ``curve``: what something costs against its size.
    """

    row: str
    what: str
    unit: str
    series: tuple[Series, ...]
    is_more_better: bool = False
    goals: tuple[Goal, ...] = ()
    curve: str = ""
    at: float = 0.0

    def side(self, name: str) -> Series | None:
        return next((one for one in self.series if one.side == name), None)

    @property
    def peers(self) -> tuple[Series, ...]:
        return tuple(one for one in self.series if one.side != OURS)

    def ratios(self, peer: str) -> tuple[float, ...]:
        """Ours beside the peer's, round by round; none if one of the two is missing."""
        ours, theirs = self.side(OURS), self.side(peer)
        if ours is None or theirs is None:
            return ()
        return tuple(mine / other for mine, other in zip(ours.samples, theirs.samples, strict=False) if other)

    def ratio(self, peer: str) -> float | None:
        """The median of the ratios of all rounds."""
        ratios = self.ratios(peer)
        return statistics.median(ratios) if ratios else None

    def judge(self, goal: Goal) -> Verdict:
        """Whether all rounds reach a goal, or none of them, or some."""
        ours = self.side(OURS)
        seen = self.ratios(goal.peer) if goal.peer else ours.samples if ours else ()
        if not seen:
            return Verdict.NOT_RUN
        reached = [one >= goal.bound if self.is_more_better else one <= goal.bound for one in seen]
        if all(reached):
            return Verdict.WON
        return Verdict.UNCLEAR if any(reached) else Verdict.LOST

    def goal_text(self, goal: Goal) -> str:
        sign = "≥" if self.is_more_better else "≤"
        if not goal.peer:
            return f"{sign} {shown(goal.bound, self.unit)}"
        return f"{sign} {goal.bound:g} of {goal.peer}"


def percentile(samples: list[float], share: float) -> float:
    """The sample below which such a share of all lies."""
    return sorted(samples)[min(int(len(samples) * share), len(samples) - 1)]


_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def shown(value: float, unit: str) -> str:
    """A value as people read it: three digits, and the thousands in the unit."""
    if math.isinf(value):
        return "never"
    if unit.endswith(("/s", "B")):
        for size, prefix in _PREFIXES:
            if abs(value) >= size:
                return f"{_digits(value / size)} {prefix}{unit}"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{2 - math.floor(math.log10(abs(value)))}f}" if abs(value) >= 0.001 else f"{value:.2g}"
