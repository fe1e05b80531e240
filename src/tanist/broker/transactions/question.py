"""What a broker asks a producer about a transaction: CHECK_TRANSACTION_STATE. Pure."""

from tanist.broker.transactions.halves import Half
from tanist.model.message import Appended, Message
from tanist.model.topics import HALF_TOPIC
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.transaction import CheckTransactionStateRequest
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.record import encode_record


def make_question(
    half: Half, message: Message, appended: Appended, *, store_host: bytes, broker_name: str
) -> Command:
    """The question about a half whose newest copy was appended.

    ``message`` is that copy with the topic that its producer knows. The answer names the copy by its
    offsets, and comes as the end of a transaction, if it comes.
    """
    body = encode_record(
        message,
        queue_offset=appended.queue_offset,
        log_offset=appended.log_offset,
        store_timestamp_ms=appended.store_timestamp_ms,
        store_host=store_host,
    )
    header = CheckTransactionStateRequest(
        half_queue_offset=appended.queue_offset,
        half_log_offset=appended.log_offset,
        msg_id=half.unique_id or None,
        transaction_id=half.unique_id or None,
        offset_msg_id=encode_offset_id(store_host, appended.log_offset),
        topic=HALF_TOPIC,
        broker_name=broker_name,
    )
    return Command.request(RequestCode.CHECK_TRANSACTION_STATE, header, body=body, is_one_way=True)
