"""One read of messages that a program chose itself."""

import asyncio
from contextlib import suppress

from tanist.client.errors import InvalidArgument
from tanist.client.pulling.fetched import Outcome
from tanist.client.pulling.fetching import Fetcher
from tanist.client.received import ReceivedMessage
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData


async def pull_by_hand(
    fetcher: Fetcher,
    queue: MessageQueue,
    offset: QueueOffset,
    *,
    subscription: SubscriptionData | None,
    max_count: int,
    timeout_s: float,
) -> list[ReceivedMessage]:
    """What the queue has from ``offset`` on, as soon as there is something within the time.

    ``subscription`` None stands for every message. Raises InvalidArgument if the queue does not have the
    offset.
    """
    wanted = subscription or SubscriptionData(topic=queue.topic)
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    with suppress(TimeoutError):
        # RocketMQ's brokers look after waiting pulls every 5 s only, so they may answer later than told.
        async with asyncio.timeout_at(deadline_s):
            while True:
                fetched = await fetcher.fetch(
                    queue,
                    offset,
                    subscription=wanted,
                    max_count=max_count,
                    suspend_s=max(0.0, deadline_s - loop.time()),
                    is_by_hand=True,
                )
                if fetched.outcome is Outcome.MOVED:
                    raise InvalidArgument(
                        "offset", offset, f"the queue has {fetched.min_offset} to {fetched.max_offset}"
                    )
                if fetched.messages:
                    return fetched.messages
                if fetched.outcome is Outcome.NOTHING:
                    return []
                offset = fetched.next_offset
    return []
