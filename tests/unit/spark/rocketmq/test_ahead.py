"""What is pulled at once of a range, and in which order it comes out."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tanist.spark.rocketmq import ahead
from tanist.spark.rocketmq.ahead import FIRST_STRETCH, STRETCHES, ReadAhead, Stretch, reading_ahead

SPAN = FIRST_STRETCH
Answer = Callable[[int, int], Stretch]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with closing(asyncio.new_event_loop()) as loop:
        yield loop


class PlayedBroker:
    """Notes what is asked for, and answers at once but for what is held back."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[tuple[int, int]] = []
        self.held_back: set[int] = set()
        self.lets_go = asyncio.Event()

    async def pull(self, first: int, end: int) -> Stretch:
        self.asked.append((first, end))
        if first in self.held_back:
            await self.lets_go.wait()
        return self._answer(first, end)


def whole(first: int, end: int) -> Stretch:
    """All that was asked for, in answers of as many messages as brokers give by themselves."""
    return Stretch(first, [memoryview(b"%d " % at) for at in range(first, end, SPAN)], end)


def drain(reading: ReadAhead) -> str:
    text = ""
    while not reading.is_done:
        text += b"".join(reading.next().answers).decode()
    return text


def test_stretches_are_pulled_at_once_and_come_in_their_order(loop: asyncio.AbstractEventLoop) -> None:
    broker = PlayedBroker(whole)
    broker.held_back = {SPAN}
    with reading_ahead(loop, broker.pull, 0, 1000 * SPAN) as reading:
        assert reading.next() == whole(0, SPAN)
        assert broker.asked[:STRETCHES] == [(at * SPAN, (at + 1) * SPAN) for at in range(STRETCHES)]
        assert len(broker.asked) == STRETCHES + 1
        broker.lets_go.set()
        assert reading.next() == whole(SPAN, 2 * SPAN)
        # Those that were answered earlier had to wait for it.
        assert reading.next() == whole(2 * SPAN, 3 * SPAN)
        assert reading.offset == 3 * SPAN


def test_every_message_of_a_range_comes_once(loop: asyncio.AbstractEventLoop) -> None:
    with reading_ahead(loop, PlayedBroker(whole).pull, 7, 100 * SPAN) as reading:
        found = drain(reading)

    assert found == "".join(f"{at} " for at in range(7, 100 * SPAN, SPAN))
    assert reading.offset == 100 * SPAN


def test_a_stretch_is_as_long_as_some_answers(loop: asyncio.AbstractEventLoop) -> None:
    def in_halves(first: int, end: int) -> Stretch:
        return Stretch(first, [memoryview(b"")] * ((end - first) // (SPAN // 2)), end)

    broker = PlayedBroker(in_halves)
    with reading_ahead(loop, broker.pull, 0, 1000 * SPAN) as reading:
        drain(reading)

    assert [end - first for first, end in broker.asked[:STRETCHES]] == [SPAN] * STRETCHES
    assert {end - first for first, end in broker.asked[STRETCHES:-1]} == {4 * SPAN}


def test_what_a_large_stretch_left_is_pulled_before_anything_else(loop: asyncio.AbstractEventLoop) -> None:
    def large(first: int, _end: int) -> Stretch:
        return Stretch(first, [memoryview(b"%d " % first)], first + 1)

    broker = PlayedBroker(large)
    with reading_ahead(loop, broker.pull, 0, 3 * SPAN) as reading:
        found = drain(reading)

    assert found == "".join(f"{at} " for at in range(3 * SPAN))
    assert broker.asked[3] == (1, SPAN)
    # What nobody waits for yet is not pulled further.
    assert broker.asked[:3] == [(0, SPAN), (SPAN, 2 * SPAN), (2 * SPAN, 3 * SPAN)]


def test_what_an_answer_went_past_is_not_waited_for(loop: asyncio.AbstractEventLoop) -> None:
    def jumping(first: int, end: int) -> Stretch:
        return Stretch(first, [memoryview(b"x")], 100 * SPAN) if not first else whole(first, end)

    broker = PlayedBroker(jumping)
    broker.held_back = {at * SPAN for at in range(1, 100)}
    with reading_ahead(loop, broker.pull, 0, 101 * SPAN) as reading:
        assert reading.next().next_offset == 100 * SPAN
        assert reading.next() == whole(100 * SPAN, 101 * SPAN)
        assert reading.is_done


def test_a_failure_is_raised_when_it_is_its_turn_and_others_are_forgotten(
    loop: asyncio.AbstractEventLoop,
) -> None:
    complaints: list[object] = []
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))

    def failing(first: int, end: int) -> Stretch:
        if first:
            raise ValueError(first)
        return whole(first, end)

    with reading_ahead(loop, PlayedBroker(failing).pull, 0, 1000 * SPAN) as reading:
        assert reading.next() == whole(0, SPAN)
        with pytest.raises(ValueError, match=f"^{SPAN}$"):
            reading.next()
    loop.run_until_complete(asyncio.sleep(0))

    assert not asyncio.all_tasks(loop)
    del reading
    assert complaints == []


def test_pulls_are_made_anew_after_a_long_pause(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = PlayedBroker(whole)
    broker.held_back = {2 * SPAN}
    with reading_ahead(loop, broker.pull, 0, 3 * SPAN) as reading:
        reading.next()
        assert broker.asked == [(0, SPAN), (SPAN, 2 * SPAN), (2 * SPAN, 3 * SPAN)]
        broker.held_back.clear()
        monkeypatch.setattr(ahead, "_STANDSTILL_S", -1.0)
        # Its answer was there already.
        assert reading.next() == whole(SPAN, 2 * SPAN)
        assert reading.next() == whole(2 * SPAN, 3 * SPAN)

    assert broker.asked[3:] == [(2 * SPAN, 3 * SPAN)]
