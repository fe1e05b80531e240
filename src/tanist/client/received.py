"""Messages as consumers get them, read from what a broker answered a pull with."""

from functools import cached_property

from tanist.model.host import unpack_host
from tanist.model.message import SysFlag
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.property_names import KEYS, RETRY_TOPIC, SHARDING_KEY, TAGS, UNIQ_KEY
from tanist.model.route import MessageQueue
from tanist.protocol.compression import decompress_body
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import Record, decode_record
from tanist.protocol.tags import KEY_SEPARATOR

MAX_BODY_BYTES = 64 << 20
"""A body that claims to have more than this when it is decompressed is refused."""

_COMPRESSED = int(SysFlag.COMPRESSED)


class ReceivedMessage:
    """A message from a broker.

    ``topic`` is the one it was sent to, also when it comes again after a failure; ``queue`` and
    ``queue_offset`` say where it was read, which is the group's retry topic then.
    """

    def __init__(self, record: Record, queue: MessageQueue, body: bytes) -> None:
        self.queue = queue
        self.queue_offset: QueueOffset = record.queue_offset
        self.log_offset: LogOffset = record.log_offset
        self.body = body
        self.flag = record.flag
        self.born_timestamp_ms = record.born_timestamp_ms
        self.store_timestamp_ms = record.store_timestamp_ms
        self.reconsume_times = record.reconsume_times
        self.stored_bytes = record.size_bytes
        self._born_host = record.born_host
        self._store_host = record.store_host
        self._raw_properties = bytes(record.properties)
        self._stored_topic = record.topic

    @cached_property
    def properties(self) -> dict[str, str]:
        """All properties, the program's own and those of clients and brokers."""
        return decode_properties(self._raw_properties)

    @cached_property
    def topic(self) -> str:
        return self.properties.get(RETRY_TOPIC, self._stored_topic)

    @property
    def tags(self) -> str | None:
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        return self.properties.get(KEYS, "").split(KEY_SEPARATOR) if KEYS in self.properties else []

    @property
    def sharding_key(self) -> str | None:
        return self.properties.get(SHARDING_KEY)

    @cached_property
    def message_id(self) -> str:
        """The id its producer gave it; that of its place if it gave none."""
        return self.properties.get(UNIQ_KEY) or self.offset_id

    @cached_property
    def offset_id(self) -> str:
        """Where it lies: the broker's address and the log offset."""
        return encode_offset_id(self._store_host, self.log_offset)

    @property
    def born_host(self) -> tuple[str, int]:
        """The address and port of its producer, as the broker saw them."""
        return unpack_host(self._born_host)

    @property
    def store_host(self) -> tuple[str, int]:
        """The address and port of the broker that stored it."""
        return unpack_host(self._store_host)

    def __repr__(self) -> str:
        queue = self.queue
        return (
            f"<message {self.message_id} topic={self.topic} broker={queue.broker_name} "
            f"queue={queue.queue_id} offset={self.queue_offset}>"
        )


def decode_messages(data: memoryview, queue: MessageQueue) -> list[ReceivedMessage]:
    """All messages of a pull's answer. Raises RemoteProtocolError if it is not whole records."""
    messages: list[ReceivedMessage] = []
    position = 0
    while position < len(data):
        record = decode_record(data, position)
        messages.append(_decode(record, queue))
        position += record.size_bytes
    return messages


def decode_message(data: memoryview, *, broker_name: str) -> ReceivedMessage:
    """The one message that a broker hands over by itself; its record says which queue it is of."""
    record = decode_record(data)
    queue = MessageQueue(topic=record.topic, broker_name=broker_name, queue_id=record.queue_id)
    return _decode(record, queue)


def _decode(record: Record, queue: MessageQueue) -> ReceivedMessage:
    if record.sys_flag & _COMPRESSED:
        body = bytes(decompress_body(record.body, record.sys_flag, max_bytes=MAX_BODY_BYTES))
    else:
        body = bytes(record.body)
    return ReceivedMessage(record, queue, body)
