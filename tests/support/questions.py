"""Questions about transactions, as brokers put them to producers."""

from collections.abc import Mapping

from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.model.topics import HALF_TOPIC
from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.transaction import CheckTransactionStateRequest
from tanist.protocol.properties import encode_properties
from tanist.protocol.record import encode_record

_HOST = pack_host("127.0.0.1", 10911)


def record_of(
    body: bytes = b"paid",
    *,
    unique_id: str = "unique-1",
    group: str | None = "P",
    sys_flag: int = 0,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    """The message of a transaction on topic Orders, as a record."""
    named = {"TRAN_MSG": "true", "UNIQ_KEY": unique_id, **(properties or {})}
    if group is not None:
        named["PGROUP"] = group
    message = Message(
        topic="Orders", queue_id=3, body=body, properties=encode_properties(named), sys_flag=sys_flag
    )
    return encode_record(message, queue_offset=1, log_offset=2, store_timestamp_ms=3, store_host=_HOST)


def question(
    body: bytes = b"paid",
    *,
    unique_id: str = "unique-1",
    group: str | None = "P",
    sys_flag: int = 0,
    properties: Mapping[str, str] | None = None,
    queue_offset: int = 1,
    log_offset: int = 2,
) -> Command:
    header = CheckTransactionStateRequest(
        half_queue_offset=queue_offset,  # pyright: ignore[reportArgumentType]
        half_log_offset=log_offset,  # pyright: ignore[reportArgumentType]
        msg_id=unique_id,
        transaction_id=unique_id,
        topic=HALF_TOPIC,
        broker_name="broker-a",
    )
    record = record_of(body, unique_id=unique_id, group=group, sys_flag=sys_flag, properties=properties)
    return Command.request(RequestCode.CHECK_TRANSACTION_STATE, header, body=record, is_one_way=True)
