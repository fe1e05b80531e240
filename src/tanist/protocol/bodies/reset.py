"""Offsets that clients are told to go to, and that they keep for themselves."""

import msgspec

from tanist.model.integers import Int32, QueueOffset64
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.base import Body
from tanist.protocol.java_json import ObjectKeyed


class OffsetTable(Body, frozen=True, kw_only=True):
    """An offset a queue: the body of a reset, and a broadcasting client's own ``offsets.json``."""

    offset_table: ObjectKeyed[MessageQueue, QueueOffset64] = msgspec.field(
        default_factory=ObjectKeyed[MessageQueue, QueueOffset]
    )


class QueueOffsetRow(Body, frozen=True, kw_only=True):
    """One queue and its offset, as clients written in C++ want them."""

    topic: str
    broker_name: str
    queue_id: Int32
    queue_offset: QueueOffset64 = msgspec.field(name="offset")


class OffsetRows(Body, frozen=True, kw_only=True):
    """The body of a reset for clients written in C++: a list, because they cannot read objects as keys."""

    offset_table: list[QueueOffsetRow] = msgspec.field(default=[])


def rows_of(table: OffsetTable) -> OffsetRows:
    """The same offsets as a list."""
    return OffsetRows(
        offset_table=[
            QueueOffsetRow(
                topic=queue.topic, broker_name=queue.broker_name, queue_id=queue.queue_id, queue_offset=offset
            )
            for queue, offset in sorted(table.offset_table.items())
        ]
    )
