"""A reset at a broker that knows no orders, as RocketMQ's: only where it does exactly what the plan says.

There are no receipts. What clients say of themselves when they are asked, and what is committed, is all that
can be seen.
"""

from enum import StrEnum

from tanist.admin.resets.plan import Plan, PlannedQueue
from tanist.admin.resets.refused import ResetRefused
from tanist.client.session.wire import Wire
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import OffsetTable
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.offsets import UpdateConsumerOffsetRequest
from tanist.protocol.headers.reset import ResetOffsetRequest
from tanist.protocol.java_json import decode_java_json

_SERVER_SIDE = b"useServerSideResetOffset=true"
_TIMEOUT_S = 15.0


class StockWay(StrEnum):
    """How such a broker is told."""

    COMMIT = "15"
    """Nobody is online: the offset is committed for them."""
    QUEUE = "222 per queue"
    """It keeps the offset until the queue is pulled (RocketMQ 5.2 and newer)."""
    TIME = "222"
    """It finds the targets of a time itself and tells its clients."""


def choose_way(
    plan: Plan, broker_name: str, *, is_broadcast: bool, is_online: bool, is_server_side: bool
) -> StockWay:
    """How to do exactly what the plan says. Raises ResetRefused if the broker has no way to."""
    if is_broadcast:
        raise ResetRefused(
            f"{broker_name} is no Tanist broker: it can not reset a broadcasting group, whose clients keep "
            "their offsets themselves; stop them and edit their offsets.json"
        )
    if not is_online:
        return StockWay.COMMIT
    if is_server_side:
        return StockWay.QUEUE
    if plan.at_ms is not None:
        return StockWay.TIME
    raise ResetRefused(
        f"{broker_name} is no Tanist broker and can move clients that are online to a time only, not to "
        f"{plan.target}; plan a time, or stop the clients of {plan.group} and apply again"
    )


async def is_server_side(wire: Wire, address: str) -> bool:
    """Whether the broker keeps a reset itself until its clients pull."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_BROKER_CONFIG))
    return _SERVER_SIDE in bytes(answer.body)


async def commit_queue(wire: Wire, address: str, plan: Plan, queue: PlannedQueue) -> None:
    """For a group that is offline."""
    name = MessageQueue(topic=plan.topic, broker_name=queue.broker_name, queue_id=queue.queue_id)
    await commit_offset(wire, address, name, group=plan.group, offset=queue.target)


async def commit_offset(wire: Wire, address: str, queue: MessageQueue, *, group: str, offset: int) -> None:
    """Say that a group stands there."""
    header = UpdateConsumerOffsetRequest(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        consumer_offset=QueueOffset(offset),
    )
    await wire.ask(address, Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, header))


async def reset_queue(wire: Wire, address: str, plan: Plan, queue: PlannedQueue) -> None:
    """One queue, to an offset."""
    header = ResetOffsetRequest(
        topic=plan.topic,
        group=plan.group,
        timestamp_ms=plan.created_ms,
        is_force=True,
        queue_id=queue.queue_id,
        queue_offset=QueueOffset(queue.target),
    )
    code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    await wire.ask(address, Command.request(code, header), timeout_s=_TIMEOUT_S)


async def reset_by_time(
    wire: Wire, address: str, *, topic: str, group: str, timestamp_ms: int, is_force: bool
) -> dict[MessageQueue, int]:
    """All queues of a broker, to a time; where the broker says they go. -1 is the end of each queue."""
    header = ResetOffsetRequest(topic=topic, group=group, timestamp_ms=timestamp_ms, is_force=is_force)
    code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    answer = await wire.ask(address, Command.request(code, header), timeout_s=_TIMEOUT_S)
    return dict(decode_java_json(answer.body, OffsetTable).offset_table)


async def reset_one_queue(
    wire: Wire,
    address: str,
    *,
    topic: str,
    group: str,
    queue_id: int,
    timestamp_ms: int,
    queue_offset: int | None,
) -> dict[MessageQueue, int]:
    """One queue of one broker, to an offset or else to a time; where the broker says it goes."""
    header = ResetOffsetRequest(
        topic=topic,
        group=group,
        timestamp_ms=timestamp_ms,
        is_force=True,
        queue_id=queue_id,
        queue_offset=None if queue_offset is None else QueueOffset(queue_offset),
    )
    code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    answer = await wire.ask(address, Command.request(code, header), timeout_s=_TIMEOUT_S)
    return dict(decode_java_json(answer.body, OffsetTable).offset_table) if answer.body else {}
