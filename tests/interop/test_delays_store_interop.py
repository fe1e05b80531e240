"""A store with messages that wait goes from RocketMQ to Tanist and back: each comes, and comes once."""

import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.model.offsets import LogOffset
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import Record
from tanist.store.reader import StoreReader
from tests.support import partners
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import wait_until
from tests.support.tanist_cluster import BrokerProcess

pytestmark = [pytest.mark.partner("java", "maven"), pytest.mark.takes(105)]

LEVELS = "1s 25s 70s"
SOON, NEXT, LAST = 1, 25, 70
"""Seconds until messages are due that the first, the second and the third broker delivers."""
BOTH: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20 * 1000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
    # A few units a file, so that there are several.
    "mappedFileSizeTimerLog": 52 * 4 + 16,
    "timerWheelEnable": "true",
    "messageDelayLevel": LEVELS,
}
COUNT = 3


@dataclass(frozen=True)
class Passage:
    """What lay in the store at the end, and when each broker had it."""

    records: list[Record]
    properties: Mapping[LogOffset, dict[str, str]]
    second_from_ms: int
    second_to_ms: int

    def delivered(self) -> list[Record]:
        return [record for record in self.records if record.topic == "T"]


def outgoing(prefix: str, *delays_s: int) -> list[Outgoing]:
    """Messages that are due after each of these times, by level and by timer."""
    levels = [int(word[:-1]) for word in LEVELS.split()]
    return [
        message
        for delay_s in delays_s
        for number in range(COUNT)
        for message in (
            Outgoing(
                f"{prefix} level {delay_s} {number}".encode(), tags="A", delay_level=levels.index(delay_s) + 1
            ),
            Outgoing(
                f"{prefix} timer {delay_s} {number}".encode(),
                tags="A",
                system_properties={"TIMER_DELAY_SEC": str(delay_s)},
            ),
        )
    ]


def send_all(rocketmq: RocketMQ, clients: StockClients, prefix: str, *delays_s: int) -> set[bytes]:
    messages = outgoing(prefix, *delays_s)
    with clients.producer(rocketmq.name_server) as producer:
        assert {one.status for one in producer.send("T", messages)} == {"SEND_OK"}
    return {message.body for message in messages}


def delivered_bodies(root: Path) -> list[bytes]:
    with StoreReader(root) as reader:
        return [bytes(record.body) for record in reader.records() if record.topic == "T"]


@contextmanager
def site(home: Path) -> Generator[tuple[RocketMQ, StockClients]]:
    try:
        rocketmq = RocketMQ(home / "rocketmq")
        clients = StockClients(CLIENT_LINES[0], home / "clients")
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq, clients:
        yield rocketmq, clients


@pytest.fixture(scope="module")
def passage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Passage]:
    home = tmp_path_factory.mktemp("passage")
    root = home / "tanist" / "store"
    expected: set[bytes] = set()

    def send(prefix: str, *delays_s: int) -> set[bytes]:
        bodies = send_all(rocketmq, clients, prefix, *delays_s)
        expected.update(bodies)
        return {body for body in bodies if b" %d " % delays_s[0] in body}

    with site(home) as (rocketmq, clients):
        first = rocketmq.start_broker(store_dir=root, properties=BOTH)
        soon = send("first", SOON, NEXT, LAST)
        wait_until(lambda: soon <= set(delivered_bodies(root)))
        first.stop()

        second_from_ms = int(time.time() * 1000)
        with BrokerProcess(home / "tanist", rocketmq.name_server, name="broker-a", **BOTH) as tanist:
            soon = send("second", SOON, LAST)
            soon |= {body for body in expected if b" %d " % NEXT in body}
            wait_until(lambda: soon <= set(delivered_bodies(root)))
            tanist.stop()
            assert "Traceback" not in tanist.process.output()
        second_to_ms = int(time.time() * 1000)

        third = rocketmq.start_broker(store_dir=root, properties=BOTH)
        soon = send("third", SOON)
        wait_until(lambda: expected <= set(delivered_bodies(root)), timeout_s=120)
        third.stop()
    with StoreReader(root) as reader:
        records = list(reader.records())
        properties = {record.log_offset: decode_properties(record.properties) for record in records}
        yield Passage(records, properties, second_from_ms, second_to_ms)


