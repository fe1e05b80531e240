"""Brokers of Apache RocketMQ, and its operator command, at Tanist's controller."""

import asyncio
import re
from pathlib import Path

import pytest

from tanist.protocol import RequestCode
from tests.support import partners
from tests.support.controllers import ControllerView
from tests.support.played_replicas import (
    PlayedReplica,
    beating,
    controlling,
    in_time,
    reign,
    replicas,
)
from tests.support.rocketmq.cluster import RocketMQ, body_of, mqadmin_each
from tests.support.rocketmq.controlled import SWIFT_REPLICA, start_replica
from tests.support.rocketmq.jars import CLIENT_LINES, install_client
from tests.support.tanist_group import NAME, ControllerProcess

COUNT = 10
TOPIC = "Switch"


@pytest.mark.behaviour("S2-44")
def test_brokers_of_rocketmq_switch_under_our_controller(tmp_path: Path) -> None:
    try:
        rocketmq = RocketMQ(tmp_path)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq, ControllerProcess(tmp_path / "controller") as controller:
        settings = {**SWIFT_REPLICA, "allAckInSyncStateSet": "true"}
        first, second = (start_replica(rocketmq, controller.address, properties=settings) for _ in range(2))
        with ControllerView(controller.address) as view:
            before = view.wait_for_set(NAME, size=2)
            assert before.master_address == first.address
            rocketmq.produce(TOPIC, count=COUNT)
            first.kill()
            after = view.wait_for_epoch(NAME, beyond=before.master_epoch)
            assert after.master_address == second.address
            assert after.master_epoch == before.master_epoch + 1
            rocketmq.produce(TOPIC, count=COUNT)
            again = start_replica(
                rocketmq, controller.address, store_dir=first.store_dir, properties=settings
            )
            in_step = view.wait_for_set(NAME, size=2)
        assert in_step.master_address == second.address
        assert {each.broker_address for each in in_step.in_sync_replicas} == {second.address, again.address}
        assert {each.broker_id for each in in_step.in_sync_replicas} == {1, 2}
        received = rocketmq.consume_all(TOPIC)
        assert [message.body for message in received] == [body_of(n, 100) for n in range(COUNT)] * 2
        assert "Traceback" not in controller.process.output()


def test_mqadmin_shows_and_changes_what_our_controller_keeps(tmp_path: Path) -> None:
    async def scenario() -> None:
        leased = [PlayedReplica(number, session=f"s{number}", timeout_ms=3_000) for number in (1, 2)]
        gone = PlayedReplica(1, name="gone")
        async with controlling(tmp_path / "controller") as controller, replicas(*leased, gone):
            at = controller.address
            await reign(controller, *leased)
            await reign(controller, gone)
            await gone.disconnect()
            await leased[0].ask(at, RequestCode.CONTROLLER_ELECT_MASTER)  # It is refused, and counted.
            async with beating(*leased, at=[at]):
                printed = await asyncio.to_thread(
                    mqadmin_each,
                    "127.0.0.1:1",
                    ("getControllerMetaData", "-a", at),
                    ("getSyncStateSet", "-a", at, "-b", "b"),
                    ("electMaster", "-a", at, "-c", "c", "-bn", "b", "-b", "2"),
                    ("cleanBrokerMetadata", "-a", at, "-c", "c", "-bn", "b"),
                    ("cleanBrokerMetadata", "-a", at, "-c", "c", "-bn", "gone"),
                    ("getSyncStateSet", "-a", at, "-b", "gone"),
                    ("updateControllerConfig", "-a", at, "-k", "notifyBrokerRoleChanged", "-v", "false"),
                    ("updateControllerConfig", "-a", at, "-k", "configStorePath", "-v", "/x"),
                    ("getControllerConfig", "-a", at),
                    ("brokerStatus", "-b", at),
                    home=tmp_path,
                )
        check(printed, at, [each.address for each in leased])

    def check(printed: list[str], at: str, addresses: list[str]) -> None:
        metadata, in_step, elected, kept, cleaned, nothing, updated, refused, settings, status = printed
        assert f"#ControllerLeaderAddress\t{at}" in metadata
        assert f"#Peer:\tn0:{at}" in metadata
        assert "#MasterBrokerId\t1" in in_step
        assert f"#MasterAddr\t{addresses[0]}" in in_step
        assert "#SyncStateSetNums\t2" in in_step
        assert f"#BrokerMasterAddr\t{addresses[1]}" in elected
        assert "#MasterEpoch\t2" in elected
        # Why, it tells on its standard error.
        assert "success" not in kept
        assert "success" in cleaned
        assert "#brokerName" not in nothing
        assert "success" in updated
        assert "success" not in refused
        assert re.search(r"notifyBrokerRoleChanged\s+=\s+false", settings)
        assert re.search(r"controllerRefused\.BAD_INPUT\s+: 1", status)

    try:
        install_client(CLIENT_LINES[0])
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    in_time(scenario())
