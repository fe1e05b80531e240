"""Messages as a consumer gets them, and the bytes that a broker answers a pull with."""

from collections.abc import Iterable, Mapping

from tanist.client.queues.cached_queue import CachedQueue
from tanist.client.received import ReceivedMessage, decode_messages
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.properties import encode_properties
from tanist.protocol.record import encode_record
from tests.support.messages import TOPIC, make_message

QUEUE = MessageQueue(topic=TOPIC, broker_name="broker-a", queue_id=0)
_HOST = pack_host("127.0.0.1", 10911)
_NO_PROPERTIES: Mapping[str, str] = {}


def at(offset: int) -> QueueOffset:
    return QueueOffset(offset)


def record_of(message: Message, queue_offset: int) -> bytes:
    """A record as a broker has it in its log."""
    return encode_record(
        message,
        queue_offset=queue_offset,
        log_offset=queue_offset * 1000,
        store_timestamp_ms=1_700_000_000_000,
        store_host=_HOST,
    )


def records(offsets: Iterable[int], *, tag: str = "") -> bytes:
    """The body of an answer with the messages at these offsets."""
    return b"".join(record_of(make_message(offset, tag=tag), offset) for offset in offsets)


def received(*offsets: int, queue: MessageQueue = QUEUE) -> list[ReceivedMessage]:
    """The messages at these offsets."""
    return decode_messages(memoryview(records(offsets)), queue)


def received_with(
    properties: Mapping[str, str] = _NO_PROPERTIES, *, topic: str = TOPIC, reconsume_times: int = 0
) -> ReceivedMessage:
    """A message with just these properties."""
    message = Message(
        topic=topic,
        queue_id=0,
        body=b"paid",
        properties=encode_properties(properties),
        reconsume_times=reconsume_times,
    )
    (one,) = decode_messages(memoryview(record_of(message, 0)), QUEUE)
    return one


def take_from(queue: CachedQueue, max_count: int) -> list[ReceivedMessage]:
    """The next messages of a queue, as many as there are up to ``max_count``."""
    taken = (queue.take() for _ in range(max_count))
    return [message for message in taken if message is not None]
