"""Pulls a range of a queue, in a Python worker: from a broker's answers to batches.

The next pulls are under way while the messages of the last ones are decoded and handed to Spark.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tanist.client.session.wire import Wire
from tanist.errors import MQError, RemoteProtocolError, RemotingError, ResponseError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from tanist.protocol.response_errors import error_of
from tanist.spark import arrow, properties
from tanist.spark.arrow import RecordBatch
from tanist.spark.columns import Column
from tanist.spark.decoding import LOG_OFFSET_AT, Located, gather, locate, walk
from tanist.spark.errors import SparkError
from tanist.spark.making import Origin, make_batch
from tanist.spark.rocketmq.access import TIMEOUT_S
from tanist.spark.rocketmq.ahead import STRETCH_BYTES, Stretch, reading_ahead
from tanist.spark.rocketmq.cluster import WAITS_S, addresses_of
from tanist.spark.rocketmq.offsets import PullRange, lost, queue_name
from tanist.spark.rocketmq.options import RocketMQOptions

BATCH_BYTES = 2 << 20
"""Answers are small: so much of them makes one batch."""
_MOST_MESSAGES = 1024

_ANSWERS = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull found: records behind each other, and where the next pull begins."""

    records: bytes | memoryview
    next_offset: int
    has_moved: bool = False
    """Whether the queue does not have the offset that was asked for."""


def read_answer(answer: Command, offset: int) -> Pulled:
    """What an answer to a pull from ``offset`` on says. Raises if it makes no sense, or refuses."""
    if answer.code not in _ANSWERS:
        raise error_of(answer)
    header = answer.header(PullMessageResponse)
    if answer.code == ResponseCode.PULL_OFFSET_MOVED:
        return Pulled(b"", header.next_begin_offset, has_moved=True)
    if answer.code == ResponseCode.SUCCESS and header.next_begin_offset <= offset:
        raise RemoteProtocolError(
            f"a pull from {offset} on was answered with the next as {header.next_begin_offset}"
        )
    records = answer.body if answer.code == ResponseCode.SUCCESS else b""
    return Pulled(records, max(header.next_begin_offset, offset))


def what_lacks(span: PullRange, offset: int, pulled: Pulled) -> SparkError | None:
    """What a replica does not have of what was to be read; None if it has it, or never will."""
    if pulled.next_offset > offset:
        return None
    if pulled.has_moved:
        return SparkError(
            f"queue {queue_name(span.queue)} ends at {pulled.next_offset} on the replica that was asked, "
            f"and was to be read from {offset} to {span.end}; readFrom=master has all of it"
        )
    return SparkError(
        f"queue {queue_name(span.queue)} has nothing at {offset}, and was to be read up to {span.end}"
    )


def next_of(span: PullRange, offset: int, pulled: Pulled, *, fails_on_loss: bool) -> int:
    """Where to go on. Raises if messages that were to be read are gone."""
    if pulled.has_moved and fails_on_loss:
        raise lost(span.queue, offset, pulled.next_offset)
    return pulled.next_offset


class Puller:
    """Pulls one range after another over connections of its own."""

    def __init__(self, wire: Wire, options: RocketMQOptions) -> None:
        self._wire = wire
        self._options = options

    async def pull(self, span: PullRange, offset: int, most: int) -> Pulled:
        """What is there from an offset on, so many messages at most, at the first replica that answers.

        If none does, or all refuse, name servers are asked again for a while: another master may take over.
        """
        addresses = span.addresses
        for wait_s in (*WAITS_S, None):
            found = await self._ask_all(span, offset, most, addresses)
            if isinstance(found, Pulled):
                return found
            if wait_s is None:
                raise found
            await asyncio.sleep(wait_s)
            with suppress(MQError):
                addresses = await addresses_of(span.queue, self._options, self._wire) or addresses
        raise AssertionError("the last wait is none")

    async def _ask_all(
        self, span: PullRange, offset: int, most: int, addresses: tuple[str, ...]
    ) -> Pulled | MQError:
        """The first answer, or the last failure of those that may pass. Raises one that will not."""
        failure: MQError = SparkError(f"nobody is known who has {queue_name(span.queue)}")
        for address in addresses:
            try:
                request = pull_request(span.queue, offset, most, self._options)
                answer = await self._wire.exchange(address, request, timeout_s=TIMEOUT_S)
                pulled = read_answer(answer, offset)
            except (RemotingError, ResponseError) as error:
                if isinstance(error, ResponseError) and not (error.retriable or error.refresh_route):
                    raise
                failure = error
                continue
            lacking = what_lacks(span, offset, pulled)
            if lacking is None:
                return pulled
            # A slave may not have come so far yet, or not any more: another replica has it.
            failure = lacking
        return failure


