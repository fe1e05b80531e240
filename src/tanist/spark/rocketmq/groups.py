"""Tells brokers how far a consumer group has read, so that the backlog they show goes down."""

import asyncio
from collections.abc import Iterable, Mapping

from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.offsets import UpdateConsumerOffsetRequest
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import group_offset, wired
from tanist.spark.rocketmq.offsets import QueueState, queue_name
from tanist.spark.rocketmq.options import RocketMQOptions


def commit_all(
    offsets: Mapping[MessageQueue, int], states: Iterable[QueueState], options: RocketMQOptions
) -> None:
    """Commit offsets of queues whose brokers are known."""
    addresses = {state.queue: state.addresses for state in states}

    async def commit_each() -> None:
        async with wired(options.client_settings) as wire:
            await asyncio.gather(
                *(
                    commit(wire, options.group, queue, offset, addresses[queue])
                    for queue, offset in offsets.items()
                    if queue in addresses
                )
            )

    asyncio.run(commit_each())


async def commit(
    wire: Wire,
    group: str,
    queue: MessageQueue,
    offset: int,
    addresses: Iterable[str],
    *,
    only_forward: bool = False,
) -> None:
    """Commit one offset with the first replica that takes it; if asked, none that is behind the group's."""
    header = UpdateConsumerOffsetRequest(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        consumer_offset=QueueOffset(offset),
    )
    failure: MQError = SparkError(f"nobody is known who has {queue_name(queue)}")
    for address in addresses:
        try:
            if only_forward and (await group_offset(wire, queue, address, group) or 0) >= offset:
                return
            await wire.ask(address, Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, header))
        except MQError as error:
            failure = error
        else:
            return
    raise failure
