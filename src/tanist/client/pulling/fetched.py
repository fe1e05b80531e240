"""What a fetch came to: the answer to a pull, read and checked. Pure."""

from dataclasses import dataclass
from enum import Enum, auto

from tanist.client.received import ReceivedMessage, decode_messages
from tanist.errors import RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import TAG, SubscriptionData
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullMessageResponse


class Outcome(Enum):
    """What a fetch came to."""

    FOUND = auto()
    NOTHING = auto()
    """Nothing new, in all the time that it waited."""
    RETRY = auto()
    """Nothing for this consumer up to ``next_offset``; there may be behind it."""
    MOVED = auto()
    """The queue does not have the offset, or the group was moved: go on at ``next_offset``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The messages found, in the order of their offsets, and where to fetch next.

    All offsets of the messages are at least the one asked for, and below ``next_offset``. ``min_offset``
    and ``max_offset`` are the queue's own, as the replica has it.
    """

    outcome: Outcome
    messages: list[ReceivedMessage]
    next_offset: QueueOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    broker_id: int
    """The replica that answered."""
    suggested_id: int
    """The replica to read from next, as that one sees it."""

    def goes_back_from(self, offset: QueueOffset) -> bool:
        """Whether it says that the queue ends before ``offset``."""
        return self.outcome is Outcome.MOVED and self.next_offset < offset


_OUTCOMES: dict[int, Outcome] = {
    ResponseCode.SUCCESS: Outcome.FOUND,
    ResponseCode.PULL_NOT_FOUND: Outcome.NOTHING,
    ResponseCode.PULL_RETRY_IMMEDIATELY: Outcome.RETRY,
    ResponseCode.PULL_OFFSET_MOVED: Outcome.MOVED,
}


def is_answer(answer: Command) -> bool:
    """Whether it can be read as one; a refusal can not."""
    return answer.code in _OUTCOMES


def read_answer(
    answer: Command,
    queue: MessageQueue,
    offset: QueueOffset,
    *,
    subscription: SubscriptionData,
    broker_id: int,
) -> Fetched:
    """What a pull from ``offset`` on found. Raises RemoteProtocolError if the answer makes no sense.

    RocketMQ's client passes over records it can not read, and whatever lies behind them, without a word.
    """
    header = answer.header(PullMessageResponse)
    outcome, next_offset = _OUTCOMES[answer.code], header.next_begin_offset
    messages: list[ReceivedMessage] = []
    if outcome is Outcome.FOUND:
        messages = decode_messages(memoryview(answer.body), queue)
        if header.offset_delta:
            for message in messages:
                message.queue_offset = QueueOffset(message.queue_offset + header.offset_delta)
        _check_offsets(messages, queue, offset, next_offset)
        messages = _chosen(messages, subscription)
        if not messages:
            outcome = Outcome.RETRY
    elif outcome is not Outcome.MOVED:
        # Nothing was found, so there is no reason to go back.
        next_offset = max(next_offset, offset)
    return Fetched(
        outcome=outcome,
        messages=messages,
        next_offset=next_offset,
        min_offset=header.min_offset,
        max_offset=header.max_offset,
        broker_id=broker_id,
        suggested_id=header.suggested_broker_id,
    )


def _check_offsets(
    messages: list[ReceivedMessage], queue: MessageQueue, offset: QueueOffset, next_offset: QueueOffset
) -> None:
    """All that follows, commits above all, relies on offsets that grow."""
    before = offset - 1
    for message in messages:
        if message.queue_offset <= before:
            break
        before = message.queue_offset
    else:
        if messages and before < next_offset:
            return
    offsets = [message.queue_offset for message in messages]
    raise RemoteProtocolError(
        f"a pull of {queue} from {offset} was answered with offsets {offsets} and the next as {next_offset}"
    )


def _chosen(messages: list[ReceivedMessage], subscription: SubscriptionData) -> list[ReceivedMessage]:
    """Those with a tag that is wanted: brokers compare hashes only, which different tags may share."""
    tags = subscription.tags
    if not tags or subscription.expression_type not in (TAG, None):
        return messages
    return [message for message in messages if message.tags in tags]
