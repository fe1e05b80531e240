"""Replicas of Tanist at Apache RocketMQ's own controller: ids, roles, sets, and a lease of sorts."""

import asyncio
from collections.abc import Generator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.broker.controlled.orders import MasterOrder, SlaveOrder
from tanist.broker.controlled.set_reports import SetRefused, SetTaken
from tanist.protocol.codes import ResponseCode
from tests.support import partners
from tests.support.conditions import until
from tests.support.controlled_node import ControlledNode
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.controlled import SWIFT_CONTROLLER, Controller, start_controller

BOTH = frozenset({1, 2})


@dataclass(frozen=True)
class _Proposal:
    members: frozenset[int]
    set_epoch: int


@pytest.fixture
def controller(tmp_path: Path) -> Generator[Controller]:
    try:
        rocketmq = RocketMQ(tmp_path / "rocketmq")
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        yield start_controller(rocketmq, properties=SWIFT_CONTROLLER)


@pytest.mark.behaviour("S2-45", "S2-46")
def test_replicas_register_and_succeed_each_other_at_rocketmqs_controller(
    tmp_path: Path, controller: Controller
) -> None:
    async def scenario() -> None:
        first, second = (
            ControlledNode(tmp_path / name, controller.address, session_id=name) for name in ("a", "b")
        )
        async with AsyncExitStack() as others:
            async with first.running():
                await until(lambda: first.is_master, timeout_s=30)
                assert first.switch.held == MasterOrder(1, frozenset({1}), 1)
                # It answers heartbeats and grants no lease; its word that we are master stands for one.
                await until(lambda: len(first.told.leases) > 3)
                assert first.controlled.status.lease is not None
                assert first.controlled.status.lease.is_weak
                await others.enter_async_context(second.running())
                await until(lambda: second.is_slave, timeout_s=30)
                assert second.switch.held == SlaveOrder(1, 1, None, first.address)
                refused = await first.controlled.report_set(_Proposal(BOTH, 7), epoch=1)
                assert isinstance(refused, SetRefused)
                assert refused.code == ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
                assert refused.view.sync_state_set == {1}
                taken = await first.controlled.report_set(_Proposal(BOTH, 1), epoch=1)
                assert taken == SetTaken(BOTH, 2)
            # It sees the connection close, and elects at once.
            await until(lambda: second.is_master, timeout_s=30)
            assert second.switch.held == MasterOrder(2, frozenset({2}), 3)
            assert second.noticed_s != []
            again = ControlledNode(tmp_path / "a", controller.address, session_id="c")
            async with again.running():
                await until(lambda: again.is_slave, timeout_s=30)
                assert (again.controlled.status.broker_id, again.controlled.status.epoch) == (1, 2)
                controller.kill()
                await until(lambda: second.told.void_count == 1)
                assert second.is_master
                assert again.is_slave

    asyncio.run(scenario())
