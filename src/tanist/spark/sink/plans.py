"""Which queue a row goes to, the same whenever it is written. Pure.

A query keeps to a plan, a list of queues, that the brokers of all these queues know before anything is
written. If queues come or go there is a new plan from the next batch on: a batch that is repeated finds the
queues that it had, and a broker that is away is missed and not replaced.
"""

from collections.abc import Iterable, Mapping, Sequence

from tanist.client.sending.queue_choice import queue_of_key
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.writes import QueueCount, WritePlan, WriteProgress
from tanist.spark.errors import SparkError

RUN_ROWS = 500
"""So many rows of a partition go to one queue before the next one has its turn."""

Counts = Mapping[str, int]
"""How many queues each broker has."""


def make_plan(counts: Counts, from_batch: int) -> WritePlan:
    """The plan of these queues."""
    queues = [QueueCount(broker_name=name, count=count) for name, count in sorted(counts.items())]
    return WritePlan(from_batch=from_batch, queues=queues)


def counts_of(plan: WritePlan) -> dict[str, int]:
    return {one.broker_name: one.count for one in plan.queues}


def plan_in_force(told: Iterable[WritePlan], batch: int) -> WritePlan | None:
    """The plan of a batch, of those that brokers told; None if there is none. Raises if two contradict."""
    by_batch: dict[int, WritePlan] = {}
    for plan in told:
        if by_batch.setdefault(plan.from_batch, plan) != plan:
            raise SparkError(
                f"brokers were given different plans from batch {plan.from_batch} on: {counts_of(plan)} and "
                f"{counts_of(by_batch[plan.from_batch])}; begin with another query id or checkpoint"
            )
    if not by_batch:
        return None
    held = [from_batch for from_batch in by_batch if from_batch <= batch]
    if not held:
        raise SparkError(
            f"batch {batch} is older than any plan that the brokers know, which begin with batch "
            f"{min(by_batch)}: the checkpoint is older than what was written"
        )
    return by_batch[max(held)]


def partition_count(told: Iterable[WriteProgress | None], batch: int) -> int:
    """How many partitions of a batch brokers have something of, at least."""
    progresses = [progress for progress in told if progress is not None]
    return max((one.partition_count for one in progresses if one.last_batch == batch), default=0)


def check_partitions(batch: int, *, count: int, before: int) -> None:
    """Refuse a batch that has fewer partitions than when it was begun: nobody looks for the others' rows.

    If it has more, a partition of before has lost rows to others, and its sums tell.
    """
    if before > count:
        raise SparkError(
            f"batch {batch} was begun with {before} partitions at least and repeated with {count}: rows that "
            "were in another partition before are written twice now. Repeat it with as many partitions as "
            "before, by the same input and settings and a repartition(n) before the write, or begin anew "
            "with another query id or checkpoint; `tanist spark dedup` tells which rows are twice there"
        )


def queues_of(topic: str, counts: Counts) -> tuple[MessageQueue, ...]:
    """All queues, in the order that producers have them in: by broker, then by id."""
    return tuple(
        MessageQueue(topic=topic, broker_name=name, queue_id=queue_id)
        for name, count in sorted(counts.items())
        for queue_id in range(count)
    )


def queue_of_row(
    queues: Sequence[MessageQueue], *, batch: int, partition: int, index: int, sharding_key: str | None
) -> MessageQueue:
    """By its key, as Java's SelectMessageQueueByHash chooses; else in turn."""
    if sharding_key is not None:
        return queue_of_key(queues, sharding_key)
    return queues[(batch + partition + index // RUN_ROWS) % len(queues)]
