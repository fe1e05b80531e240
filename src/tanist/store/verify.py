"""Checks a whole store from outside: every record, and every entry that points at one."""

from collections.abc import Callable

import msgspec

from tanist.errors import CorruptRecord
from tanist.store.reader import StoreReader
from tanist.store.recovery import LogScan, check_cut, flushed_ms, points_at, scan_segment

MAX_PROBLEMS = 100
"""How many problems are told; they are counted beyond that."""


class VerifyReport(msgspec.Struct, rename="camel"):
    """What was checked and what is wrong."""

    log_start: int = 0
    log_end: int = 0
    record_count: int = 0
    queue_count: int = 0
    entry_count: int = 0
    end_reason: str = ""
    problem_count: int = 0
    problems: list[str] = []

    def add_problem(self, text: str) -> None:
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)


def verify(reader: StoreReader, on_progress: Callable[[int], None]) -> VerifyReport:
    """Check everything; ``on_progress`` is told the bytes of log and queues that were checked."""
    report = VerifyReport(log_start=reader.segments.start)
    _verify_log(reader, report, on_progress)
    for (topic, queue_id), queue in reader.queues:
        report.queue_count += 1
        for offset, entry in queue.walk(queue.min_offset):
            report.entry_count += 1
            if not points_at(reader.segments, entry, topic=topic, queue_id=queue_id, queue_offset=offset):
                report.add_problem(
                    f"queue {topic}/{queue_id} offset {offset} points at {entry.log_offset}, "
                    "where no such message is"
                )
    return report


def _verify_log(reader: StoreReader, report: VerifyReport, on_progress: Callable[[int], None]) -> None:
    position = reader.segments.start
    for segment in reader.segments:
        if position == segment.start:
            found = scan_segment(segment, position, flushed_to=reader.flushed_to)
            position, report.end_reason = found.end, found.reason
            report.record_count += found.record_count
        on_progress(segment.size_bytes)
    report.log_end = position
    try:
        check_cut(
            reader.segments,
            LogScan(reader.segments.start, position, 0, report.end_reason),
            flushed_to=reader.checkpoint.flushed_to,
            flushed_ms=flushed_ms(reader.checkpoint, was_closed=reader.was_closed),
        )
    except CorruptRecord as damage:
        report.add_problem(
            f"the log ends at {position}, in {damage.path}: {report.end_reason}; no crash explains that"
        )
