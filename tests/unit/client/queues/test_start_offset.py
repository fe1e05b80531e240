"""Where a consumer begins in a queue that it takes."""

import asyncio
from datetime import UTC, datetime
from typing import cast

import pytest

from tanist.client import MessageQueue, Start
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.offsets.offset_store import OffsetStore
from tanist.client.queues.start_offset import find_start
from tanist.model.offsets import QueueOffset

QUEUE = MessageQueue(topic="T", broker_name="b", queue_id=0)
RETRIES = MessageQueue(topic="%RETRY%G", broker_name="b", queue_id=0)
FIRST, LAST, AT_TIME = 10, 90, 50


class Queue:
    """A queue that has the offsets 10 to 90, and a group that stands somewhere in it, or does not."""

    def __init__(self, kept: int | None) -> None:
        self.kept = kept

    async def read_for_rebalance(self, _queue: MessageQueue) -> int | None:
        return self.kept

    async def min_offset(self, _queue: MessageQueue) -> int:
        return FIRST

    async def max_offset(self, _queue: MessageQueue) -> int:
        return LAST

    async def offset_at(self, _queue: MessageQueue, timestamp_ms: int) -> int:
        assert timestamp_ms == 5_000
        return AT_TIME


def start_of(queue: MessageQueue, start: Start | datetime, *, kept: int | None = None) -> QueueOffset:
    known = Queue(kept)
    found = find_start(
        queue, start=start, offsets=cast("OffsetStore", known), calls=cast("BrokerCalls", known)
    )
    return asyncio.run(found)


@pytest.mark.parametrize("start", [Start.FIRST, Start.LAST, datetime.fromtimestamp(5, UTC)])
def test_a_group_goes_on_where_it_stands_whatever_its_start(start: Start | datetime) -> None:
    assert start_of(QUEUE, start, kept=0) == 0
    assert start_of(QUEUE, start, kept=33) == 33


@pytest.mark.parametrize(
    ("start", "offset"),
    [(Start.FIRST, FIRST), (Start.LAST, LAST), (datetime.fromtimestamp(5, UTC), AT_TIME)],
)
def test_a_group_that_was_never_there_begins_where_it_is_told_and_gets_all_retries(
    start: Start | datetime, offset: int
) -> None:
    assert start_of(QUEUE, start) == offset
    assert start_of(RETRIES, start) == FIRST