def test_every_message_comes_once_whichever_broker_it_waited_in(passage: Passage) -> None:
    counts = Counter(bytes(record.body) for record in passage.delivered())
    assert set(counts.values()) == {1}
    assert len(counts) == 2 * COUNT * (3 + 2 + 1)


def test_each_broker_delivers_what_is_due_while_it_runs(passage: Passage) -> None:
    by_tanist = [
        record
        for record in passage.delivered()
        if passage.second_from_ms <= record.store_timestamp_ms < passage.second_to_ms
    ]
    assert any(bytes(record.body).startswith(b"first timer") for record in by_tanist)
    assert any(bytes(record.body).startswith(b"first level") for record in by_tanist)
    by_third = [record for record in passage.delivered() if record.store_timestamp_ms >= passage.second_to_ms]
    assert any(bytes(record.body).startswith(b"second timer") for record in by_third)
    assert any(bytes(record.body).startswith(b"first timer") for record in by_third)


@pytest.mark.parametrize("kind", [b"level", b"timer"])
def test_tanist_lays_delayed_messages_down_as_rocketmq_does(passage: Passage, kind: bytes) -> None:
    """Both the message that waits and the one that is delivered, but for the times and ids in them."""
    body = b" %s %d 0" % (kind, SOON)
    found: dict[bytes, list[tuple[object, ...]]] = {}
    for record in passage.records:
        if bytes(record.body).endswith(body):
            properties = passage.properties[record.log_offset]
            changing = {"UNIQ_KEY", "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "REAL_QID"}
            fixed = {name: value for name, value in properties.items() if name not in changing}
            place = record.queue_id if record.topic != "T" else properties["REAL_QID"] == str(record.queue_id)
            described = (record.topic, place, record.sys_flag, record.flag, record.reconsume_times)
            rest = (record.prepared_transaction_offset, set(properties), fixed)
            found.setdefault(bytes(record.body).split()[0], []).append((*described, *rest))
    assert len(found[b"first"]) == 2
    assert found[b"first"] == found[b"second"] == found[b"third"]


def test_tanist_and_rocketmq_deliver_as_punctually(passage: Passage) -> None:
    """No message comes before its time."""
    stored = {
        bytes(record.body): record.store_timestamp_ms for record in passage.records if record.topic != "T"
    }
    for record in passage.delivered():
        delay_ms = 1000 * int(bytes(record.body).split()[2])
        # The delay of a timer begins a little before the message is stored.
        assert record.store_timestamp_ms - stored[bytes(record.body)] >= delay_ms - 500


def test_tanist_does_not_deliver_again_what_a_killed_rocketmq_has_delivered(tmp_path: Path) -> None:
    root = tmp_path / "tanist" / "store"
    with site(tmp_path) as (rocketmq, clients):
        first = rocketmq.start_broker(store_dir=root, properties=BOTH)
        expected = send_all(rocketmq, clients, "first", SOON)
        wait_until(lambda: expected <= set(delivered_bodies(root)))
        # By itself it writes down every 10 s which levels are delivered.
        first.kill()
        with BrokerProcess(tmp_path / "tanist", rocketmq.name_server, name="broker-a", **BOTH) as tanist:
            expected |= send_all(rocketmq, clients, "second", SOON)
            wait_until(lambda: expected <= set(delivered_bodies(root)))
            assert "had been delivered before the last stop" in tanist.process.output()
            tanist.stop()
    assert Counter(delivered_bodies(root)) == Counter(expected)
