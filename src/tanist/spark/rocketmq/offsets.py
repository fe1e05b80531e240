"""From where to where queues are read, and in how many pieces. Pure.

Offsets are given as ``earliest``, ``latest``, ``group`` (where a consumer group stands) or as JSON of topic,
broker and queue, ``{"OrderTopic": {"broker-a": {"0": 17, "1": -1}}}``, in which -2 is earliest and -1 latest.
A queue that the JSON leaves out is read from its first message, or to its last.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from tanist.model.epochs import Epoch
from tanist.model.route import MessageQueue
from tanist.protocol.java_json import BAD_JSON
from tanist.spark.errors import BadOption, SparkError, UnknownName

EARLIEST = "earliest"
LATEST = "latest"
GROUP = "group"
_EARLIEST = -2
_LATEST = -1
_SHAPE = '{"topic": {"broker": {"0": 17}}}'

Table = dict[str, dict[str, dict[str, int]]]
"""Offsets by topic, broker and queue."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a read: a word, a time in milliseconds, or offsets of single queues."""

    option: str
    word: str | None = None
    timestamp_ms: int | None = None
    table: Mapping[MessageQueue, int] | None = None


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue as its broker tells it. ``addresses`` are the replicas to read it from, the best first."""

    queue: MessageQueue
    addresses: tuple[str, ...]
    min_offset: int
    max_offset: int
    group_offset: int | None = None
    start_at_time: int | None = None
    """The first message at or after the starting time, if one was given; likewise the other."""
    end_at_time: int | None = None
    is_of_master: bool = True
    """Whether its master told it: a slave may not have all of it yet."""
    epochs: tuple[Epoch, ...] = ()
    """Which master wrote what of the broker's log, if that was asked and is known."""
    cluster: str = ""
    """The cluster that its broker says it is of."""


@dataclass(frozen=True, slots=True)
class PullRange:
    """The messages ``[first, end)`` of a queue."""

    queue: MessageQueue
    addresses: tuple[str, ...]
    first: int
    end: int
    epochs: tuple[Epoch, ...] = ()


def read_bound(option: str, text: str, words: Iterable[str]) -> Bound:
    """What an option says. Raises BadOption for what makes no sense."""
    allowed = tuple(words)
    if text.lower() in allowed:
        return Bound(option, word=text.lower())
    try:
        table = msgspec.json.decode(text, type=Table)
        offsets = {
            MessageQueue(topic=topic, broker_name=broker, queue_id=int(queue_id)): offset
            for topic, brokers in table.items()
            for broker, queues in brokers.items()
            for queue_id, offset in queues.items()
        }
    except (*BAD_JSON, ValueError) as error:
        raise BadOption(option, text, f"{', '.join(allowed)} or JSON as {_SHAPE}") from error
    for queue, offset in offsets.items():
        if offset < _EARLIEST:
            raise BadOption(option, offset, f"an offset for {queue}, -2 for earliest or -1 for latest")
    return Bound(option, table=offsets)


def make_ranges(
    states: Iterable[QueueState], start: Bound, end: Bound, *, fails_on_loss: bool
) -> list[PullRange]:
    """What is read of each queue; those of which nothing is are left out."""
    known = {state.queue: state for state in states}
    check_named(start, known)
    check_named(end, known)
    ranges: list[PullRange] = []
    for queue, state in sorted(known.items()):
        first = start_of(start, state)
        last = _resolve(end, state, state.end_at_time, default=state.max_offset)
        if first > last and (start.table or end.table):
            raise SparkError(
                f"queue {queue_name(queue)} would be read from {first} to {last}, which is before it"
            )
        first = kept(first, state, fails_on_loss=fails_on_loss)
        last = min(last, state.max_offset)
        if first < last:
            ranges.append(PullRange(queue, state.addresses, first, last, state.epochs))
    return ranges


def check_named(bound: Bound, known: Collection[MessageQueue]) -> None:
    """Refuse offsets of queues that there are none of."""
    for queue in bound.table or ():
        if queue not in known:
            raise UnknownName("queue", queue_name(queue), map(queue_name, known))


def start_of(start: Bound, state: QueueState) -> int:
    """Where a queue is read from, as far as the bound says."""
    return _resolve(start, state, state.start_at_time, default=state.min_offset)


def split(ranges: list[PullRange], min_pieces: int) -> Iterator[PullRange]:
    """Cut long ranges until there are about so many, each as long as the others."""
    total = sum(one.end - one.first for one in ranges)
    if not total:
        return
    step = max(1, -(-total // max(min_pieces, len(ranges)))) if min_pieces > len(ranges) else total
    for one in ranges:
        for first in range(one.first, one.end, step):
            yield replace(one, first=first, end=min(first + step, one.end))


def _resolve(bound: Bound, state: QueueState, at_time: int | None, *, default: int) -> int:
    if bound.timestamp_ms is not None:
        return default if at_time is None else at_time
    if bound.word is not None:
        from_group = state.min_offset if state.group_offset is None else state.group_offset
        return {EARLIEST: state.min_offset, LATEST: state.max_offset, GROUP: from_group}[bound.word]
    offset = (bound.table or {}).get(state.queue, default)
    return {_EARLIEST: state.min_offset, _LATEST: state.max_offset}.get(offset, offset)


def kept(first: int, state: QueueState, *, fails_on_loss: bool) -> int:
    """Where a read that was to begin at ``first`` begins: not before what the broker still has."""
    if first < state.min_offset:
        if fails_on_loss:
            raise lost(state.queue, first, state.min_offset)
        return state.min_offset
    return first


def lost(queue: MessageQueue, wanted: int, kept_from: int) -> SparkError:
    return SparkError(
        f"queue {queue_name(queue)} begins at {kept_from} now, and was to be read from {wanted}: the broker "
        "deleted what is older; failOnDataLoss=false reads what is left"
    )


def queue_name(queue: MessageQueue) -> str:
    """A queue as errors call it."""
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"
