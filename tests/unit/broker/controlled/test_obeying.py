import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tanist.broker.controlled.obeying import Obeying
from tanist.broker.controlled.orders import MasterOrder, SlaveOrder
from tanist.broker.controlled.status import ControlledStatus, HeldRole
from tests.support.played_switch import PlayedSwitch
from tests.support.virtual_time import run_virtually, virtually_until


class _Obeyed:
    def __init__(self) -> None:
        self.switch = PlayedSwitch()
        self.status = ControlledStatus()
        self.held_count = 0
        self.obeying = Obeying(self.switch, self.status, self._on_held, chance=lambda: 0.5)

    def _on_held(self) -> None:
        self.held_count += 1

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        task = asyncio.get_running_loop().create_task(self.obeying.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


def _master(epoch: int) -> MasterOrder:
    return MasterOrder(epoch, frozenset({2}), epoch)


def _slave(epoch: int) -> SlaveOrder:
    return SlaveOrder(epoch, 1, None, "a:1")


def test_an_order_is_carried_out_and_shown() -> None:
    async def scenario() -> None:
        obeyed = _Obeyed()
        async with obeyed.running():
            obeyed.obeying.give(_master(1))
            assert obeyed.status.role is HeldRole.SWITCHING
            await virtually_until(lambda: obeyed.switch.held == _master(1))
            assert (obeyed.status.role, obeyed.status.epoch, obeyed.held_count) == (HeldRole.MASTER, 1, 1)
            obeyed.obeying.give(_slave(2))
            await virtually_until(lambda: obeyed.switch.held == _slave(2))
            assert (obeyed.status.role, obeyed.status.epoch) == (HeldRole.SLAVE, 2)

    run_virtually(scenario())


def test_of_the_orders_that_wait_only_the_newest_is_carried_out_and_one_at_a_time() -> None:
    async def scenario() -> None:
        obeyed = _Obeyed()
        async with obeyed.running():
            obeyed.switch.may_end.clear()
            obeyed.obeying.give(_master(1))
            await asyncio.sleep(0.1)
            for epoch in range(2, 9):
                obeyed.obeying.give(_slave(epoch))
            obeyed.obeying.give(_master(9))
            await asyncio.sleep(0.1)
            obeyed.switch.may_end.set()
            await virtually_until(lambda: obeyed.switch.held == _master(9))
        assert obeyed.switch.orders == [_master(1), _master(9)]
        assert (obeyed.switch.most_open, obeyed.held_count) == (1, 1)

    run_virtually(scenario())


def test_who_is_replaced_takes_no_writes_from_that_moment_even_during_a_switch() -> None:
    async def scenario() -> None:
        obeyed = _Obeyed()
        async with obeyed.running():
            obeyed.switch.may_end.clear()
            obeyed.obeying.give(_master(1))
            await asyncio.sleep(0.1)
            obeyed.obeying.give(_slave(2))
            assert obeyed.switch.fences == ["broker 1 is master of epoch 2"]

    run_virtually(scenario())


def test_an_order_that_fails_fences_and_is_tried_again_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        obeyed = _Obeyed()
        obeyed.switch.failures = ["disk is slow"] * 8
        async with obeyed.running():
            obeyed.obeying.give(_master(1))
            await asyncio.sleep(0.01)
            assert obeyed.status.reasons == ("the role of epoch 1 can not be taken: disk is slow",)
            assert obeyed.switch.fences == ["the role of epoch 1 can not be taken: disk is slow"]
            took_s = await virtually_until(lambda: obeyed.switch.held is not None)
            assert 4 < took_s < 8
            assert obeyed.status.reasons == ()

    run_virtually(scenario())
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


def test_a_newer_order_does_not_wait_for_the_pause_after_a_failure() -> None:
    async def scenario() -> None:
        obeyed = _Obeyed()
        obeyed.switch.failures = ["no"] * 7
        async with obeyed.running():
            obeyed.obeying.give(_master(1))
            await virtually_until(lambda: not obeyed.switch.failures)
            obeyed.obeying.give(_slave(2))
            assert await virtually_until(lambda: obeyed.switch.held == _slave(2)) < 0.01

    run_virtually(scenario())
