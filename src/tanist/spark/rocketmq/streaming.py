"""Where a stream stands: the offsets that Spark keeps in its checkpoint, and how far a batch goes. Pure.

An offset of the stream is a table by topic, broker and queue, as ``startingOffsets`` has it. Its keys are
sorted: Spark compares such tables as text, and would see news where there are none.

Beside the topics stands, under a name that no topic can have, of which cluster each broker is. So a
checkpoint that is taken to another cluster is known for what it is, though brokers there may have the same
names.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tanist.model.route import MessageQueue
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.offsets import (
    Bound,
    PullRange,
    QueueState,
    Table,
    kept,
    lost,
    queue_name,
    start_of,
)

Offsets = dict[MessageQueue, int]
Clusters = dict[str, str]
"""The cluster of each broker."""
CLUSTERS = "@clusters"


def to_table(offsets: Mapping[MessageQueue, int]) -> Table:
    """Offsets as Spark keeps them."""
    table: Table = {}
    for queue, offset in sorted(offsets.items()):
        table.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = offset
    return table


def from_table(table: Mapping[str, Any]) -> Offsets:
    return {
        MessageQueue(topic=topic, broker_name=broker, queue_id=int(queue_id)): offset
        for topic, brokers in table.items()
        if topic != CLUSTERS
        for broker, queues in brokers.items()
        for queue_id, offset in queues.items()
    }


def to_checkpoint(offsets: Mapping[MessageQueue, int], clusters: Clusters) -> dict[str, Any]:
    """Offsets as a stream has Spark keep them, with the clusters that they are of."""
    named: dict[str, Any] = {CLUSTERS: dict(sorted(clusters.items()))} if clusters else {}
    return dict(sorted((named | to_table(offsets)).items()))


def clusters_in(checkpoint: Mapping[str, Any], states: Iterable[QueueState]) -> Clusters:
    """The clusters of a checkpoint's brokers and of those there are. Raises if one of them changed its own.

    Checkpoints of older versions name none, and are believed.
    """
    clusters: Clusters = dict(checkpoint.get(CLUSTERS, {}))
    for state in states:
        broker = state.queue.broker_name
        kept_as = clusters.setdefault(broker, state.cluster)
        if kept_as != state.cluster:
            raise SparkError(
                f"the checkpoint is of broker {broker} in cluster {kept_as}, and the name servers know it in "
                f"cluster {state.cluster}: it is of another cluster; name that one, or take a new checkpoint"
            )
    return clusters


def first_offsets(states: Iterable[QueueState], start: Bound, *, fails_on_loss: bool) -> Offsets:
    """Where a stream begins that has no checkpoint yet."""
    return {state.queue: kept(start_of(start, state), state, fails_on_loss=fails_on_loss) for state in states}


def check_offsets(offsets: Offsets, states: Iterable[QueueState], *, fails_on_loss: bool) -> None:
    """Refuse to go on from a place that these brokers never had: a checkpoint of another cluster's."""
    known = {state.queue: state for state in states}
    if offsets and known and not offsets.keys() & known.keys():
        brokers = ", ".join(sorted({queue.broker_name for queue in offsets}))
        there = ", ".join(sorted({queue.broker_name for queue in known}))
        raise SparkError(
            f"the checkpoint is of brokers {brokers}, and there is {there}: it is of another cluster"
        )
    for queue, offset in offsets.items():
        state = known.get(queue)
        # A slave that is read in its master's place may not have come as far as the master had.
        is_told = state is not None and state.is_of_master
        if fails_on_loss and state is not None and is_told and offset > state.max_offset:
            raise SparkError(
                f"the checkpoint is at {offset} in queue {queue_name(queue)}, which ends at "
                f"{state.max_offset}: it is of another cluster, or messages are lost; failOnDataLoss=false "
                "goes on with what comes"
            )


def next_offsets(
    offsets: Offsets, states: Iterable[QueueState], *, most: int | None, until: Offsets | None
) -> Offsets:
    """How far the next batch goes: ``most`` messages, divided by what each queue has, and not past ``until``.

    A queue that was not there before begins with its first message. One whose broker is away stays where it
    is.
    """
    begins, ends = dict(offsets), dict(offsets)
    for state in states:
        queue = state.queue
        if until is not None and queue not in until:
            continue
        begins.setdefault(queue, state.min_offset)
        end = state.max_offset if until is None else min(state.max_offset, until[queue])
        ends[queue] = max(end, begins[queue])
    waiting = {queue: ends[queue] - begins[queue] for queue in ends}
    total = sum(waiting.values())
    if most is None or total <= most:
        return ends
    # Every queue that has something gets something, so that a long one does not starve the others.
    shares = {queue: max(1, count * most // total) for queue, count in waiting.items() if count}
    return {queue: begins[queue] + min(shares.get(queue, 0), waiting[queue]) for queue in ends}


def batch_ranges(
    begins: Offsets, ends: Offsets, states: Iterable[QueueState], *, fails_on_loss: bool
) -> list[PullRange]:
    """What a batch from one offset of the stream to another reads."""
    known = {state.queue: state for state in states}
    ranges: list[PullRange] = []
    for queue, end in sorted(ends.items()):
        state = known.get(queue)
        if begins.get(queue) == end:
            continue
        if state is None:
            raise SparkError(f"queue {queue_name(queue)} is to be read up to {end}, and no broker has it now")
        first = begins.get(queue, state.min_offset)
        if first < state.min_offset:
            if fails_on_loss:
                raise lost(queue, first, state.min_offset)
            first = state.min_offset
        if first < end:
            ranges.append(PullRange(queue, state.addresses, first, end, state.epochs))
    return ranges
