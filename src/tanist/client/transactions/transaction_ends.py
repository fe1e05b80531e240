"""How transactions end: what is sent to a broker, and what a broker asks when no end came. Pure."""

from enum import Enum

import msgspec

from tanist.client.message import Receipt
from tanist.client.received import ReceivedMessage, decode_message
from tanist.errors import RemoteProtocolError
from tanist.model.message import SysFlag
from tanist.model.property_names import PGROUP, UNIQ_KEY
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.transaction import CheckTransactionStateRequest, EndTransactionRequest
from tanist.protocol.message_id import decode_offset_id


class Outcome(Enum):
    """What became of a transaction. ``UNKNOWN`` has the broker ask again later.

    >>> async def what_became_of(message: ReceivedMessage) -> Outcome:
    ...     return Outcome.UNKNOWN
    >>> producer = Producer(group="orders", namesrv=namesrv, on_check=what_became_of)
    """

    COMMIT = int(SysFlag.COMMIT)
    ROLLBACK = int(SysFlag.ROLLBACK)
    UNKNOWN = 0


class Question(msgspec.Struct, frozen=True):
    """A broker asks what became of a transaction. ``message`` is the one that waits for its outcome."""

    asked: CheckTransactionStateRequest
    message: ReceivedMessage
    group: str
    """The group that began the transaction; any member of it may be asked."""

    @property
    def transaction_id(self) -> str:
        return self.message.message_id


def end_of(receipt: Receipt, outcome: Outcome, *, group: str) -> Command:
    """What ends the transaction whose message a broker stored as ``receipt`` says.

    Raises RemoteProtocolError if the receipt does not say where in the log it is.
    """
    header = EndTransactionRequest(
        producer_group=group,
        half_queue_offset=receipt.queue_offset,
        half_log_offset=decode_offset_id(receipt.offset_id).log_offset,
        outcome=outcome.value,
        msg_id=receipt.message_id,
        # Brokers of RocketMQ 4.9 do not give one. It is always the message's own id.
        transaction_id=receipt.transaction_id or receipt.message_id,
        topic=receipt.queue.topic,
        broker_name=receipt.queue.broker_name,
    )
    return Command.request(RequestCode.END_TRANSACTION, header)


def read_question(command: Command) -> Question:
    """Read what a broker asks. Raises RemoteProtocolError for what is no question."""
    asked = command.header(CheckTransactionStateRequest)
    message = decode_message(command.body, broker_name=asked.broker_name or "")
    group = message.properties.get(PGROUP)
    if group is None:
        raise RemoteProtocolError(f"a question about transaction {message.message_id} names no group")
    return Question(asked, message, group)


def answer_to(question: Question, outcome: Outcome) -> Command:
    """The answer to a question: the end of the copy of the message that the broker asks about.

    A broker makes a new copy for each question, and only the newest one is open.
    """
    asked, message = question.asked, question.message
    header = EndTransactionRequest(
        producer_group=question.group,
        half_queue_offset=asked.half_queue_offset,
        half_log_offset=asked.half_log_offset,
        outcome=outcome.value,
        msg_id=message.properties.get(UNIQ_KEY) or asked.msg_id or message.offset_id,
        is_from_check=True,
        transaction_id=asked.transaction_id,
        topic=asked.topic,
        broker_name=asked.broker_name,
    )
    return Command.request(RequestCode.END_TRANSACTION, header)
