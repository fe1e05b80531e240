"""What a broker keeps of writes that are made once, as it tells writers and as it writes it down itself."""

import msgspec

from tanist.model.integers import Int32, Int64
from tanist.protocol.bodies.base import Body


class QueueCount(Body, frozen=True, kw_only=True):
    """How many queues of one broker a plan has."""

    broker_name: str
    count: Int32


class WritePlan(Body, frozen=True, kw_only=True):
    """Which queues a query writes to from a batch on: a repeated batch must find those that it had."""

    from_batch: Int64
    queues: list[QueueCount]


class QueueMark(Body, frozen=True, kw_only=True):
    """The last record that a queue has of a partition."""

    queue_id: Int32
    batch: Int64
    index: Int64
    sum: Int64


class WriteProgress(Body, frozen=True, kw_only=True):
    """The answer to a writer."""

    plans: list[WritePlan] = msgspec.field(default=[])
    marks: list[QueueMark] = msgspec.field(default=[])
    is_ended: bool = False
    last_batch: Int64 = -1
    """The newest batch that there is something of; -1: there is nothing."""
    partition_count: Int32 = 0
    """How many partitions it has at least: one more than the last one that there is something of."""


class KeptMark(msgspec.Struct, frozen=True, array_like=True):
    """One mark as it is written down."""

    partition: int
    queue_id: int
    batch: int
    index: int
    sum: int
    log_end: int
    time_ms: int


class KeptWrite(Body, frozen=True, kw_only=True):
    """All that is written down of one query in one topic."""

    query: str
    topic: str
    time_ms: Int64
    is_ended: bool = False
    plans: list[WritePlan] = msgspec.field(default=[])
    marks: list[KeptMark] = msgspec.field(default=[])


class KeptWrites(Body, frozen=True, kw_only=True):
    """All that a broker had of all queries at one place of its log."""

    writes: list[KeptWrite] = msgspec.field(default=[])
