"""What happens to a message that could not be handled. Pure."""

from dataclasses import dataclass

from tanist.client.errors import InvalidArgument
from tanist.client.message import MAX_DELAY_LEVEL

DEAD_LETTER = -1
"""The delay level that sends a message to the dead letters at once."""
ORDERLY_HOLD_S = 1.0
_FIRST_AGAIN_S = 1.0
_MOST_AGAIN_S = 30.0
_MOST_DOUBLINGS = 5


class RetryLater(Exception):
    """Raised by a handler: this message can not be handled now. It comes again later.

    ``delay_level`` says when, 1 (1 s) to 18 (2 h); 0 leaves it to the broker, which waits longer each
    time; -1 gives the message up: it goes to the dead letters. In order there are no levels: the queue
    waits for 1 s, as after any other exception.

    >>> raise RetryLater(delay_level=3)
    Traceback (most recent call last):
    tanist.client.consuming.retrying.RetryLater: again at delay level 3
    """

    def __init__(self, *, delay_level: int = 0) -> None:
        if type(delay_level) is not int or not DEAD_LETTER <= delay_level <= MAX_DELAY_LEVEL:
            raise InvalidArgument("delay_level", delay_level, f"use -1 to {MAX_DELAY_LEVEL}")
        super().__init__(f"again at delay level {delay_level}")
        self.delay_level = delay_level


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How a consumer deals with failures. ``max_retries`` None: for ever."""

    is_orderly: bool
    is_broadcasting: bool
    max_retries: int | None


@dataclass(frozen=True, slots=True)
class SendBack:
    """The broker is to store it for later, or among the dead letters."""

    delay_level: int


@dataclass(frozen=True, slots=True)
class TryAgain:
    """It comes again from here."""

    after_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It is done with, handled or not."""


def after_failure(
    rules: RetryRules, *, reconsume_times: int, delay_level: int = 0
) -> SendBack | TryAgain | GiveUp:
    """What to do with a message that failed after it came again ``reconsume_times`` times already."""
    is_last = rules.max_retries is not None and reconsume_times >= rules.max_retries
    is_given_up = is_last or delay_level == DEAD_LETTER
    if rules.is_broadcasting:
        # Nobody else is to get it, so no broker can help: there are no dead letters either.
        if is_given_up:
            return GiveUp()
        if rules.is_orderly:
            return TryAgain(ORDERLY_HOLD_S)
        return TryAgain(min(_MOST_AGAIN_S, _FIRST_AGAIN_S * 2 ** min(reconsume_times, _MOST_DOUBLINGS)))
    if not rules.is_orderly:
        # The broker counts itself: the last time it goes to the dead letters.
        return SendBack(delay_level)
    return SendBack(DEAD_LETTER) if is_given_up else TryAgain(ORDERLY_HOLD_S)
