"""Transactions that one broker leaves open on its store are ended by the other, and none is ended twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tanist.model.offsets import LogOffset
from tanist.model.topics import HALF_OP_TOPIC, HALF_TOPIC
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import Record
from tanist.store.reader import StoreReader
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
@pytest.mark.takes(30)
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
    _assert_written_alike(root)


def _assert_written_alike(root: Path) -> None:
    """What either broker made of a plain commit differs in nothing that a reader can see."""
    with StoreReader(root) as reader:
        records = {record.log_offset: record for record in reader.records()}
        halves = {offset: record for offset, record in records.items() if record.topic == HALF_TOPIC}
        committed = [
            record
            for record in records.values()
            if record.topic == TOPIC and bytes(record.body) in bodies(numbered(10))
        ]
        assert len(committed) == 10
        for record in committed:
            half = halves[LogOffset(record.prepared_transaction_offset)]
            assert decode_properties(record.properties) == decode_properties(half.properties)
            assert (record.born_timestamp_ms, record.born_host) == (half.born_timestamp_ms, half.born_host)
        assert len({_shape(record) for record in committed}) == 1
        assert (
            len({_shape(halves[LogOffset(record.prepared_transaction_offset)]) for record in committed}) == 1
        )
        noted = [record for record in records.values() if record.topic == HALF_OP_TOPIC]
        assert len({_shape(record) for record in noted}) == 1


def _shape(record: Record) -> tuple[str, int, int, tuple[str, ...]]:
    names = sorted(decode_properties(record.properties))
    return record.topic, record.sys_flag, record.flag, tuple(names)
