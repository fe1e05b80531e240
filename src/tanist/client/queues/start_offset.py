"""Where a consumer begins in a queue that it takes."""

from datetime import datetime

from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.subscriptions import Start
from tanist.client.offsets.offset_store import OffsetStore
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.topics import RETRY_PREFIX


async def find_start(
    queue: MessageQueue, *, start: Start | datetime, offsets: OffsetStore, calls: BrokerCalls
) -> QueueOffset:
    """Where the group stands in the queue or, if it never was there, where it is to begin.

    Wherever it begins, it gets all of its retries: they were sent back by a member of the same group.
    """
    offset = await offsets.read_for_rebalance(queue)
    if offset is not None:
        return offset
    if start is Start.FIRST or queue.topic.startswith(RETRY_PREFIX):
        return await calls.min_offset(queue)
    if start is Start.LAST:
        return await calls.max_offset(queue)
    return await calls.offset_at(queue, int(start.timestamp() * 1000))
