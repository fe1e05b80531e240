"""The messages of a consumer one after the other, for ``async for``."""

import logging
from typing import Self
from weakref import WeakSet

from tanist.client.consuming.handling import Delivery, Taken
from tanist.client.consuming.retrying import RetryLater
from tanist.client.errors import ClientClosed
from tanist.client.received import ReceivedMessage

_log = logging.getLogger(__name__)


class LoopsInHand:
    """The loops of one consumer, and the messages that those which are over left in hand.

    A loop that is left by ``break`` or by an exception never asks for the next message, and nobody can
    tell which it was. If the block ends well then such a message is acknowledged. Otherwise it is
    redelivered, also when the program begins another loop: twice is better than not at all.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._left: list[Taken] = []
        self._loops: WeakSet[MessageIterator] = WeakSet()

    def begin(self) -> "MessageIterator":
        loop = MessageIterator(self._delivery, self)
        self._loops.add(loop)
        return loop

    def leave(self, taken: Taken) -> None:
        self._left.append(taken)

    def redeliver_left(self, error: Exception | None = None) -> None:
        if self._left:
            for taken in self._drain():
                if error is None:
                    _log.info("loop was left, its message comes again message=%r", taken[1])
                self._delivery.failed(taken, error or RetryLater())

    def end(self, error: BaseException | None) -> None:
        """The block is over, well or with an error."""
        for loop in tuple(self._loops):
            loop.leave()
        if isinstance(error, Exception):
            self.redeliver_left(error)
        for taken in self._drain():
            if error is None:
                self._delivery.done(taken)
            else:
                # Cancelled: not the message's fault. It stays unfinished, and the next owner gets it.
                self._delivery.put_again(taken)

    def _drain(self) -> list[Taken]:
        drained, self._left = self._left, []
        return drained


class MessageIterator:
    """One loop over messages. Asking for the next message acknowledges the one before."""

    def __init__(self, delivery: Delivery, loops: LoopsInHand) -> None:
        self._delivery = delivery
        self._loops = loops
        self._in_hand: Taken | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedMessage:
        delivery, before = self._delivery, self._in_hand
        if before is not None:
            self._in_hand = None
            delivery.done(before)
        self._loops.redeliver_left()
        try:
            taken = delivery.take_now() or await delivery.take()
        except ClientClosed:
            raise StopAsyncIteration from None
        self._in_hand = taken
        return taken[1]

    def __del__(self) -> None:
        # Only the loop had this: it is over.
        self.leave()

    def leave(self) -> None:
        """The loop is over."""
        if self._in_hand is not None:
            taken, self._in_hand = self._in_hand, None
            self._loops.leave(taken)
