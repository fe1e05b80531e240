"""Stock clients of both lines use a broker that lives in the process of a test."""

import pytest

from tanist.testing import EmbeddedBroker
from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import bodies, numbered

pytestmark = pytest.mark.partner("java", "maven")


def test_stock_clients_send_to_an_embedded_broker_and_consume_from_it(clients: StockClients) -> None:
    messages = numbered(20)
    with EmbeddedBroker(topics={"Orders": 2}) as broker:
        with clients.producer(broker.namesrv) as producer:
            sent = producer.send("Orders", messages)
        with clients.push_consumer(broker.namesrv, "billing", "Orders") as consumer:
            received = consumer.received(len(messages))
    assert {one.broker_name for one in sent} == {"embedded"}
    assert bodies(received) == bodies(messages)
