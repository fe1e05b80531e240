"""Where a message lies first: in its own queue, or where it waits for its time or its transaction. Pure.

Everything that is written on behalf of a client passes here: sends, messages that a consumer sends
back, and the second half of a transaction.
"""

from tanist.broker.delays import DelayRules, postpone
from tanist.broker.transactions import prepare
from tanist.model.message import TRANSACTION_MASK, Message, SysFlag
from tanist.model.property_names import TRAN_MSG
from tanist.protocol.properties import find_property

_PREPARED = int(SysFlag.PREPARED)


class Placing:
    """Finds a message's first place, as one broker's settings say."""

    def __init__(self, *, delays: DelayRules) -> None:
        self._delays = delays

    def place(self, message: Message, now_ms: int) -> Message:
        """The message as the log gets it. Raises ResponseError for one that may not wait as it asks to."""
        properties = message.properties
        # Hardly any message waits, and to look for a few letters is cheaper than for five properties.
        if message.sys_flag & TRANSACTION_MASK == _PREPARED or _is_prepared(properties):
            return prepare(message)
        if b"DELAY" in properties or b"TIMER_" in properties:
            return postpone(message, self._delays, now_ms=now_ms)
        return message


def _is_prepared(properties: bytes) -> bool:
    """Whether the message is the first half of a transaction, in words; Java reads any case as true."""
    value = find_property(properties, TRAN_MSG) if b"TRAN_MSG" in properties else None
    return value is not None and value.lower() == b"true"
