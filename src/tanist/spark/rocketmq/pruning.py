"""Leaves out of a read what the filters that Spark hands down do not want.

Spark applies those filters itself too, so what is left here may be too much and never too little. A broker's
answer for a time is trusted to be one message off, as that of older versions of RocketMQ may be.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tanist.spark.rocketmq.cluster import offsets_at
from tanist.spark.rocketmq.offsets import PullRange
from tanist.spark.rocketmq.options import RocketMQOptions
from tanist.spark.wanted import Bounds, Wanted


def pruned(ranges: Iterable[PullRange], wanted: Wanted, options: RocketMQOptions) -> list[PullRange]:
    """What is left to be read. Brokers are asked only if a time is wanted, and only of queues that are."""
    left = in_bounds(ranges, wanted)
    times = wanted.store_times
    if times.is_all:
        return left
    firsts = offsets_at(left, _from_ms(times), options)
    ends = offsets_at(left, _to_ms(times), options)
    return between(left, firsts, ends)


def in_bounds(ranges: Iterable[PullRange], wanted: Wanted) -> list[PullRange]:
    """What is left by topic, queue and queue offset."""
    offsets = wanted.queue_offsets
    found = (
        replace(one, first=max(one.first, offsets.least), end=min(one.end, offsets.most + 1))
        for one in ranges
        if wanted.topics is None or one.queue.topic in wanted.topics
        if wanted.queue_ids is None or one.queue.queue_id in wanted.queue_ids
    )
    return [one for one in found if one.first < one.end]


def between(
    ranges: Sequence[PullRange], firsts: Sequence[int | None], ends: Sequence[int | None]
) -> list[PullRange]:
    """What is left by the offsets that brokers found for the times; None where no time was asked for."""
    found = (
        replace(
            one,
            first=one.first if first is None else max(one.first, first - 1),
            end=one.end if end is None else min(one.end, end + 1),
        )
        for one, first, end in zip(ranges, firsts, ends, strict=True)
    )
    return [one for one in found if one.first < one.end]


def _from_ms(times: Bounds) -> int | None:
    return None if times.least == Bounds().least else max(0, times.least)


def _to_ms(times: Bounds) -> int | None:
    return None if times.most == Bounds().most else max(0, times.most + 1)
