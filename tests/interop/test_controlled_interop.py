"""Apache RocketMQ's own controller and replicas: what our trials beside them rest on."""

from pathlib import Path

import pytest

from tests.support import partners
from tests.support.controllers import ControllerView
from tests.support.replicated_log import LogOnDisk
from tests.support.rocketmq.cluster import RocketMQ, body_of
from tests.support.rocketmq.controlled import (
    SWIFT_CONTROLLER,
    SWIFT_REPLICA,
    start_controller,
    start_replica,
)

pytestmark = pytest.mark.partner("java", "maven")

NAME = "broker-a"
COUNT = 10


def test_rocketmq_elects_the_replica_in_step_when_its_master_is_killed(tmp_path: Path) -> None:
    try:
        rocketmq = RocketMQ(tmp_path)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        controller = start_controller(rocketmq, properties=SWIFT_CONTROLLER)
        settings = {**SWIFT_REPLICA, "allAckInSyncStateSet": "true"}
        replicas = [start_replica(rocketmq, controller.address, properties=settings) for _ in range(2)]
        with ControllerView(controller.address) as view:
            before = view.wait_for_set(NAME, size=2)
            assert before.master_address == replicas[0].address
            rocketmq.produce("Switch", count=COUNT)
            replicas[0].kill()
            after = view.wait_for_epoch(NAME, beyond=before.master_epoch)
        assert after.master_address == replicas[1].address
        assert after.master_epoch == before.master_epoch + 1
        assert [one.broker_address for one in after.in_sync_replicas] == [replicas[1].address]
        # Its tables come to know of a new topic seconds later than its log.
        held = LogOnDisk.read(replicas[1].store_dir).data
        assert [number for number in range(COUNT) if body_of(number, 100) not in held] == []
