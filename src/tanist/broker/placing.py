"""Where a message lies first: in its own queue, or where it waits for its time or its transaction. Pure.

Everything that is written on behalf of a client passes here: sends, messages that a consumer sends
back, and the second half of a transaction.
"""

from tanist.broker.delays.rules import DelayRules, postpone
from tanist.broker.transactions.halves import prepare
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
        if kind == _PREPARED or (b"TRAN_MSG" in properties and kind != _COMMITTED and _is_prepared(message)):
            if not self._takes_transactions:
                raise ResponseError(
                    ResponseCode.NO_PERMISSION,
                    "the broker takes no transactions: its rejectTransactionMessage says so",
                )
            return prepare(message)
        if b"DELAY" in properties or b"TIMER_" in properties:
            return postpone(message, self._delays, now_ms=now_ms)
        return message


def _is_prepared(message: Message) -> bool:
    """Whether the message is the first half of a transaction, in words; Java reads any case as true.

    Consumers before 4.6.1 send back a message with the words that it had when it was committed.
    """
    value = find_property(message.properties, TRAN_MSG)
    is_sent_back = message.reconsume_times > 0 and find_property(message.properties, DELAY) is not None
    return value is not None and value.lower() == b"true" and not is_sent_back
