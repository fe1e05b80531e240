"""A store that Apache RocketMQ wrote is one that Tanist reads, indexes alike and goes on with."""

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.model.delay_levels import parse_delay_levels
from tanist.model.property_names import KEYS, UNIQ_KEY
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.protocol.compression import decompress_body
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import Record
from tanist.protocol.tags import index_keys
from tanist.store import Boundary, MessageStore
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tanist.store.reader import StoreReader
from tanist.store.verify import verify
from tests.support import partners
from tests.support.kept import BROKER_SIZES, SETTINGS
from tests.support.rocketmq import CONSUMER_GROUP, Received, RocketMQ, Sent, body_of

pytestmark = [pytest.mark.partner("java", "maven"), pytest.mark.takes(25)]

TOPICS = ("Orders", "Large", "Delayed")
ORDER_COUNT = 1000
# The client compresses what is over 4 KiB.
LARGE_BYTES = 6000
LARGE_COUNT = 60
DELAYED_COUNT = 4
SOON, LATER = 1, 18


@dataclass(frozen=True)
class Written:
    """A store that RocketMQ wrote and closed, and what its clients saw."""

    root: Path
    orders: list[Sent]
    received: list[Received]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    directory = tmp_path_factory.mktemp("written")
    root = directory / "store"
    try:
        rocketmq = RocketMQ(directory / "rocketmq")
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        broker = rocketmq.start_broker(store_dir=root, properties=BROKER_SIZES)
        for level in (SOON, LATER):
            rocketmq.produce("Delayed", count=DELAYED_COUNT, delay_level=level, tags=("late",))
        orders = rocketmq.produce(
            "Orders", count=ORDER_COUNT, queues=(0, 1, 2, 3), tags=("A", "B"), key_prefix="order-"
        )
        rocketmq.produce("Large", count=LARGE_COUNT, body_bytes=LARGE_BYTES, key_prefix="large-")
        received = rocketmq.consume_all(*TOPICS, is_committed=True)
        broker.stop()
    return Written(root, orders, received)


def test_tanist_reads_every_message_that_rocketmq_stored(written: Written, tmp_path: Path) -> None:
    with _copy(written.root, tmp_path / "store") as store:
        assert store.recovery.was_closed
        assert store.recovery.cleared_bytes == 0
        assert len(store.log.segments) > 1
        counts = Counter(received.topic for received in written.received)
        assert counts == {"Orders": ORDER_COUNT, "Large": LARGE_COUNT, "Delayed": DELAYED_COUNT}
        for received in written.received:
            (record,) = store.records(received.topic, received.queue_id, received.queue_offset, max_count=1)
            assert record.log_offset == received.log_offset
            assert decompress_body(record.body, record.sys_flag, max_bytes=LARGE_BYTES) == received.body
            assert encode_offset_id(record.store_host, record.log_offset) == received.offset_message_id
            properties = decode_properties(record.properties)
            assert (properties[UNIQ_KEY], properties.get(KEYS)) == (received.message_id, received.keys)
    with StoreReader(tmp_path / "store") as reader:
        assert verify(reader, lambda _: None).problems == []


def test_tanist_finds_messages_of_rocketmq_by_key_and_by_time(written: Written, tmp_path: Path) -> None:
    with _copy(written.root, tmp_path / "store") as store:
        for number, sent in enumerate(written.orders):
            for key in (f"order-{number}", sent.message_id):
                (record,) = store.find_by_key("Orders", key)
                assert (record.queue_id, record.queue_offset) == (sent.queue_id, sent.queue_offset)
        for queue_id in range(4):
            records = store.records("Orders", queue_id, 0, max_count=ORDER_COUNT)
            times = [record.store_timestamp_ms for record in records]
            for time in times:
                first = store.offset_at_time("Orders", queue_id, time, Boundary.LOWER)
                last = store.offset_at_time("Orders", queue_id, time, Boundary.UPPER)
                assert (first, last) == (times.index(time), len(times) - 1 - times[::-1].index(time))


