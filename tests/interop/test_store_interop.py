"""A store that Tanist wrote is one that Apache RocketMQ goes on with, and Tanist after it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from tanist.errors import StoreLocked
from tanist.model.host import PACKED_V4_BYTES, pack_host
from tanist.model.property_names import KEYS, MAX_OFFSET, MIN_OFFSET, UNIQ_KEY
from tanist.model.topics import retry_topic
from tanist.protocol.message_id import decode_offset_id
from tanist.store import Boundary, MessageStore
from tanist.store.reader import StoreReader
from tanist.store.verify import verify
from tests.support import partners
from tests.support.kept import BROKER_SIZES, SETTINGS, Keeper, Kept
from tests.support.process import ProcessFailed
from tests.support.rocketmq import (
    KeyQuestion,
    Received,
    RocketMQ,
    Sent,
    TimeQuestion,
    body_of,
    free_broker_port,
)

pytestmark = [pytest.mark.partner("java", "maven"), pytest.mark.takes(50)]

BROKER = "broker-a"
# Over 127 bytes, so its records are of version 2. RocketMQ takes only retry topics that long.
LONG_TOPIC = retry_topic("g" * 140)
QUEUE_COUNTS = {"Plain": 1, "Spread": 3, LONG_TOPIC: 2}
ADDED_COUNT = 600
ADDED_BYTES = 300


@dataclass(frozen=True)
class Passage:
    """A store that Tanist wrote and closed, and what RocketMQ then said about it and added to it."""

    root: Path
    keeper: Keeper
    received: list[Received]
    found_by_key: dict[KeyQuestion, list[int]]
    found_by_id: dict[str, Received]
    time_questions: list[TimeQuestion]
    times_of_tanist: list[list[int]]
    times_of_rocketmq: list[list[int]]
    refusal: str
    """What Tanist said when it was to open the store meanwhile."""
    added: list[Sent]


@pytest.fixture(scope="module")
def passage(tmp_path_factory: pytest.TempPathFactory) -> Passage:
    """One run of a broker for many tests: starting and stopping it takes longer than what they ask."""
    directory = tmp_path_factory.mktemp("passage")
    root = directory / "store"
    port = free_broker_port()
    keeper = _written_store(root, port)
    time_questions = _time_questions(keeper)
    times_of_tanist = [_answer(keeper.store, question) for question in time_questions]
    keeper.store.close()

    key_questions = _key_questions(keeper)
    # An id leads to the address in it, and only that of the first session is the broker's.
    ids = [kept.offset_id for kept in keeper.visible()[::100] if len(kept.store_host) == PACKED_V4_BYTES]
    try:
        rocketmq = RocketMQ(directory / "rocketmq")
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        broker = rocketmq.start_broker(store_dir=root, properties={**BROKER_SIZES, "listenPort": port})
        with pytest.raises(StoreLocked) as refused:
            MessageStore.open(root, SETTINGS)
        passage = Passage(
            root=root,
            keeper=keeper,
            received=rocketmq.consume_all(*QUEUE_COUNTS),
            found_by_key=dict(zip(key_questions, rocketmq.query_key(key_questions), strict=True)),
            found_by_id=dict(zip(ids, rocketmq.query_id("Plain", ids), strict=True)),
            time_questions=time_questions,
            times_of_tanist=times_of_tanist,
            times_of_rocketmq=rocketmq.search_time(time_questions),
            refusal=str(refused.value),
            added=rocketmq.produce(
                "Spread", count=ADDED_COUNT, body_bytes=ADDED_BYTES, queues=(0, 1, 2), key_prefix="added-"
            ),
        )
        broker.stop()
    return passage


def test_rocketmq_reads_every_message_that_tanist_stored(passage: Passage) -> None:
    hidden = [kept for kept in passage.keeper.kept if not kept.is_visible]
    segments = list((passage.root / "commitlog").iterdir())

    assert len(hidden) > 400
    assert len(segments) > 3
    _assert_received(passage.received, passage.keeper.visible())


def test_rocketmq_finds_messages_of_tanist_by_key_and_by_unique_id(passage: Passage) -> None:
    assert len(list((passage.root / "index").iterdir())) > 2
    for question, log_offsets in passage.found_by_key.items():
        meant = [
            kept.appended.log_offset
            for kept in passage.keeper.kept
            if kept.message.topic == question.topic and question.key in _keys(kept, question)
        ]
        assert sorted(log_offsets) == meant, question


def test_rocketmq_finds_messages_of_tanist_by_their_offset_ids(passage: Passage) -> None:
    by_id = {kept.offset_id: kept for kept in passage.keeper.kept}

    assert len(passage.found_by_id) > 20
    for offset_id, found in passage.found_by_id.items():
        # Asked by id, a broker does not say its name.
        assert found == by_id[offset_id].as_received(broker_name="")


def test_rocketmq_and_tanist_agree_on_the_offset_of_a_time(passage: Passage) -> None:
    for question, ours, theirs in zip(
        passage.time_questions, passage.times_of_tanist, passage.times_of_rocketmq, strict=True
    ):
        answers = zip(question.timestamps, ours, theirs, strict=True)
        differences = [answer for answer in answers if answer[1] != answer[2]]
        assert differences == [], (question.topic, question.queue_id, question.boundary)


def test_tanist_stays_out_while_rocketmq_has_the_store_open(passage: Passage) -> None:
    assert passage.refusal.startswith(f"{passage.root / 'lock'} is held by another process")


def test_tanist_goes_on_with_what_rocketmq_added(passage: Passage) -> None:
    with StoreReader(passage.root) as reader:
        report = verify(reader, lambda _: None)
    assert report.problems == []
    assert report.record_count == len(passage.keeper.kept) + ADDED_COUNT

    with MessageStore.open(passage.root, SETTINGS) as store:
        assert store.recovery.was_closed
        assert store.recovery.cleared_bytes == 0
        assert store.log.log_end == report.log_end
        for kept in passage.keeper.visible():
            (record,) = store.records(*kept.place, max_count=1)
            assert record.log_offset == kept.appended.log_offset
            assert bytes(record.body) == bytes(kept.message.body)
            assert bytes(record.properties) == kept.message.properties
        for number, sent in enumerate(passage.added):
            (record,) = store.records("Spread", sent.queue_id, sent.queue_offset, max_count=1)
            assert bytes(record.body) == body_of(number, ADDED_BYTES)
            assert record.log_offset == decode_offset_id(sent.offset_message_id).log_offset
            for key in (f"added-{number}", sent.message_id):
                assert [found.log_offset for found in store.find_by_key("Spread", key)] == [record.log_offset]
        for kept in passage.keeper.kept:
            found = store.find_by_key(kept.message.topic, kept.properties[UNIQ_KEY])
            assert [record.log_offset for record in found] == [kept.appended.log_offset]


def test_rocketmq_recovers_what_tanist_had_flushed_before_the_power_was_lost(
    rocketmq: RocketMQ, tmp_path: Path
) -> None:
    keeper = Keeper(tmp_path / "store")
    for number in range(1200):
        keeper.append("Plain", number % 2)
    keeper.store.dispatch()
    keeper.store.checkpoint()
    for number in range(600):
        keeper.append("Plain", number % 2)
    flushed_to = keeper.store.flush()
    lost = [keeper.append("Plain", number % 2) for number in range(400)]
    keeper.store.dispatch()
    keeper.save_topics()
    # The queues are on disk with all their entries, the log up to the middle of a record.
    crashed = tmp_path / "crashed"
    shutil.copytree(tmp_path / "store", crashed)
    _zero_log_from(crashed, flushed_to + lost[0].appended.size_bytes // 2)
    keeper.store.close()

    rocketmq.start_broker(store_dir=crashed, properties={**BROKER_SIZES, "messageIndexSafe": "true"})
    received = rocketmq.consume_all("Plain")
    survivors = [kept for kept in keeper.kept if kept.appended.end <= flushed_to]
    questions = [KeyQuestion("Plain", kept.properties[UNIQ_KEY], is_unique=True) for kept in survivors[::20]]
    found = rocketmq.query_key(questions)

    assert len(survivors) == 1800
    _assert_received(received, [kept for kept in keeper.visible() if kept.appended.end <= flushed_to])
    assert found == [[kept.appended.log_offset] for kept in survivors[::20]]


@pytest.mark.behaviour("S2-40")
def test_messages_that_tanist_cut_do_not_come_back_in_rocketmq(rocketmq: RocketMQ, tmp_path: Path) -> None:
    root = tmp_path / "store"
    keeper = Keeper(root)
    first = [keeper.append("Cut", number % 2) for number in range(2000)]
    keeper.store.dispatch()
    keeper.forget_from(first[700].appended.log_offset)
    # Entries of the queue that were only forgotten would now point at messages of another topic,
    # and records behind the end that were only forgotten would be the log's next ones.
    for _ in range(100):
        keeper.append("Other", 0)
    behind = [keeper.append("Cut", number % 2) for number in range(900)]
    keeper.store.dispatch()
    keeper.forget_from(behind[0].appended.log_offset)
    log_end = keeper.store.log.log_end
    keeper.save_topics()
    keeper.store.close()

    broker = rocketmq.start_broker(store_dir=root, properties=BROKER_SIZES)
    _assert_received(rocketmq.consume_all("Cut", "Other"), keeper.visible())
    broker.stop()
    rocketmq.start_broker(store_dir=root, properties=BROKER_SIZES)
    _assert_received(rocketmq.consume_all("Cut", "Other"), keeper.visible())
    with StoreReader(root) as reader:
        assert verify(reader, lambda _: None).log_end == log_end


def test_rocketmq_stays_out_while_tanist_has_the_store_open(rocketmq: RocketMQ, tmp_path: Path) -> None:
    root = tmp_path / "store"
    keeper = Keeper(root)
    for _ in range(200):
        keeper.append("Plain", 0)
    keeper.store.dispatch()
    keeper.store.log.segments.prepare()
    # An attempt of our own process must not cost us the lock.
    with pytest.raises(StoreLocked):
        MessageStore.open(root, SETTINGS)

    with pytest.raises(ProcessFailed, match="Lock failed,MQ already started"):
        rocketmq.start_broker(store_dir=root, properties=BROKER_SIZES)

    # It has deleted the file that was prepared before it came to the lock.
    while len(keeper.store.log.segments) < 3:
        keeper.append("Plain", 0)
    keeper.store.close()
    with MessageStore.open(root, SETTINGS) as store:
        assert store.recovery.was_closed
        found = store.records("Plain", 0, 0, max_count=len(keeper.kept))
        assert [record.log_offset for record in found] == [
            kept.appended.log_offset for kept in keeper.visible()
        ]


def _written_store(root: Path, port: int) -> Keeper:
    """Fill a store in two sessions, the second one on a host with an IPv6 address, and leave it open."""
    keeper = Keeper(root, port=port)
    topics = tuple(QUEUE_COUNTS)
    for number in range(3000):
        # Six messages that differ in kind, then the next topic, and after its last the next queues.
        topic = topics[number // 6 % len(topics)]
        keeper.append(topic, number // 18 % QUEUE_COUNTS[topic])
    keeper.append_many("Plain", 0, count=20)
    keeper.save_topics()
    keeper.store.close()
    keeper.open(pack_host("2001:db8::10", port))
    # The log ends with a message that no queue holds.
    while len(keeper.kept) < 3050 or keeper.kept[-1].is_visible:
        keeper.append("Plain", 0)
    keeper.store.dispatch()
    return keeper


def _key_questions(keeper: Keeper) -> list[KeyQuestion]:
    questions = [KeyQuestion("Plain", "key of nobody")]
    for kept in (*keeper.kept[::25], keeper.kept[-1]):
        topic = kept.message.topic
        questions.append(KeyQuestion(topic, kept.properties[UNIQ_KEY], is_unique=True))
        questions += [KeyQuestion(topic, key) for key in kept.properties.get(KEYS, "").split()]
    return questions


def _keys(kept: Kept, question: KeyQuestion) -> list[str]:
    return [kept.properties[UNIQ_KEY]] if question.is_unique else kept.properties.get(KEYS, "").split()


def _time_questions(keeper: Keeper) -> list[TimeQuestion]:
    """For every queue the times of some of its messages, and those just before and after them."""
    questions: list[TimeQuestion] = []
    for topic, queue_count in QUEUE_COUNTS.items():
        for queue_id in range(queue_count):
            stored = {
                kept.appended.store_timestamp_ms
                for kept in keeper.visible()
                if kept.place[:2] == (topic, queue_id)
            }
            times = [time + step for time in sorted(stored)[::3] for step in (-1, 0, 1)]
            times.append(max(stored) + 1)
            questions += [
                TimeQuestion(topic, BROKER, queue_id, boundary.value, times) for boundary in Boundary
            ]
    return questions


def _answer(store: MessageStore, question: TimeQuestion) -> list[int]:
    boundary = Boundary(question.boundary)
    return [
        store.offset_at_time(question.topic, question.queue_id, time, boundary)
        for time in question.timestamps
    ]


def _assert_received(received: list[Received], visible: list[Kept]) -> None:
    """Everything that a client can see of a message is as it was stored."""
    assert len(received) == len(visible)
    in_order = sorted(received, key=lambda message: (message.topic, message.queue_id, message.queue_offset))
    for message, kept in zip(in_order, visible, strict=True):
        # The client itself adds the bounds of the queue.
        properties = {
            name: value for name, value in message.properties.items() if name not in (MIN_OFFSET, MAX_OFFSET)
        }
        assert msgspec.structs.replace(message, properties=properties) == kept.as_received(BROKER)


def _zero_log_from(root: Path, log_offset: int) -> None:
    for path in (root / "commitlog").iterdir():
        start = int(path.name)
        kept_bytes = max(0, min(log_offset - start, path.stat().st_size))
        with path.open("r+b") as file:
            file.seek(kept_bytes)
            file.write(bytes(path.stat().st_size - kept_bytes))
