"""So much may be on its way; who comes later waits for its turn, in order, and may stop waiting."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tanist.client.errors import ClientClosed
from tanist.client.sending.in_flight import InFlight
from tests.support.conditions import turns


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_there_is_room_for_so_many_and_so_much() -> None:
    in_flight = InFlight(max_count=2, max_bytes=100)
    assert in_flight.enter_now(60)
    assert not in_flight.enter_now(41)
    assert in_flight.enter_now(40)
    assert not in_flight.enter_now(0)
    in_flight.leave(60)
    assert in_flight.enter_now(0)


def test_what_is_larger_than_all_room_goes_alone() -> None:
    in_flight = InFlight(max_count=2, max_bytes=100)
    assert in_flight.enter_now(1000)
    assert not in_flight.enter_now(1)
    in_flight.leave(1000)
    assert in_flight.enter_now(1)


def test_those_who_wait_come_in_order_and_nobody_overtakes_them() -> None:
    async def scenario() -> None:
        in_flight = InFlight(max_count=10, max_bytes=100)
        assert in_flight.enter_now(100)
        came: list[int] = []

        async def come(number: int, size_bytes: int) -> None:
            await in_flight.enter(size_bytes)
            came.append(number)

        async with asyncio.TaskGroup() as tasks:
            for number, size_bytes in enumerate((80, 50, 20)):
                tasks.create_task(come(number, size_bytes))
            await turns()
            assert not in_flight.enter_now(1)
            in_flight.leave(100)
            await turns()
            # The last one would fit, but it is not its turn.
            assert came == [0]
            in_flight.leave(80)
            await turns()
            assert came == [0, 1, 2]

    run(scenario())


@pytest.mark.parametrize("is_granted", [False, True])
def test_who_stops_waiting_takes_no_room(is_granted: bool) -> None:
    async def scenario() -> None:
        in_flight = InFlight(max_count=1, max_bytes=100)
        assert in_flight.enter_now(1)
        waiting = asyncio.ensure_future(in_flight.enter(1))
        await turns()
        if is_granted:
            in_flight.leave(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not is_granted:
            in_flight.leave(1)
        assert in_flight.count == in_flight.size_bytes == 0
        assert in_flight.enter_now(1)

    run(scenario())


def test_nobody_waits_for_a_producer_that_is_closed() -> None:
    async def scenario() -> None:
        in_flight = InFlight(max_count=1)
        assert in_flight.enter_now(1)
        waiting = asyncio.ensure_future(in_flight.enter(1))
        await turns()
        in_flight.close()
        with pytest.raises(ClientClosed):
            await waiting

    run(scenario())