def test_tanist_builds_the_indexes_that_rocketmq_built(written: Written, tmp_path: Path) -> None:
    rebuilt = tmp_path / "rebuilt"
    shutil.copytree(written.root, rebuilt)
    for derived in ("consumequeue", "index"):
        shutil.rmtree(rebuilt / derived)

    with MessageStore.open(rebuilt, SETTINGS) as ours, _copy(written.root, tmp_path / "store") as theirs:
        assert _files(rebuilt / "consumequeue") == _files(written.root / "consumequeue")
        with StoreReader(written.root) as reader:
            for record in reader.records():
                for key in index_keys(record.properties):
                    assert _places(ours.find_by_key(record.topic, key)) == _places(
                        theirs.find_by_key(record.topic, key)
                    )


def test_the_entry_of_a_delayed_message_tells_when_it_is_due(written: Written, tmp_path: Path) -> None:
    delays_ms = parse_delay_levels(SETTINGS.message_delay_level)
    with _copy(written.root, tmp_path / "store") as store:
        for level in (SOON, LATER):
            queue = store.queues.find(SCHEDULE_TOPIC, level - 1)
            assert queue is not None
            records = store.records(SCHEDULE_TOPIC, level - 1, 0, max_count=2 * DELAYED_COUNT)
            assert [entry.tags_code for _, entry in queue.walk(0)] == [
                record.store_timestamp_ms + delays_ms[level - 1] for record in records
            ]
            assert len(records) == DELAYED_COUNT


def test_tanist_loads_the_tables_that_rocketmq_kept(written: Written) -> None:
    disk = Disk()
    topics = ConfigTable(disk, written.root, TopicConfigTable).load()
    groups = ConfigTable(disk, written.root, SubscriptionGroupTable).load()
    offsets = ConfigTable(disk, written.root, ConsumerOffsetTable).load()
    delays = ConfigTable(disk, written.root, DelayOffsetTable).load()

    orders = topics.topics["Orders"]
    assert (orders.topic_name, orders.read_queue_count, orders.write_queue_count) == ("Orders", 4, 4)
    assert orders.is_readable
    assert orders.is_writable
    assert topics.data_version.counter > 0
    assert groups.groups[CONSUMER_GROUP].group_name == CONSUMER_GROUP
    assert offsets.offset_table[f"Orders@{CONSUMER_GROUP}"] == dict.fromkeys(range(4), ORDER_COUNT // 4)
    assert offsets.offset_table[f"Large@{CONSUMER_GROUP}"] == {0: LARGE_COUNT}
    assert delays.offset_table[SOON] == DELAYED_COUNT
    assert delays.offset_table.get(LATER, 0) == 0


def test_tanist_keeps_every_answered_send_of_a_killed_broker(rocketmq: RocketMQ, tmp_path: Path) -> None:
    root = tmp_path / "store"
    broker = rocketmq.start_broker(store_dir=root, properties=BROKER_SIZES)
    producer = rocketmq.start_producing("Loaded", body_bytes=300, queues=(0, 1, 2, 3))
    producer.wait_for_offset(600, timeout_s=60)
    broker.kill()
    producer.process.kill()
    answered = producer.answered()

    assert len(answered) > 2400
    assert {sent.status for sent in answered} == {"SEND_OK"}
    with MessageStore.open(root, SETTINGS) as store:
        assert not store.recovery.was_closed
        for number, sent in enumerate(answered):
            (record,) = store.records("Loaded", sent.queue_id, sent.queue_offset, max_count=1)
            assert bytes(record.body) == body_of(number, 300)
            assert encode_offset_id(record.store_host, record.log_offset) == sent.offset_message_id
            found = store.find_by_key("Loaded", sent.message_id)
            assert _places(found) == [record.log_offset]
    with StoreReader(root) as reader:
        assert verify(reader, lambda _: None).problems == []


def _copy(root: Path, target: Path) -> MessageStore:
    """Open a copy: the next test is to find the store as RocketMQ left it."""
    shutil.copytree(root, target)
    return MessageStore.open(target, SETTINGS)


def _files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def _places(records: list[Record]) -> list[int]:
    return [record.log_offset for record in records]
