"""Compares a store with a live broker: every message that the broker hands out, with the bytes in the log.

A broker answers pulls with records as they lie in its log, so each of them says where it has to be found.
"""

import logging
from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np

from tanist.spark.commitlog.logs import LogSeen, look_at
from tanist.spark.commitlog.planning import open_store
from tanist.spark.errors import SparkError, UnknownName
from tanist.spark.rocketmq.cluster import connected, look_up
from tanist.spark.rocketmq.offsets import PullRange, make_ranges, queue_name, split
from tanist.spark.rocketmq.options import RocketMQOptions
from tanist.spark.rocketmq.pulling import Puller, pull_records
from tanist.spark.running import Run, in_turn

_log = logging.getLogger(__name__)


class LiveReport(msgspec.Struct, kw_only=True, rename="camel"):
    """What came of comparing a store with a broker, or with a part of its queues."""

    compared_messages: int = 0
    compared_bytes: int = 0
    newer_messages: int = 0
    """Those that lie behind the end of the store's log, or before its start: they are not compared."""
    first_difference: int | None = None
    """The first byte of the log in which the two differ."""
    record: str | None = None
    epoch: int | None = None
    """In which it was written, if the store knows."""

    @property
    def is_equal(self) -> bool:
        return self.first_difference is None


def audit_live(
    store: str, options: RocketMQOptions, *, broker_name: str | None = None, run: Run = in_turn
) -> LiveReport:
    """Compare what a broker hands out of the topics of ``options`` with a store, as far as both have it."""
    assert options.start is not None
    assert options.end is not None
    states = look_up(options)
    brokers = {state.queue.broker_name for state in states}
    if broker_name is None and len(brokers) > 1:
        raise SparkError(f"a store is of one broker; name one of {', '.join(sorted(brokers))}")
    if broker_name is not None and broker_name not in brokers:
        raise UnknownName("broker", broker_name, brokers)
    ours = [state for state in states if broker_name in (None, state.queue.broker_name)]
    ranges = make_ranges(ours, options.start, options.end, fails_on_loss=options.fails_on_loss)
    parts = list(split(ranges, options.min_partitions))
    found = _together(run(partial(_compare_range, look_at(store), options), parts))
    if found.first_difference is not None:
        with open_store(store) as reader:
            epoch = reader.epochs.at(found.first_difference)
        found.epoch = None if epoch is None else epoch.epoch
    _log.info(
        "audited store=%s messages=%d read_bytes=%d outside=%d first_difference=%s",
        store, found.compared_messages, found.compared_bytes, found.newer_messages, found.first_difference,
    )  # fmt: skip
    return found


def _together(found: Sequence[LiveReport]) -> LiveReport:
    differing = [one for one in found if not one.is_equal]
    first = min(differing, key=lambda one: one.first_difference or 0, default=LiveReport())
    return LiveReport(
        compared_messages=sum(one.compared_messages for one in found),
        compared_bytes=sum(one.compared_bytes for one in found),
        newer_messages=sum(one.newer_messages for one in found),
        first_difference=first.first_difference,
        record=first.record,
    )


def _compare_range(log: LogSeen, options: RocketMQOptions, span: PullRange) -> LiveReport:
    report, files = LiveReport(), log.files()
    with connected(options) as (loop, wire):
        for found in pull_records(loop, Puller(wire, options), span, options):
            for row, log_offset in enumerate(found.log_offsets.tolist()):
                theirs = found.raw[found.starts[row] : found.ends[row]]
                if log_offset < log.start or log_offset + len(theirs) > log.end:
                    report.newer_messages += 1
                    continue
                report.compared_messages += 1
                report.compared_bytes += len(theirs)
                ours = files.read_across(log_offset, len(theirs))
                if report.is_equal and not np.array_equal(ours, theirs):
                    differing = np.flatnonzero(ours != theirs)
                    report.first_difference = log_offset + int(differing[0])
                    report.record = f"{queue_name(span.queue)} offset {int(found.queue_offsets[row])}"
    files.close()
    return report
