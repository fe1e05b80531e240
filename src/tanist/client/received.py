"""Messages as consumers get them, read from what a broker answered a pull with."""

from tanist.model.host import unpack_host
from tanist.model.message import COMPRESSION_MASK, SysFlag
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.property_names import KEYS, RETRY_TOPIC, SHARDING_KEY, TAGS, UNIQ_KEY
from tanist.model.route import MessageQueue
from tanist.protocol.compression import decompress_body
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import Finder, decode_properties, property_finder
from tanist.protocol.record import Record, decode_record
from tanist.protocol.tags import KEY_SEPARATOR, find_keys, find_tag, find_unique_key

MAX_BODY_BYTES = 64 << 20
"""A body that claims to have more than this when it is decompressed is refused."""

_COMPRESSED = int(SysFlag.COMPRESSED)
_find_retry_topic = property_finder(RETRY_TOPIC)


class ReceivedMessage:
    """A message from a broker.

    ``body`` are the bytes that were sent. ``queue`` and ``queue_offset`` say where it was read: in the
    group's retry topic if it comes again after a failure. ``reconsume_times`` is how often that was.

    >>> receipt = await producer.send(Message("OrderTopic", b"...", tags="paid", properties={"amount": "9"}))
    >>> async for message in consumer:
    ...     print(message.topic, message.tags, message.body, message.properties["amount"])
    ...     break
    OrderTopic paid b'...' 9
    >>> message.message_id == receipt.message_id, message.reconsume_times
    (True, 0)
    """

    __slots__ = ("__weakref__", "_properties", "_record", "body", "queue", "queue_offset", "reconsume_times")

    def __init__(self, record: Record, queue: MessageQueue, body: bytes) -> None:
        self.queue = queue
        self.queue_offset: QueueOffset = record.queue_offset
        self.body = body
        self.reconsume_times = record.reconsume_times
        self._record = record
        self._properties: dict[str, str] | None = None

    @property
    def properties(self) -> dict[str, str]:
        """All properties, the program's own and those of clients and brokers."""
        if self._properties is None:
            self._properties = decode_properties(self._record.properties)
        return self._properties

    @property
    def topic(self) -> str:
        """The topic it was sent to, also when it comes again after a failure."""
        return self._find(RETRY_TOPIC, _find_retry_topic) or self._record.topic

    @property
    def tags(self) -> str | None:
        """The tag it was sent with."""
        return self._find(TAGS, find_tag)

    @property
    def keys(self) -> list[str]:
        """The keys it can be found by."""
        keys = self._find(KEYS, find_keys)
        return [] if keys is None else keys.split(KEY_SEPARATOR)

    @property
    def sharding_key(self) -> str | None:
        """What it shares with all messages that it must not overtake."""
        return self.properties.get(SHARDING_KEY)

    @property
    def message_id(self) -> str:
        """The id its producer gave it; that of its place if it gave none."""
        return self._find(UNIQ_KEY, find_unique_key) or self.offset_id

    @property
    def offset_id(self) -> str:
        """Where it lies: the broker's address and the log offset."""
        return encode_offset_id(self._record.store_host, self._record.log_offset)

    @property
    def log_offset(self) -> LogOffset:
        """Where it lies in the broker's log."""
        return self._record.log_offset

    @property
    def flag(self) -> int:
        """The number that its producer gave it to carry."""
        return self._record.flag

    @property
    def born_timestamp_ms(self) -> int:
        """When its producer sent it, by its own clock."""
        return self._record.born_timestamp_ms

    @property
    def store_timestamp_ms(self) -> int:
        """When the broker stored it."""
        return self._record.store_timestamp_ms

    @property
    def born_host(self) -> tuple[str, int]:
        """The address and port of its producer, as the broker saw them."""
        return unpack_host(self._record.born_host)

    @property
    def store_host(self) -> tuple[str, int]:
        """The address and port of the broker that stored it."""
        return unpack_host(self._record.store_host)

    @property
    def stored_bytes(self) -> int:
        """What it takes in the broker's log."""
        return self._record.size_bytes

    @property
    def raw_properties(self) -> bytes:
        """All properties as the one string that they are in a record."""
        return bytes(self._record.properties)

    def as_stored(self) -> tuple[bytes, int]:
        """The body as it lies in the log, and the system flag that says how it is compressed there."""
        return bytes(self._record.body), self._record.sys_flag & (_COMPRESSED | COMPRESSION_MASK)

    def _find(self, name: str, find: Finder) -> str | None:
        """One property, without reading the others: most programs want few of them."""
        if self._properties is not None:
            return self._properties.get(name)
        raw = find(bytes(self._record.properties))
        return None if raw is None else raw.decode("utf-8", "replace")

    def __repr__(self) -> str:
        queue = self.queue
        return (
            f"<message {self.message_id} topic={self.topic} broker={queue.broker_name} "
            f"queue={queue.queue_id} offset={self.queue_offset}>"
        )


def decode_messages(data: bytes | memoryview, queue: MessageQueue) -> list[ReceivedMessage]:
    """All messages of a pull's answer. Raises RemoteProtocolError if it is not whole records."""
    # Slices of bytes are copies, so that no message keeps the whole answer in memory.
    data = bytes(data)
    messages: list[ReceivedMessage] = []
    position = 0
    while position < len(data):
        record = decode_record(data, position)
        messages.append(_decode(record, queue))
        position += record.size_bytes
    return messages


def decode_message(data: bytes | memoryview, *, broker_name: str) -> ReceivedMessage:
    """The one message that a broker hands over by itself; its record says which queue it is of."""
    record = decode_record(bytes(data))
    queue = MessageQueue(topic=record.topic, broker_name=broker_name, queue_id=record.queue_id)
    return _decode(record, queue)


def _decode(record: Record, queue: MessageQueue) -> ReceivedMessage:
    if record.sys_flag & _COMPRESSED:
        body = bytes(decompress_body(record.body, record.sys_flag, max_bytes=MAX_BODY_BYTES))
    else:
        body = bytes(record.body)
    return ReceivedMessage(record, queue, body)
