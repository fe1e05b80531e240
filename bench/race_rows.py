"""The rows of the race: what each is about, how long it may take, and who runs it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import failover, ha, reset, slave_consume
from bench.bare_machine import bare_figures
from bench.broker import java_figures
from bench.figures import Figure
from bench.lean_race import lean_figures, sync_flush_figures
from bench.log_sizes import log_size_figures
from bench.race_record import Line, told_line
from bench.sizes import size_figures
from bench.start_up import start_up_figures
from bench.table import Row
from bench.turns import Allowance


@dataclass(frozen=True)
class Told:
    """What a row tells: figures with their samples, or lines of a benchmark that keeps none."""

    figures: list[Figure] = field(default_factory=list[Figure])
    lines: list[Line] = field(default_factory=list[Line])


@dataclass(frozen=True)
class RaceRow:
    """One row of the race."""

    about: str
    limit_s: float
    run: Callable[[Path, Allowance], Told]


def _figures(measure: Callable[[Path, Allowance], list[Figure]]) -> Callable[[Path, Allowance], Told]:
    return lambda home, allowance: Told(figures=measure(home, allowance))


def _lines(measure: Callable[[Allowance], list[Row]]) -> Callable[[Path, Allowance], Told]:
    return lambda _home, allowance: Told(lines=[told_line(row) for row in measure(allowance)])


def _part(
    measure: Callable[[Path, Allowance], list[Figure]], home: Path, allowance: Allowance
) -> list[Figure]:
    return measure(home / measure.__name__, allowance)


def _failover(allowance: Allowance) -> list[Row]:
    counts = {"kill": 2, "freeze": 1, "cut": 1}
    return [
        row
        for part, count in counts.items()
        for row in failover.parts(allowance.rounds(count))[f"failover-{part}"]()
    ]


def _spark(allowance: Allowance) -> list[Row]:
    """Its parts one after the other. One that fails, or that there is no time for, takes no other with it."""
    count, rounds = allowance.amount(300_000), allowance.rounds(5)
    parts: dict[str, tuple[Any, ...]] = {
        # First: only when Java is started, which all parts share, can it be given the jars of Kafka's source.
        "spark_read": (count, rounds),
        "spark_commitlog": ("0.1" if allowance.is_quick else "1",),
        "spark_archive": ("0.1" if allowance.is_quick else "1",),
        "spark_audit": ("0.1" if allowance.is_quick else "0.5",),
        "spark_write": (allowance.amount(100_000), allowance.rounds(3)),
    }
    rows: list[Row] = []
    for name, given in parts.items():
        if allowance.is_over:
            allowance.note(f"{name} was left out: the time is over")
            continue
        try:
            # Spark is an extra, and takes its time to be imported.
            module: Any = import_module(f"bench.{name}")
            rows += module.run(*given)
        except Exception as failure:
            if not rows:
                raise
            allowance.note(f"{name} failed: {type(failure).__name__}: {str(failure).partition(chr(10))[0]}")
    return rows


ROWS: dict[str, RaceRow] = {
    "bare": RaceRow(
        "The machine with no broker in the way: what nobody can be faster than.", 30, _figures(bare_figures)
    ),
    "java-sends": RaceRow(
        "RocketMQ's own Java client, one process for both sides, 1 KiB, one master, ASYNC_FLUSH. One-way "
        "sends are counted by what the broker holds.",
        330,
        _figures(java_figures),
    ),
    "lean-sends": RaceRow(
        "Sends one at a time on each connection, 1 KiB, one master, ASYNC_FLUSH, with a client that costs "
        "next to nothing. NATS JetStream keeps its stream in files and replicates nothing.",
        120,
        _figures(lean_figures),
    ),
    "sync-flush": RaceRow(
        "The same with SYNC_FLUSH: an answer comes when the message is on the disk.",
        50,
        _figures(sync_flush_figures),
    ),
    "double-write": RaceRow(
        "Sends that are answered when a slave has them too, 1 KiB: SYNC_MASTER and one slave; RocketMQ is "
        "told to wait for its slave. Redis: XADD and WAIT 1, one replica, its file synced once a second.",
        150,
        _figures(
            lambda home, allowance: [
                *_part(ha.java_writes, home, allowance),
                *_part(ha.lean_writes, home, allowance),
            ]
        ),
    ),
    "catch-up": RaceRow(
        "An empty slave of a master with one file of log, beside a bare copy of that file.",
        115,
        _figures(ha.catch_up),
    ),
    "lag": RaceRow(
        "How far a slave is behind a master that waits for nobody: at low load, after a burst, under load.",
        110,
        _figures(ha.lag),
    ),
    "start-up": RaceRow(
        "From nothing until a name server, a master and a slave are of use.", 80, _figures(start_up_figures)
    ),
    "failover": RaceRow(
        "Two replicas under a controller; the master is killed, frozen and cut off, while producers send.",
        300,
        _lines(_failover),
    ),
    "slave-consume": RaceRow(
        "A master with a fixed role is killed under load: how long consumers have nothing, and what they get "
        "twice.",
        150,
        _lines(lambda _allowance: slave_consume.run(1)),
    ),
    "reset": RaceRow(
        "The reset of a group of 100 clients with 1,000 queues.", 100, _lines(lambda _allowance: reset.run())
    ),
    "sizes": RaceRow(
        "What work costs against the size of messages, the number of queues and of connections.",
        150,
        _figures(size_figures),
    ),
    "log-sizes": RaceRow(
        "A broker whose log grows: its start after a stop and after a kill, finding a time in it, and how "
        "long an empty slave takes to have it, beside a bare copy of the same bytes before and after it. All "
        "three take longer where memory has to be found that was not used for a while, and once the disk has "
        "to take the bytes as they come: what Tanist adds is in the ratios.",
        330,
        _figures(log_size_figures),
    ),
    "spark": RaceRow("Spark over files and topics, on two cores.", 270, _lines(_spark)),
}
