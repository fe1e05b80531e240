"""Sends with one key wait for each other; others do not."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tanist.client.errors import ClientClosed
from tanist.client.sending.key_turns import KeyTurns
from tests.support.conditions import turns


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_those_with_one_key_come_in_order_and_others_at_once() -> None:
    async def scenario() -> None:
        key_turns = KeyTurns()
        came: list[str] = []

        async def come(key: str, number: int) -> None:
            await key_turns.enter(key)
            came.append(f"{key}{number}")

        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(come("a", number))
            tasks.create_task(come("b", 0))
            await turns()
            assert came == ["a0", "b0"]
            for _ in range(2):
                key_turns.leave("a")
                await turns()
        assert came == ["a0", "b0", "a1", "a2"]
        key_turns.leave("a")
        key_turns.leave("b")
        assert len(key_turns) == 0

    run(scenario())


@pytest.mark.parametrize("is_granted", [False, True])
def test_who_stops_waiting_holds_up_nobody(is_granted: bool) -> None:
    async def scenario() -> None:
        key_turns = KeyTurns()
        await key_turns.enter("a")
        waiting = asyncio.ensure_future(key_turns.enter("a"))
        last = asyncio.ensure_future(key_turns.enter("a"))
        await turns()
        if is_granted:
            key_turns.leave("a")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not is_granted:
            key_turns.leave("a")
        await last
        key_turns.leave("a")
        assert len(key_turns) == 0

    run(scenario())


def test_nobody_waits_for_a_producer_that_is_closed() -> None:
    async def scenario() -> None:
        key_turns = KeyTurns()
        await key_turns.enter("a")
        waiting = asyncio.ensure_future(key_turns.enter("a"))
        await turns()
        key_turns.close()
        with pytest.raises(ClientClosed):
            await waiting
        key_turns.leave("a")

    run(scenario())
