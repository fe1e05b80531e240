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
from tanist.store import StoreSettings
from tests.support import partners
from tests.support.conditions import until
from tests.support.controlled_node import ControlledNode
from tests.support.messages import make_message, open_store
from tests.support.rocketmq.cluster import RocketMQ, mqadmin_each
from tests.support.rocketmq.controlled import SWIFT_CONTROLLER, Controller, start_controller
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

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


def test_the_stock_command_shows_the_epochs_of_a_log(tmp_path: Path) -> None:
    settings = StoreSettings(mapped_file_size_commit_log=4 << 20, mapped_file_size_consume_queue=20 * 1000)
    with open_store(tmp_path / "broker" / "store", settings) as store:
        store.begin_epoch(3)
        store.append(make_message())
        second = store.log.log_end
        store.begin_epoch(5)
        store.append(make_message())
        end = store.log.log_end
    with (
        NameServerProcess(tmp_path / "ns") as names,
        BrokerProcess(tmp_path / "broker", names.address) as broker,
    ):
        try:
            (printed,) = mqadmin_each(names.address, ["getBrokerEpoch", "-b", broker.name], home=tmp_path)
        except partners.PartnerMissing as lack:
            partners.do_without(lack)
    assert f"#Epoch: EpochEntry{{epoch=3, startOffset=0, endOffset={second}}}" in printed
    assert f"#Epoch: EpochEntry{{epoch=5, startOffset={second}, endOffset={end}}}" in printed
