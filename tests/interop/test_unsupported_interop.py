"""What this broker does not do, stock clients get to know at once: they neither hang nor spin."""

import time
from pathlib import Path

import psutil
import pytest

from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import bodies, numbered
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

LINES_THAT_ASK = [line for line in CLIENT_LINES if not line.startswith("4.")]
"""Consumers of RocketMQ 4.9 always work their queues out themselves."""
_WATCH_S = 5.0
_MOST_WAKE_UPS_A_S = 100
"""A client that asked again as soon as it is refused would wake the broker thousands of times a second."""


def wake_ups_a_s(broker: BrokerProcess) -> float:
    process = psutil.Process(broker.process.pid)
    before = process.num_ctx_switches().voluntary
    time.sleep(_WATCH_S)
    return (process.num_ctx_switches().voluntary - before) / _WATCH_S


@pytest.mark.parametrize("clients", LINES_THAT_ASK, indirect=True)
def test_a_consumer_that_wants_its_queues_from_the_broker_neither_hangs_nor_spins(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    with (
        BrokerProcess(tmp_path / "broker", own_names.address) as broker,
        clients.producer(own_names.address) as producer,
    ):
        producer.send("Orders", numbered(10))
        with clients.push_consumer(
            own_names.address, "Assigned", "Orders", isAssignedByBroker=True
        ) as assigned:
            for _ in range(3):
                assigned.rebalance()
            assert wake_ups_a_s(broker) < _MOST_WAKE_UPS_A_S
            # It has no queues, since nobody gave it any. Others go on meanwhile.
            assert assigned.assigned() == {}
            with clients.push_consumer(own_names.address, "Plain", "Orders") as plain:
                assert bodies(plain.received(10)) == bodies(numbered(10))
            producer.send("Orders", numbered(10, start=10))
            assert assigned.received(0) == []
        # Leaving the block has shut it down: it did not wait for anything.
        assert "Traceback" not in broker.process.output()
