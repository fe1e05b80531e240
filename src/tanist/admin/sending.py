"""Messages that operators send themselves: one by hand, one once more, and many to see how long they take."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tanist.admin.asking import TIMEOUT_S, Access
from tanist.admin.rows import Row
from tanist.client import Message, Producer
from tanist.errors import MQError
from tanist.model.route import MessageQueue

TOOLS_PRODUCER_GROUP = "TOOLS_PRODUCER"
"""The group in whose name operator tools send."""


class SentRow(Row, frozen=True, kw_only=True):
    """Where a message went, and how long that took."""

    broker_name: str | None
    queue_id: int | None
    is_sent: bool
    rt_ms: float
    message_id: str | None
    failure: str | None = None


@asynccontextmanager
async def sending(
    access: Access, name_servers: list[str], *, is_traced: bool = False
) -> AsyncGenerator[Producer]:
    """A producer while the block lasts, which asks as the operator does."""
    async with Producer(
        group=TOOLS_PRODUCER_GROUP,
        namesrv=name_servers,
        credentials=access.credentials,
        tls=access.tls,
        timeout_s=TIMEOUT_S,
        retries=0,
        trace=is_traced,
    ) as producer:
        yield producer


async def send_timed(producer: Producer, message: Message, queue: MessageQueue | None = None) -> SentRow:
    """Send one message; a failure is a row too."""
    start_s = time.perf_counter()
    try:
        receipt = await producer.send(message, queue=queue)
    except MQError as error:
        return SentRow(
            broker_name=None if queue is None else queue.broker_name,
            queue_id=None if queue is None else queue.queue_id,
            is_sent=False,
            rt_ms=_since_ms(start_s),
            message_id=None,
            failure=str(error),
        )
    return SentRow(
        broker_name=receipt.queue.broker_name,
        queue_id=receipt.queue.queue_id,
        is_sent=True,
        rt_ms=_since_ms(start_s),
        message_id=receipt.message_id,
    )


def average_ms(rows: list[SentRow]) -> float:
    """How long one send took, without the first one: that finds its way and connects."""
    timed = rows[1:] or rows
    return sum(row.rt_ms for row in timed) / len(timed) if timed else 0.0


def _since_ms(start_s: float) -> float:
    return round((time.perf_counter() - start_s) * 1000, 3)
