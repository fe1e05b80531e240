"""Stock consumers of both lines where slave and master take turns in being read."""

from pathlib import Path

import pytest

from tests.support.fixed_pair import FixedPair
from tests.support.rocketmq.stock_client import Producer, PushConsumer, StockClients
from tests.support.site import bodies, duplicate_count, is_sent, numbered, wait_until

pytestmark = pytest.mark.partner("java", "maven")

SOON_MS = 15_000
"""A client that waits for its next look at the routes, or for its next heartbeat, waits for half a minute."""


def _send(producer: Producer, count: int, *, start: int) -> None:
    for message in numbered(count, start=start):
        wait_until(lambda message=message: is_sent(lambda: producer.send("Orders", [message])))


@pytest.mark.takes(35)
def test_consumers_go_on_at_the_slave_and_come_back_by_way_of_it_without_a_duplicate(
    clients: StockClients, tmp_path: Path
) -> None:
    with FixedPair(tmp_path, slaveConsumeChecks=2, brokerStandInMills=0) as pair:
        names = pair.names.address
        with clients.producer(names) as producer:
            _send(producer, 20, start=0)
            with clients.push_consumer(names, "audit", "Orders") as first:
                # Only a master makes groups.
                first.received(20)
            with clients.push_consumer(names, "billing", "Orders", routePollMs=1_000) as early:
                assert bodies(early.received(20)) == bodies(numbered(20))
                early.suspend()
                _send(producer, 20, start=20)
                pair.wait_in_step()
                pair.master.kill()
                pair.wait_for(pair.slave, "READ")
                # The slave has heard its heartbeats all the time: it pulls there without another one.
                early.resume()
                assert bodies(early.received(40, timeout_ms=SOON_MS)) == bodies(numbered(40))
                _come_back(clients, pair, early)


def _come_back(clients: StockClients, pair: FixedPair, early: PushConsumer) -> None:
    names = pair.names.address
    with clients.push_consumer(names, "audit", "Orders") as late:
        assert bodies(late.received(20)) == bodies(numbered(20, start=20))
        pair.restart_master()
        pair.wait_for(pair.master, "FULL")
        with clients.producer(names) as producer:
            _send(producer, 20, start=40)
        # It has no other route yet than to the slave.
        came = late.received(40, timeout_ms=SOON_MS)
        assert bodies(came) == bodies(numbered(40, start=20))
        assert duplicate_count(came) == 0
        assert bodies(early.received(60, timeout_ms=SOON_MS)) == bodies(numbered(60))