def pull_request(queue: MessageQueue, offset: int, most: int, options: RocketMQOptions) -> Command:
    """Asks for so many messages at most, and is answered at once if there is none."""
    return Command.request(
        RequestCode.PULL_MESSAGE,
        PullMessageRequest(
            consumer_group=options.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=QueueOffset(offset),
            max_message_count=min(_MOST_MESSAGES, most),
            sys_flag=int(PullSysFlag.SUBSCRIPTION),
            consumer_offset=QueueOffset(0),
            suspend_timeout_ms=0,
            subscription=options.expression,
            sub_version=0,
            expression_type=options.expression_type,
        ),
    )


def pull_batches(
    loop: asyncio.AbstractEventLoop,
    puller: Puller,
    span: PullRange,
    columns: tuple[Column, ...],
    options: RocketMQOptions,
) -> Iterator[RecordBatch]:
    """The messages of a range."""
    origin = Origin(broker_name=span.queue.broker_name, epochs=span.epochs)
    for found in pull_records(loop, puller, span, options):
        yield make_batch(found, columns, origin)


def pull_records(
    loop: asyncio.AbstractEventLoop, puller: Puller, span: PullRange, options: RocketMQOptions
) -> Iterator[Located]:
    """The records of a range, as they lie in the broker's log."""

    async def pull(first: int, end: int) -> Stretch:
        return await pull_stretch(puller, span, first, end, fails_on_loss=options.fails_on_loss)

    with reading_ahead(loop, pull, span.first, span.end) as ahead:
        while not ahead.is_done:
            first, waiting, size = ahead.offset, list[bytes | memoryview](), 0
            while not ahead.is_done and size < BATCH_BYTES:
                stretch = ahead.next()
                waiting += stretch.answers
                size += stretch.size_bytes
            found = _located(b"".join(waiting), first, span, options)
            if len(found):
                yield found


async def pull_stretch(
    puller: Puller, span: PullRange, first: int, end: int, *, fails_on_loss: bool
) -> Stretch:
    """One pull after another, until ``end`` is reached or there is much already."""
    offset, answers, size = first, list[bytes | memoryview](), 0
    while offset < end and size < STRETCH_BYTES:
        pulled = await puller.pull(span, offset, end - offset)
        offset = next_of(span, offset, pulled, fails_on_loss=fails_on_loss)
        answers.append(pulled.records)
        size += len(pulled.records)
    return Stretch(first, answers, offset)


def _located(data: bytes, first: int, span: PullRange, options: RocketMQOptions) -> Located:
    """The records of some answers that are in the range from ``first`` on, once, and have a wanted tag."""
    raw = np.frombuffer(data, np.uint8)
    walked = walk(raw, 0, len(raw))
    if walked.position != len(raw):
        raise RemoteProtocolError(
            f"the broker answered a pull of {queue_name(span.queue)} with what is not whole records"
        )
    log_offsets = gather(raw, walked.starts + LOG_OFFSET_AT, ">i8").astype(np.int64)
    located, is_sound = locate(raw, walked.starts, log_offsets)
    if not is_sound.all():
        raise RemoteProtocolError(
            f"the broker answered a pull of {queue_name(span.queue)} with a record that is broken"
        )
    offsets = located.queue_offsets
    # What an answer had beyond its stretch came again with the next stretch.
    is_new = np.diff(np.maximum.accumulate(offsets), prepend=-1) > 0
    keep = is_new & (offsets >= first) & (offsets < span.end)
    if options.tags:
        # Brokers compare hashes only, which different tags may share.
        strings = properties.Strings(raw, located.topic_ends + 2, located.ends)
        keep &= arrow.is_in(properties.tags(strings), sorted(options.tags))
    return located.take(keep)
