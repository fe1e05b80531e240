"""Audits two stores: the work is divided among workers, and what they find is put together here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tanist.spark.audit.blocks import BLOCK_BYTES, Compared, Difference, compare, root
from tanist.spark.audit.certificate import Certificate
from tanist.spark.commitlog.files import StoreFiles
from tanist.spark.commitlog.planning import open_store, readable_end
from tanist.spark.commitlog.walking import FileRange, walk_range
from tanist.spark.decoding import Located
from tanist.spark.errors import SparkError
from tanist.store.reader import StoreReader
from tanist.store.recovery import scan, trusted_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART_BYTES = 64 * BLOCK_BYTES
"""What one task compares."""


@dataclass(frozen=True, slots=True)
class LogSeen:
    """One of the logs, and what of it counts: from its first byte to its valid, confirmed end."""

    root: str
    segment_bytes: int
    start: int
    end: int

    def files(self) -> StoreFiles:
        return StoreFiles(self.root, self.segment_bytes)


class AuditReport(msgspec.Struct, kw_only=True, rename="camel"):
    """What came of an audit."""

    stores: tuple[str, str]
    log_start: int
    log_end: int
    """All in between was compared."""
    ends: tuple[int, int]
    """Where each log ends: beyond ``log_end`` only one of them has anything."""
    root: str
    different_blocks: int
    first_difference: int | None = None
    bytes_there: tuple[int | None, int | None] | None = None
    record_start: int | None = None
    """The record that the differing byte belongs to, as the first store has it."""
    record: str | None = None
    epoch: int | None = None

    @property
    def is_equal(self) -> bool:
        return self.different_blocks == 0

    def certificate(self) -> Certificate:
        """That the stores are the same. Raises SparkError if they are not."""
        if not self.is_equal:
            raise SparkError(f"the logs differ at {self.first_difference}: there is nothing to certify")
        return Certificate(
            log_start=self.log_start,
            log_end=self.log_end,
            root=self.root,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            stores=self.stores,
        )


Part = tuple[int, int]
Run = Callable[[Callable[[Part], Compared], Sequence[Part]], list[Compared]]
"""Has workers do something with every part, and gives what came of them in the same order."""


def in_turn(work: Callable[[Part], Compared], parts: Sequence[Part]) -> list[Compared]:
    """Have nobody else do it."""
    return [work(part) for part in parts]


def on_spark(spark: "SparkSession") -> Run:
    """Have the workers of a session do it."""

    def run(work: Callable[[Part], Compared], parts: Sequence[Part]) -> list[Compared]:
        # PySpark tells no types of what goes through it.
        context: Any = spark.sparkContext
        return context.parallelize(parts, max(1, len(parts))).map(work).collect()

    return run


def audit(first: str, second: str, run: Run = in_turn) -> AuditReport:
    """Compare the logs of two stores byte for byte, as far as both have them."""
    ours, theirs = look_at(first), look_at(second)
    start, end = max(ours.start, theirs.start), min(ours.end, theirs.end)
    if start >= end:
        raise SparkError(
            f"{first} has [{ours.start}, {ours.end}) and {second} [{theirs.start}, {theirs.end}): "
            "they have nothing in common"
        )
    parts = [(place, min(place + PART_BYTES, end)) for place in range(start, end, PART_BYTES)]
    found = run(partial(_compare_part, ours, theirs), parts)
    report = AuditReport(
        stores=(first, second),
        log_start=start,
        log_end=end,
        ends=(ours.end, theirs.end),
        root=root([leaf for part in found for leaf in part.leaves]).hex(),
        different_blocks=sum(part.different_blocks for part in found),
    )
    difference = next((part.difference for part in found if part.difference is not None), None)
    if difference is not None:
        _explain(report, difference)
    return report


def look_at(path: str) -> LogSeen:
    """The part of a store's log that counts."""
    with open_store(path) as reader:
        return LogSeen(str(reader.root), reader.segments.size_bytes, reader.segments.start, valid_end(reader))


def valid_end(reader: StoreReader) -> int:
    """Where the log ends: behind its last sound record, and no further than is confirmed."""
    start = trusted_to(reader.segments, reader.queues, reader.checkpoint, was_closed=reader.was_closed)
    found = scan(reader.segments, start, flushed_to=reader.flushed_to)
    return min(found.end, readable_end(reader))


def _compare_part(ours: LogSeen, theirs: LogSeen, part: Part) -> Compared:
    first, second = ours.files(), theirs.files()
    try:
        return compare(first.read_across, second.read_across, *part)
    finally:
        first.close()
        second.close()


def _explain(report: AuditReport, difference: Difference) -> None:
    """Say which record the first differing byte is of, and whose epoch that was."""
    report.first_difference = difference.log_offset
    report.bytes_there = (difference.first, difference.second)
    with open_store(report.stores[0]) as reader:
        epoch = reader.epochs.at(difference.log_offset)
        report.epoch = None if epoch is None else epoch.epoch
        segment = reader.segments.at(difference.log_offset)
        span = FileRange(
            path=str(segment.path),
            file_start=segment.start,
            file_end=segment.end,
            start=segment.start,
            end=difference.log_offset + 1,
            log_end=segment.end,
            sound_to=segment.end,
            is_last=True,
        )
        files = StoreFiles(str(reader.root), reader.segments.size_bytes)
    for found in walk_range(files.reader_of(span.path), span, checks_bodies=False):
        if isinstance(found, Located):
            report.record_start = int(found.log_offsets[-1])
            topic = found.raw[int(found.topic_starts[-1]) : int(found.topic_ends[-1])].tobytes()
            queue_id, offset = int(found.queue_ids[-1]), int(found.queue_offsets[-1])
            report.record = f"{topic.decode('utf-8', 'replace')}/{queue_id} offset {offset}"
        elif found.log_offset <= difference.log_offset:
            report.record_start, report.record = found.log_offset, f"broken: {found.reason}"
    files.close()
