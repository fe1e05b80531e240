"""The broker's side of controller mode against Tanist's controller, over real sockets."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.broker.controlled.orders import MasterOrder, SlaveOrder
from tanist.broker.controlled.set_reports import SetRefused, SetTaken
from tanist.broker.master_place import MasterPlace
from tanist.controller import Controller, ControllerSettings
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import NotifyRoleChangedRequest, ReportDeadBrokerRequest
from tanist.remoting import RemotingClient
from tests.support.conditions import until
from tests.support.controlled_node import ControlledNode

CLUSTER, NAME = "DefaultCluster", "broker-a"


@dataclass(frozen=True)
class _Proposal:
    members: frozenset[int]
    set_epoch: int


BOTH = frozenset({1, 2})


def _controller(root: Path, port: int = 0) -> Controller:
    return Controller(ControllerSettings(listen_port=port, controller_store_path=str(root / "controller")))


def _nodes(root: Path, controllers: str) -> tuple[ControlledNode, ControlledNode]:
    first, second = (
        ControlledNode(root / name, controllers, session_id=f"session-{name}") for name in ("a", "b")
    )
    return first, second


async def _in_step(first: ControlledNode, second: ControlledNode) -> None:
    """The first is master, the second follows, and is in the set."""
    await until(lambda: first.is_master)
    await until(lambda: second.is_slave)
    assert await first.controlled.report_set(_Proposal(BOTH, 1), epoch=1) == SetTaken(BOTH, 2)


async def _report_dead(controller: str, node: ControlledNode, session_id: str) -> None:
    client = RemotingClient()
    header = ReportDeadBrokerRequest(cluster_name=CLUSTER, broker_name=NAME, session_id=session_id)
    request = Command.request(RequestCode.CONTROLLER_REPORT_DEAD_BROKER, header)
    answer = await client.request(controller, request, timeout_s=3)
    assert answer.code == ResponseCode.SUCCESS, node.address
    await client.close()


@pytest.mark.behaviour("S2-45", "S2-46")
def test_replicas_get_ids_and_roles_and_the_one_in_step_succeeds_a_dead_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = _controller(tmp_path)
        async with controller.serving(), AsyncExitStack() as others:
            first, second = _nodes(tmp_path, controller.address)
            async with first.running():
                await until(lambda: first.is_master)
                await others.enter_async_context(second.running())
                await _in_step(first, second)
                place = MasterPlace(first.address, "127.0.0.1:10912")
                assert second.switch.held == SlaveOrder(1, 1, place, first.address)
                await until(lambda: any(epoch == 1 for epoch, _, _ in first.told.leases))
                assert second.told.leases == []
            await _report_dead(controller.address, first, "session-a")
            await until(lambda: second.is_master)
            assert second.switch.held == MasterOrder(2, frozenset({2}), 3)
            await until(lambda: any(epoch == 2 for epoch, _, _ in second.told.leases))
            # The old master comes back, and is told.
            again = ControlledNode(tmp_path / "a", controller.address, session_id="another")
            async with again.running():
                await until(lambda: again.is_slave)
                assert again.controlled.status.broker_id == 1
                assert again.controlled.status.epoch == 2

    asyncio.run(scenario())


def test_a_notification_costs_one_question_to_the_controller(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = _controller(tmp_path)
        async with controller.serving():
            first, second = _nodes(tmp_path, controller.address)
            async with first.running():
                await until(lambda: first.is_master)
                async with second.running():
                    await _in_step(first, second)
                    # Who does not answer for its session any more is replaced at once.
                    await _report_dead(controller.address, first, "session-a")
                    await until(lambda: second.is_master)
                    took_s = asyncio.get_running_loop().time() - second.noticed_s[-1]
                    assert took_s < 0.5
                    await until(lambda: first.is_slave)

    asyncio.run(scenario())


def test_a_forged_notification_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = _controller(tmp_path)
        async with controller.serving():
            first, _ = _nodes(tmp_path, controller.address)
            async with first.running():
                await until(lambda: first.is_master)
                client = RemotingClient()
                forged = NotifyRoleChangedRequest(
                    master_address="127.0.0.1:1", master_epoch=99, sync_state_set_epoch=99, master_broker_id=7
                )
                for _ in range(20):
                    request = Command.request(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, forged)
                    await client.request(first.address, request, timeout_s=3)
                await client.close()
                answer = await first.controlled.report_set(_Proposal(BOTH, 1), epoch=1)
                assert isinstance(answer, SetRefused)
                assert answer.code == ResponseCode.CONTROLLER_INVALID_REPLICAS
                assert first.switch.orders == [MasterOrder(1, frozenset({1}), 1)]
                assert len(first.switch.fences) == 1

    asyncio.run(scenario())


@pytest.mark.behaviour("S2-54")
def test_a_controller_that_is_gone_leaves_the_roles_and_gives_leases_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as nodes:
            controller = _controller(tmp_path)
            async with controller.serving():
                first, second = _nodes(tmp_path, controller.address)
                await nodes.enter_async_context(first.running())
                await until(lambda: first.is_master)
                await nodes.enter_async_context(second.running())
                await _in_step(first, second)
            await until(lambda: first.controlled.status.controller is None)
            granted_count = len(first.told.leases)
            assert first.is_master
            assert second.is_slave
            port = int(controller.address.rpartition(":")[2])
            async with _controller(tmp_path, port).serving():
                await until(lambda: len(first.told.leases) > granted_count)
                assert first.switch.orders == [MasterOrder(1, frozenset({1}), 1)]
                assert len(second.switch.orders) == 1

    asyncio.run(scenario())
