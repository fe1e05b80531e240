"""What an archive holds: by topic, broker and queue, with what is missing between. From the files themselves.

Every file says in its footer what it holds. So the catalogue is of what is there, whoever wrote or moved it.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from tanist.spark.archive.folder import open_about
from tanist.spark.archive.layout import DATA, SUFFIX
from tanist.spark.archive.records import HOLDS_KEY, Holds, Run
from tanist.spark.archive.writing import in_order, joined
from tanist.spark.errors import SparkError

_READERS = 8

Range = tuple[int, int]
"""Offsets ``[first, end)``."""


class QueueEntry(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What is there of one queue."""

    topic: str
    broker: str | None
    queue_id: int
    ranges: list[Range]
    gaps: list[Range]
    """What is missing between the first and the last."""
    rows: int
    repeated: int
    """How many of them are there more than once; never any, if nobody copied files about."""
    bytes: int
    first_stored: str
    last_stored: str


class Catalogue(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What an archive holds."""

    archive: str
    source: str
    files: int
    file_bytes: int
    rows: int
    queues: list[QueueEntry]


class Found(msgspec.Struct, kw_only=True, frozen=True):
    """A file, and what it says of itself."""

    path: Path
    file_bytes: int
    holds: Holds


def read_catalogue(root: Path, *, topics: Iterable[str] | None = None) -> Catalogue:
    """Look at all files of an archive. Nothing is locked; what a writer moves in meanwhile may or may not be
    there."""
    about = open_about(root)
    wanted = None if topics is None else frozenset(topics)
    found = [one for one in find_files(root) if wanted is None or one.holds.topic in wanted]
    queues = make_entries((one.holds.topic, run) for one in found for run in one.holds.runs)
    return Catalogue(
        archive=str(root),
        source=about.source,
        files=len(found),
        file_bytes=sum(one.file_bytes for one in found),
        rows=sum(one.holds.rows for one in found),
        queues=queues,
    )


def find_files(root: Path) -> list[Found]:
    """All files of an archive, by their names."""
    paths = sorted((root / DATA).glob(f"*/*/*{SUFFIX}"))
    with ThreadPoolExecutor(_READERS) as pool:
        return [one for one in pool.map(_look_at, paths) if one is not None]


def read_holds(path: Path) -> Holds:
    """What a file says of itself."""
    parquet: Any = import_module("pyarrow.parquet")
    metadata: dict[bytes, bytes] | None = parquet.read_metadata(path).metadata
    text = (metadata or {}).get(HOLDS_KEY.encode())
    if text is None:
        raise SparkError(f"{path} was not written by an archive: it does not say what it holds; take it away")
    return msgspec.json.decode(text, type=Holds)


def _look_at(path: Path) -> Found | None:
    try:
        return Found(path=path, file_bytes=path.stat().st_size, holds=read_holds(path))
    except FileNotFoundError:
        # A compaction took it away while we looked. What it held is in another file, which has another name.
        return None


def make_entries(runs: Iterable[tuple[str, Run]]) -> list[QueueEntry]:
    """The queues that these runs are of, in order."""
    by_queue: dict[tuple[str, str, int], list[Run]] = {}
    for topic, run in runs:
        by_queue.setdefault((topic, run.broker or "", run.queue_id), []).append(run)
    return [_entry(key[0], found) for key, found in sorted(by_queue.items())]


def merged_runs(runs: Iterable[Run]) -> list[Run]:
    """The same runs, with those made one of which one begins where the other ends."""
    merged: list[Run] = []
    for run in in_order(runs):
        before = merged[-1] if merged else None
        if before is not None and _key(before) == _key(run) and before.end == run.first:
            merged[-1] = joined(before, run)
        else:
            merged.append(run)
    return merged


def _entry(topic: str, runs: list[Run]) -> QueueEntry:
    ranges = list(_united((run.first, run.end) for run in runs))
    rows = sum(run.rows for run in runs)
    return QueueEntry(
        topic=topic,
        broker=runs[0].broker,
        queue_id=runs[0].queue_id,
        ranges=ranges,
        gaps=[(before[1], after[0]) for before, after in pairwise(ranges)],
        rows=rows,
        repeated=rows - sum(end - first for first, end in ranges),
        bytes=sum(run.bytes for run in runs),
        first_stored=shown_time(min(run.first_stored_ms for run in runs)),
        last_stored=shown_time(max(run.last_stored_ms for run in runs)),
    )


def _united(ranges: Iterable[Range]) -> Iterator[Range]:
    """What these ranges cover together."""
    current: Range | None = None
    for first, end in sorted(ranges):
        if current is not None and first <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (first, end)
    if current is not None:
        yield current


def _key(run: Run) -> tuple[str | None, int]:
    return run.broker, run.queue_id


def shown_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
