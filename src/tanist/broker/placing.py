"""Where a message lies first: in its own queue, or where it waits for its time or its transaction. Pure.

Everything that is written on behalf of a client passes here: sends, messages that a consumer sends
back, and the second half of a transaction.
"""

import msgspec

from tanist.broker.delays.rules import DelayRules, postpone
from tanist.broker.transactions.halves import prepare, without_transaction
from tanist.errors import ResponseError
from tanist.model.message import TRANSACTION_MASK, Message, SysFlag
from tanist.model.property_names import DELAY, TRAN_MSG
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import find_property

_PREPARED = int(SysFlag.PREPARED)
_COMMITTED = int(SysFlag.COMMIT)


class Placing:
    """Finds a message's first place, as one broker's settings say."""

    def __init__(self, *, delays: DelayRules, takes_transactions: bool = True) -> None:
        self._delays = delays
        self._takes_transactions = takes_transactions

    def place(self, message: Message, now_ms: int) -> Message:
        """The message as the log gets it. Raises ResponseError for one that may not wait as it asks to."""
        properties = message.properties
        # Hardly any message waits, and to look for a few letters is cheaper than for five properties.
        kind = message.sys_flag & TRANSACTION_MASK
        is_delayed = b"DELAY" in properties or b"TIMER_" in properties
        if kind == _PREPARED or (b"TRAN_MSG" in properties and kind != _COMMITTED and _says_so(properties)):
            if not _is_sent_back(message):
                return self._prepare(message, now_ms, is_delayed=is_delayed)
            message = without_transaction(message)
        return postpone(message, self._delays, now_ms=now_ms) if is_delayed else message

    def _prepare(self, message: Message, now_ms: int, *, is_delayed: bool) -> Message:
        if not self._takes_transactions:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                "the broker takes no transactions: its rejectTransactionMessage says so",
            )
        half = prepare(message)
        if is_delayed:
            # What could not wait when it is committed is refused now: later nobody could mend it.
            committed = msgspec.structs.replace(message, properties=half.properties)
            postpone(committed, self._delays, now_ms=now_ms)
        return half


def _says_so(properties: bytes) -> bool:
    """Whether a message says in words that it is the first half of a transaction; in any case, as in Java."""
    value = find_property(properties, TRAN_MSG)
    return value is not None and value.lower() == b"true"


def _is_sent_back(message: Message) -> bool:
    """Consumers before 4.6.1 send back a message with the words and the flag of the half that it was."""
    return message.reconsume_times > 0 and find_property(message.properties, DELAY) is not None
