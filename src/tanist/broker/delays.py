"""Messages that are to come later. Pure."""

from tanist.errors import ResponseError
from tanist.model.message import Message
from tanist.model.property_names import DELAY, TIMER_DELAY_MS, TIMER_DELAY_SEC, TIMER_DELIVER_MS
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import find_property

_TIMERS = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)


def postpone(message: Message, *, levels: tuple[int, ...], now_ms: int) -> Message:  # noqa: ARG001
    """The message as it lies until its time comes; itself if it is not delayed."""
    level = find_property(message.properties, DELAY)
    # Level 0 is what clients send for "at once".
    is_leveled = level is not None and level.strip(b"0") != b""
    if is_leveled or any(find_property(message.properties, name) for name in _TIMERS):
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL, "delayed messages are not supported by this broker yet"
        )
    return message
