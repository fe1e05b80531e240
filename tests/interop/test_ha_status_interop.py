"""RocketMQ's operator command reads how a master and a slave of Tanist stand."""

from pathlib import Path

import pytest

from tanist.testing import EmbeddedBroker
from tests.support.ha_pair import FILE_BYTES, SECRET, open_master, running_slave
from tests.support.relay import Relay
from tests.support.requests import TOPIC
from tests.support.rocketmq.cluster import mqadmin_each

pytestmark = pytest.mark.partner("java", "maven")

MASTER = {
    "brokerRole": "SYNC_MASTER",
    "haSecret": SECRET,
    "mappedFileSizeCommitLog": str(FILE_BYTES),
}


def values(printed: str) -> dict[str, str]:
    """What stands behind each name."""
    lines = (line.split(maxsplit=1) for line in printed.splitlines() if line.startswith("#"))
    return {line[0]: line[1] for line in lines if len(line) == 2}


@pytest.mark.behaviour("S5-23")
def test_mqadmin_shows_a_master_its_slave_and_a_cluster(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(topics=[TOPIC], settings=MASTER) as broker,
        open_master(broker.address) as master,
        Relay(master.ha_address) as cable,
        running_slave(cable) as slave,
    ):
        master.wait_in_step()
        assert master.send().status == "SEND_OK"
        log_end, ha_address = master.status().log_end, cable.address
        of_master, of_slave, of_cluster = mqadmin_each(
            broker.namesrv,
            ("haStatus", "-b", master.address),
            ("haStatus", "-b", slave.address),
            ("haStatus", "-c", "DefaultCluster"),
            home=tmp_path,
        )
    for printed in (of_master, of_cluster):
        found = values(printed)
        assert found["#MasterAddr"] == master.address
        assert found["#MasterCommitLogMaxOffset"] == str(log_end)
        assert (found["#SlaveNum"], found["#InSyncSlaveNum"]) == ("1", "1")
        (shown,) = (line.split() for line in printed.splitlines() if line.startswith("127.0.0.1:"))
        _, acked_to, lag, _, status, sent_from = shown
        assert (acked_to, lag, status, sent_from) == (str(log_end), "0", "OK", "0")
    found = values(of_slave)
    assert (found["#MasterAddr"], found["#CommitLogMaxOffset"]) == (ha_address, str(log_end))
    assert found["#LastReadTime"] > "2020"
