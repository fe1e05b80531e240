"""Transactions: the first half of a message waits until its producer says what becomes of it. Pure."""

from tanist.errors import ResponseError
from tanist.model.message import Message
from tanist.protocol.codes import ResponseCode


def prepare(message: Message) -> Message:  # noqa: ARG001
    """The first half of a transaction as it lies until it is committed or rolled back."""
    raise ResponseError(ResponseCode.NO_PERMISSION, "transactions are not supported by this broker yet")
