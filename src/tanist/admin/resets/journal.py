"""What an apply has done so far, a line a step: who was killed and is called again goes on where it was.

Brokers of ours keep their orders themselves. Of others this file is the only memory, and what undo goes back
to. All but ``Journal`` is pure.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tanist.admin.resets.plan import Plan
from tanist.admin.resets.refused import ResetRefused
from tanist.clock import Clock, SystemClock
from tanist.protocol.java_json import BAD_JSON


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One step at one broker."""

    plan_id: str
    at_ms: int
    broker_name: str
    way: str
    before: dict[int, int] = {}
    """Where the group stood, by queue, before anything was changed there."""
    done: list[int] = []
    """The queues that were changed."""


@dataclass(slots=True)
class BrokerDone:
    """All that was done at one broker."""

    before: dict[int, int] = field(default_factory=dict[int, int])
    done: set[int] = field(default_factory=set[int])


def fold(entries: Iterable[JournalEntry]) -> dict[str, BrokerDone]:
    """What the lines come to, by broker name. What was written first of a queue is how it stood."""
    brokers: dict[str, BrokerDone] = {}
    for entry in entries:
        known = brokers.setdefault(entry.broker_name, BrokerDone())
        known.before = entry.before | known.before
        known.done |= set(entry.done)
    return brokers


def read_lines(data: bytes) -> tuple[list[JournalEntry], int]:
    """The entries of a file, and how many of its bytes they are.

    A last line without its end was cut by a crash: it is not one of them.
    """
    whole_bytes = data.rfind(b"\n") + 1
    lines = data[:whole_bytes].splitlines()
    return [msgspec.json.decode(line, type=JournalEntry) for line in lines], whole_bytes


def journal_path(plan_path: Path) -> Path:
    """The file beside a plan: ``plan.json`` has ``plan.applied.jsonl``."""
    return plan_path.with_name(f"{plan_path.stem}.applied.jsonl")


class Journal:
    """The file. A step is in it, and on the disk, before the next one is done."""

    def __init__(self, path: Path, plan: Plan, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._plan_id = plan.plan_id
        data = path.read_bytes() if path.exists() else b""
        try:
            entries, self._end = read_lines(data)
        except BAD_JSON as error:
            raise ResetRefused(f"{path} can not be read: {error}; move it away to begin anew") from error
        self.brokers = fold(entry for entry in entries if entry.plan_id == plan.plan_id)

    @property
    def has_begun(self) -> bool:
        return bool(self.brokers)

    def done_at(self, broker_name: str) -> BrokerDone:
        return self.brokers.setdefault(broker_name, BrokerDone())

    def write(
        self,
        broker_name: str,
        *,
        way: str,
        before: dict[int, int] | None = None,
        done: Sequence[int] = (),
    ) -> None:
        entry = JournalEntry(
            plan_id=self._plan_id,
            at_ms=self._clock.now_ms(),
            broker_name=broker_name,
            way=way,
            before=before or {},
            done=list(done),
        )
        line = msgspec.json.encode(entry) + b"\n"
        with self._path.open("r+b" if self._path.exists() else "w+b") as file:
            # Behind the last whole line: what a crash cut is written over.
            file.seek(self._end)
            file.truncate()
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._end += len(line)
        known = self.done_at(broker_name)
        known.before = entry.before | known.before
        known.done |= set(entry.done)
