"""Rows of a benchmark and how they are printed."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what was measured, ours, the peer's, and whether it is good enough."""

    what: str
    ours: str
    peer: str
    ratio: float | None
    target: str
    is_met: bool | None


def interleaved(rounds: int, *sides: Callable[[], float]) -> list[float]:
    """The median of each side. They take turns: a noisy neighbour hits all of them alike."""
    seen: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, figures in zip(sides, seen, strict=True):
            figures.append(side())
    return [statistics.median(figures) for figures in seen]


def print_rows(rows: list[Row]) -> None:
    table = Table("what", "ours", "peer", "ours ÷ peer", "target", "met")
    for row in rows:
        met = "" if row.is_met is None else "yes" if row.is_met else "NO"
        table.add_row(
            row.what, row.ours, row.peer, "" if row.ratio is None else f"{row.ratio:.2f}", row.target, met
        )
    Console(width=140).print(table)
