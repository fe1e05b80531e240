"""The stock clients of both lines when a controller replaces a killed master: they go on by themselves."""

import time
from pathlib import Path

import pytest

from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import bodies, wait_until
from tests.support.tanist_group import GroupProcess

pytestmark = pytest.mark.partner("java", "maven")

SOME = 100
ROUTE_POLL_MS = 1_000
"""By default a client asks for routes every 30 s, and that is how long it may take to go on."""


@pytest.mark.behaviour("S2-44")
@pytest.mark.takes(35)
def test_stock_producers_and_consumers_go_on_at_the_new_master_and_get_all_that_was_acknowledged(
    clients: StockClients, tmp_path: Path
) -> None:
    with (
        GroupProcess(tmp_path) as group,
        clients.producer(group.names.address, routePollMs=ROUTE_POLL_MS) as producer,
    ):
        producer.start_stream("Orders")
        producer.wait_for_acknowledged(SOME)
        with clients.push_consumer(
            group.names.address, "billing", "Orders", routePollMs=ROUTE_POLL_MS
        ) as consumer:
            consumer.received(SOME)
            old = group.master()
            killed_ns = time.monotonic_ns()
            old.kill()
            new = group.wait_for_master(besides=old)
            producer.acknowledged_by(new.address, since_ns=killed_ns)
            producer.wait_for_acknowledged(SOME)
            old.restart()
            group.wait_in_step()
            streamed = producer.end_stream()
            acknowledged = {body.encode() for body in streamed.acknowledged}
            # Some may come twice meanwhile, so a count would not tell that all are there.
            wait_until(lambda: acknowledged <= bodies(consumer.received(0)), pause_s=0.2)
