"""Brings a store that was just opened into one state: log, queues and index end at the same record."""

import logging
from dataclasses import dataclass, replace

from tanist.errors import CorruptRecord, DiskFull
from tanist.model.offsets import LogOffset
from tanist.store.checkpoint import Checkpoint
from tanist.store.commitlog import CommitLog
from tanist.store.dispatch import Dispatcher
from tanist.store.key_index import KeyIndex
from tanist.store.queues import Queues
from tanist.store.recovery import LogScan, check_cut, flushed_ms, flushed_to, scan, trusted_to

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What opening a store found and did."""

    was_closed: bool
    """Whether the last process had closed the store."""
    scanned_from: int
    """Where the walk over the log began: everything before it was trusted."""
    log_end: int
    cleared_bytes: int
    """Bytes behind the end that were not zero: unfinished records, or leftovers of another broker."""
    reason: str
    """Why the log ends where it does."""
    finished_truncation: int | None
    """Where an interrupted truncation was finished, if there was one."""


def find_end(
    log: CommitLog, queues: Queues, *, checkpoint: Checkpoint, was_closed: bool, accept_loss: bool
) -> LogScan:
    """Find the log's end, and refuse a damaged log. Nothing is changed yet.

    A log that we closed ends where its last checkpoint says, and behind it are the zeros with which the
    file was made. To look at them takes seconds for a file of a GiB. RocketMQ leaves cut messages there,
    but also times of its own in the checkpoint, so that our offset does not count.
    """
    segments = log.segments
    start = trusted_to(segments, queues, checkpoint, was_closed=was_closed)
    found = scan(segments, start, flushed_to=flushed_to(checkpoint, was_closed=was_closed))
    if was_closed and found.end == checkpoint.flushed_to:
        return replace(found, is_closed_end=True)
    stamp_ms = flushed_ms(checkpoint, was_closed=was_closed)
    try:
        check_cut(segments, found, flushed_to=checkpoint.flushed_to, flushed_ms=stamp_ms)
    except CorruptRecord as damage:
        if not accept_loss:
            raise
        _log.error("damaged log is cut log_end=%d reason=%s", found.end, damage)
    return found


def settle(
    log: CommitLog,
    queues: Queues,
    index: KeyIndex,
    dispatcher: Dispatcher,
    found: LogScan,
    *,
    was_closed: bool,
    finished_truncation: int | None,
) -> RecoveryReport:
    """Cut everything at the log's end, and index what is not indexed yet, as far as the disk has room.

    On a full disk what is indexed can be read, and the next run of dispatch goes on with the rest.
    """
    start = found.start
    # After a crash the indexes may hold anything behind the checkpoint: they are built again from there.
    if queues.indexed_to > start or not was_closed:
        queues.cut(start)
    index.cut(start, is_whole=was_closed)
    cleared = log.cut(found.end, is_zero_behind=found.is_closed_end)
    # Before the log is dispatched: a queue that turns out to be empty goes on wherever the log does.
    queues.raise_min(log.log_start)
    index.raise_min(log.log_start)
    dispatcher.dispatched_to = LogOffset(start)
    dispatcher.last_timestamp_ms = found.last_timestamp_ms
    try:
        dispatcher.run()
        queues.write()
    except DiskFull as full:
        _log.warning("indexes wait for the disk dispatched_to=%d reason=%s", dispatcher.dispatched_to, full)
    # And after it, with all files there: of what was indexed again some may be deleted.
    queues.raise_min(log.log_start)
    return RecoveryReport(was_closed, start, found.end, cleared, found.reason, finished_truncation)
