"""Transactions that one broker leaves open on its store are ended by the other, and none is ended twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import partners
from tests.support.kept import BROKER_SIZES
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import bodies, numbered
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

TOPIC = "Orders"
GROUP = "producers"
SETTINGS: dict[str, Any] = {
    **BROKER_SIZES,
    "transactionTimeOut": 1_000,
    "transactionCheckInterval": 2_000,
    "transactionOpBatchInterval": 100,
}


@pytest.mark.behaviour("S1-3")
def test_open_transactions_go_from_rocketmq_to_tanist_and_back(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    root, names = tmp_path / "store", own_names.address
    try:
        rocketmq = RocketMQ(tmp_path / "rocketmq", name_server=names)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        broker = rocketmq.start_broker(store_dir=root, properties=SETTINGS)
        with clients.transaction_producer(names, GROUP) as producer:
            producer.send(TOPIC, numbered(5), state="COMMIT")
            producer.send(TOPIC, [Outgoing(b"rolled back in RocketMQ")], state="ROLLBACK")
            producer.send(TOPIC, [Outgoing(b"open in RocketMQ")], state="UNKNOWN")
            # Asked for once, it lies in the half topic for a second time.
            producer.questions(1)
            producer.send(TOPIC, [Outgoing(b"not asked for yet")], state="UNKNOWN")
        broker.stop()

        with (
            BrokerProcess(tmp_path / "tanist", names, storePathRootDir=root, **SETTINGS) as tanist,
            clients.transaction_producer(names, GROUP) as producer,
            clients.push_consumer(names, "group", TOPIC) as consumer,
        ):
            producer.answer("COMMIT")
            producer.send(TOPIC, numbered(5, start=5), state="COMMIT")
            producer.send(TOPIC, [Outgoing(b"rolled back in Tanist")], state="ROLLBACK")
            expected = bodies(numbered(10)) | {b"open in RocketMQ", b"not asked for yet"}
            assert bodies(consumer.received(len(expected))) == expected
            asked = bodies(producer.questions(0))
            assert asked == {b"open in RocketMQ", b"not asked for yet"}
            producer.answer("UNKNOWN")
            producer.send(TOPIC, [Outgoing(b"open in Tanist")], state="UNKNOWN")
            producer.questions(len(asked) + 1)
            tanist.stop()
            assert "Traceback" not in tanist.process.output()

        rocketmq.start_broker(store_dir=root, properties=SETTINGS)
        with (
            clients.transaction_producer(names, GROUP) as producer,
            clients.push_consumer(names, "group", TOPIC) as consumer,
        ):
            producer.answer("COMMIT")
            producer.send(TOPIC, [Outgoing(b"last")], state="COMMIT")
            consumer.received(2)
            assert bodies(producer.questions(1)) == {b"open in Tanist"}
        received = Counter(message.body for message in rocketmq.consume_all(TOPIC))
    assert received == Counter([*sorted(expected), b"open in Tanist", b"last"])
