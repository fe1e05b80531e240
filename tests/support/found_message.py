"""Messages as a broker hands them over, made up."""

from tanist.client.received import ReceivedMessage, decode_message
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.protocol.properties import encode_properties
from tanist.protocol.record import encode_record

_STORE_HOST = pack_host("10.0.0.1", 10911)


def received(
    topic: str,
    body: bytes,
    *,
    queue_offset: int = 7,
    stored_ms: int = 1_700_000_000_000,
    broker_name: str = "broker-a",
    **properties: str,
) -> ReceivedMessage:
    """A message of queue 0 that lies in the log at 4096."""
    record = encode_record(
        Message(topic=topic, queue_id=0, body=body, properties=encode_properties(properties)),
        queue_offset=queue_offset,
        log_offset=4096,
        store_timestamp_ms=stored_ms,
        store_host=_STORE_HOST,
    )
    return decode_message(record, broker_name=broker_name)
