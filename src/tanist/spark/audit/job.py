"""Audits stores: the work is divided among workers, and what they find is put together here."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from tanist.spark.audit.blocks import BLOCK_BYTES, Compared, Difference, compare, root
from tanist.spark.audit.certificate import Certificate
from tanist.spark.audit.indexes import (
    compare_keys,
    compare_offsets,
    compare_queue,
    key_parts,
    queue_keys,
    sum_keys,
    unknown_shape,
)
from tanist.spark.commitlog.files import StoreFiles
from tanist.spark.commitlog.logs import LogSeen, look_at
from tanist.spark.commitlog.planning import open_store
from tanist.spark.commitlog.walking import FileRange, walk_range
from tanist.spark.decoding import Located
from tanist.spark.errors import SparkError
from tanist.spark.running import Run, in_turn
from tanist.store.settings import StoreSettings

_log = logging.getLogger(__name__)

PART_BYTES = 64 * BLOCK_BYTES
"""What one task compares."""


class AuditReport(msgspec.Struct, kw_only=True, rename="camel"):
    """What came of an audit."""

    stores: tuple[str, ...]
    log_start: int
    log_end: int
    """All in between was compared."""
    ends: tuple[int, ...]
    """Where each log ends: what lies beyond ``log_end`` not all of them have."""
    root: str
    different_blocks: int
    first_difference: int | None = None
    different_store: str | None = None
    """Which store it is that has another byte there than the first."""
    bytes_there: tuple[int | None, int | None] | None = None
    record_start: int | None = None
    """The record that the differing byte belongs to, as the first store has it."""
    record: str | None = None
    epoch: int | None = None
    index_problems: list[str] = []
    """What consume queues or key indexes have otherwise than those of the first store."""
    offset_problems: list[str] = []
    """Where groups stand otherwise; with a slave that runs they may be some seconds apart."""

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


def audit(
    *stores: str,
    run: Run = in_turn,
    with_indexes: bool = True,
    settings: StoreSettings | None = None,
) -> AuditReport:
    """Compare the logs of two or more stores byte for byte, as far as all have them; then their indexes.

    ``settings`` are the store's: how an index file is divided does not stand in it.
    """
    if len(stores) < 2:
        raise SparkError("an audit compares two stores or more, and one is named")
    logs = [look_at(store) for store in stores]
    start, end = max(log.start for log in logs), min(log.end for log in logs)
    if start >= end:
        told = " and ".join(f"{log.root} has [{log.start}, {log.end})" for log in logs)
        raise SparkError(f"{told}: they have nothing in common")
    parts = [(place, min(place + PART_BYTES, end)) for place in range(start, end, PART_BYTES)]
    found = run(partial(_compare_part, logs), parts, size_of=partial(_part_bytes, len(logs)))
    report = AuditReport(
        stores=stores,
        log_start=start,
        log_end=end,
        ends=tuple(log.end for log in logs),
        root=root([leaf for part in found for leaf in part.leaves]).hex(),
        different_blocks=sum(part.different_blocks for part in found),
    )
    difference = next((part.difference for part in found if part.difference is not None), None)
    if difference is not None:
        _explain(report, difference)
    if with_indexes:
        _compare_indexes(report, settings or StoreSettings(), run)
    _log.info(
        "audited stores=%s log_start=%d log_end=%d read_bytes=%d different_blocks=%d index_problems=%d",
        ",".join(stores), start, end, (end - start) * len(stores), report.different_blocks,
        len(report.index_problems),
    )  # fmt: skip
    return report


def _part_bytes(store_count: int, part: Part) -> int:
    return store_count * (part[1] - part[0])


def _compare_indexes(report: AuditReport, settings: StoreSettings, run: Run) -> None:
    """Whether consume queues, key index and the offsets of groups agree as well."""
    stores, start, end = report.stores, report.log_start, report.log_end
    queues = run(partial(compare_queue, stores, start, end), queue_keys(stores))
    report.index_problems = [problem for problem in queues if problem is not None]
    index_files = key_parts(stores)
    unknown = next(filter(None, (unknown_shape(part, settings) for part in index_files)), None)
    if unknown is not None:
        report.index_problems.append(unknown)
    else:
        sums = run(partial(sum_keys, start, end, PART_BYTES, settings), index_files)
        report.index_problems += compare_keys(stores, start, PART_BYTES, sums)
    report.offset_problems = compare_offsets(stores)


def _compare_part(logs: Sequence[LogSeen], part: Part) -> Compared:
    first, *others = [log.files() for log in logs]
    try:
        return compare(first.read_across, [other.read_across for other in others], *part)
    finally:
        for files in (first, *others):
            files.close()


def _explain(report: AuditReport, difference: Difference) -> None:
    """Say which record the first differing byte is of, and whose epoch that was."""
    report.first_difference = difference.log_offset
    report.bytes_there = (difference.first, difference.second)
    report.different_store = report.stores[1 + difference.other]
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
