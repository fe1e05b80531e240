"""Brokers of Apache RocketMQ, and its operator command, at Tanist's controller."""

from pathlib import Path

import pytest

from tests.support import partners
from tests.support.controllers import ControllerView
from tests.support.rocketmq.cluster import RocketMQ, body_of
from tests.support.rocketmq.controlled import SWIFT_REPLICA, start_replica
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
