"""Asks slaves, on the driver, whether they may be read: a task would find out only after half a minute."""

import asyncio
from collections.abc import Iterable

from tanist.client.session.wire import Wire
from tanist.errors import RemotingError
from tanist.protocol.codes import ResponseCode
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.access import TIMEOUT_S
from tanist.spark.rocketmq.cluster import wired
from tanist.spark.rocketmq.offsets import QueueState
from tanist.spark.rocketmq.options import SLAVE, RocketMQOptions
from tanist.spark.rocketmq.pulling import pull_request


def check_readable(states: Iterable[QueueState], options: RocketMQOptions) -> None:
    """Raise SparkError if only slaves are to be read, and all slaves of a broker refuse it."""
    if options.read_from == SLAVE:
        asyncio.run(_check_each(states, options))


async def _check_each(states: Iterable[QueueState], options: RocketMQOptions) -> None:
    one_of_each = {state.queue.broker_name: state for state in states}
    async with wired(options.client_settings) as wire:
        await asyncio.gather(*(_check(wire, state, options) for state in one_of_each.values()))


async def _check(wire: Wire, state: QueueState, options: RocketMQOptions) -> None:
    request = pull_request(state.queue, state.max_offset, 1, options)
    refusals: list[str] = []
    for address in state.addresses:
        try:
            answer = await wire.exchange(address, request, timeout_s=TIMEOUT_S)
        except RemotingError:
            continue
        if answer.code != ResponseCode.NO_PERMISSION:
            return
        refusals.append(f"{address} says: {answer.remark}")
    if refusals:
        raise SparkError(
            f"readFrom=slave, and no slave of {state.queue.broker_name} may be read now "
            f"({'; '.join(refusals)}); readFrom=any reads its master then"
        )
