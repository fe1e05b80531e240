"""Messages as a consumer gets them, without a broker."""

from collections.abc import Mapping

from tanist.client.received import ReceivedMessage, decode_messages
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.model.route import MessageQueue
from tanist.protocol.properties import encode_properties
from tanist.protocol.record import encode_record

HOST = pack_host("127.0.0.1", 10911)
_NO_PROPERTIES: Mapping[str, str] = {}


def make_received(
    properties: Mapping[str, str] = _NO_PROPERTIES,
    *,
    body: bytes = b"paid",
    topic: str = "OrderTopic",
    reconsume_times: int = 0,
) -> ReceivedMessage:
    """A message from queue 0 of broker-a."""
    message = Message(
        topic=topic,
        queue_id=0,
        body=body,
        properties=encode_properties(properties),
        born_host=HOST,
        reconsume_times=reconsume_times,
    )
    record = encode_record(message, queue_offset=0, log_offset=0, store_timestamp_ms=0, store_host=HOST)
    queue = MessageQueue(topic=topic, broker_name="broker-a", queue_id=0)
    (received,) = decode_messages(memoryview(record), queue)
    return received
