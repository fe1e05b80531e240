"""What a race leaves behind: its figures, and under which conditions they came about."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import msgspec
import psutil

from bench.figures import OURS, Figure, Verdict, shown
from bench.table import Row
from tanist.broker import lane

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("race.json")
"""The last full race; the page about performance is made from it."""
ROCKETMQ = "5.3.3"


class Line(msgspec.Struct, frozen=True):
    """A line of a table, as people read it; ``verdicts`` has one for each goal."""

    what: str
    ours: str
    peers: tuple[str, ...] = ()
    ratios: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


class RowRecord(msgspec.Struct, frozen=True):
    """All that came of one row of the race."""

    name: str
    took_s: float
    load: float
    """The machine's, when the row was over."""
    figures: tuple[Figure, ...] = ()
    told: tuple[Line, ...] = ()
    """Lines that have no samples behind them."""
    notes: tuple[str, ...] = ()
    lack: str = ""
    """Why there is nothing."""

    @property
    def lines(self) -> tuple[Line, ...]:
        return (*map(line_of, self.figures), *self.told)


class RaceRecord(msgspec.Struct):
    """A race, or as much as there is of it yet."""

    began: str
    commit: str
    is_clean: bool
    is_quick: bool
    machine: dict[str, str]
    versions: dict[str, str]
    rows: list[RowRecord] = []

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        unfinished.rename(path)


def read_record(path: Path = RECORD) -> RaceRecord | None:
    """The race of this file, if there is one."""
    return msgspec.json.decode(path.read_bytes(), type=RaceRecord) if path.exists() else None


def line_of(figure: Figure) -> Line:
    ours = figure.side(OURS)
    peers = [one for one in figure.series if one.side != OURS]
    ratios = ((one.side, figure.ratio(one.side), figure.ratios(one.side)) for one in peers)
    return Line(
        figure.what,
        "" if ours is None else _seen(ours.samples, figure.unit, ours.lack, ours.spread),
        tuple(f"{one.side} {_seen(one.samples, figure.unit, one.lack, one.spread)}" for one in peers),
        tuple(_ratio(ratio, all_of) for _, ratio, all_of in ratios if ratio is not None),
        tuple(map(figure.goal_text, figure.goals)),
        tuple(map(figure.judge, figure.goals)),
    )


def told_line(row: Row) -> Line:
    """A row of a benchmark that keeps no samples."""
    verdict = () if row.is_met is None else (Verdict.WON if row.is_met else Verdict.LOST,)
    return Line(
        row.what.strip(),
        row.ours,
        (row.peer,) if row.peer else (),
        () if row.ratio is None else (f"{row.ratio:.2f}",),
        (row.target,) if row.target else (),
        verdict,
    )


def figure_rows(figures: Sequence[Figure]) -> list[Row]:
    """The same figures as rows of ``make bench``: one for each goal, or one without any."""
    rows: list[Row] = []
    for figure in figures:
        line = line_of(figure)
        peers = ", ".join(line.peers)
        for goal in figure.goals or (None,):
            peer = goal.peer if goal and goal.peer else next((one.side for one in figure.peers), "")
            is_met = None if goal is None else _IS_MET[figure.judge(goal)]
            target = "" if goal is None else figure.goal_text(goal)
            rows.append(Row(figure.what, line.ours, peers, figure.ratio(peer), target, is_met))
    return rows


_IS_MET = {Verdict.WON: True, Verdict.LOST: False, Verdict.UNCLEAR: None, Verdict.NOT_RUN: None}


def _seen(samples: Sequence[float], unit: str, lack: str, spread: float) -> str:
    if not samples:
        return f"not run: {lack or 'no round counted'}"
    middle = sorted(samples)[len(samples) // 2] if len(samples) % 2 else sum(_middle_two(samples)) / 2
    return shown(middle, unit) + (f" ± {spread / 2:.0%}" if len(samples) > 1 else "")


def _middle_two(samples: Sequence[float]) -> list[float]:
    half = len(samples) // 2
    return sorted(samples)[half - 1 : half + 1]


def _ratio(ratio: float, all_of: Sequence[float]) -> str:
    if len(all_of) < 2:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} [{min(all_of):.2f} to {max(all_of):.2f}]"


def new_record(*, began: str, is_quick: bool) -> RaceRecord:
    """A race that is about to begin, here and now."""
    changed = _asked("git", "status", "--porcelain")
    return RaceRecord(
        began=began,
        commit=_asked("git", "rev-parse", "--short=12", "HEAD") or "unknown",
        is_clean=not changed,
        is_quick=is_quick,
        machine={
            "cpu": _cpu(),
            "cores": str(os.cpu_count()),
            "memory": f"{psutil.virtual_memory().total / (1 << 30):.0f} GiB",
            "kernel": f"{platform.system()} {platform.release()}",
        },
        versions={
            "Python": platform.python_version(),
            "uvloop": metadata.version("uvloop"),
            "engine": "none, Python takes the sends" if lane.engine is None else "compiled",
            "RocketMQ": ROCKETMQ,
            "Java": _version("java", "-version"),
            "Redis": _version("redis-server", "--version"),
            "NATS": _version("nats-server", "--version"),
        },
    )


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(program: str, option: str) -> str:
    if shutil.which(program) is None:
        return "not installed"
    found = re.search(r"\d+(\.\d+)+", _asked(program, option))
    return found[0] if found else "unknown"


def _asked(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip() if done.returncode == 0 else ""
