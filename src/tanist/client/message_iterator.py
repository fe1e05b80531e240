"""The messages of a consumer one after the other, for ``async for``."""

from typing import Self

from tanist.client.errors import ClientClosed
from tanist.client.handling import Delivery, Taken
from tanist.client.received import ReceivedMessage


class LeftInHand:
    """Messages whose loop was left before the next one was asked for: by ``break`` or by an exception.

    Nobody can tell which. If the block then ends well they are acknowledged, and otherwise, or if the
    program asks for more messages, redelivered: handled twice is better than not at all.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._left: list[Taken] = []

    def add(self, taken: Taken) -> None:
        self._left.append(taken)

    def acknowledge(self) -> None:
        for taken in self._drain():
            self._delivery.done(taken)

    def redeliver(self, error: BaseException | None = None) -> None:
        for taken in self._drain():
            self._delivery.failed(taken, error or _LoopLeft())

    def _drain(self) -> list[Taken]:
        drained, self._left = self._left, []
        return drained


class MessageIterator:
    """One loop over messages. Asking for the next message acknowledges the one before."""

    def __init__(self, delivery: Delivery, left: LeftInHand) -> None:
        self._delivery = delivery
        self._left = left
        self._in_hand: Taken | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedMessage:
        if self._in_hand is not None:
            self._delivery.done(self._in_hand)
            self._in_hand = None
        self._left.redeliver()
        try:
            self._in_hand = await self._delivery.take()
        except ClientClosed:
            raise StopAsyncIteration from None
        return self._in_hand[1]

    def __del__(self) -> None:
        # The loop is over, and this was its only owner.
        if self._in_hand is not None:
            self._left.add(self._in_hand)


class _LoopLeft(Exception):
    """Why a message comes again that nobody is known to have refused."""

    def __init__(self) -> None:
        super().__init__("its loop was left before the next message was asked for")
