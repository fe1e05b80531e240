"""Stock Java clients of both lines, 5.x and 4.9, cannot tell Tanist from the broker they were made for."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import (
    FROM_LAST,
    FROM_TIMESTAMP,
    Outgoing,
    PushConsumer,
    StockClients,
)
from tests.support.site import (
    BROKER,
    Site,
    are_shared,
    bodies,
    by_queue,
    duplicate_count,
    is_sent,
    numbered,
    wait_until,
)
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

MESSAGE_ILLEGAL = 13
TOPIC_NOT_EXIST = 17
INVALID_PARAMETER = 29
# A client looks by itself only every 20 s; whoever is faster was told.
NOTIFIED_S = 15.0


def awkward_messages() -> list[Outgoing]:
    noise = random.Random(4)
    return [
        Outgoing(b"\0"),
        Outgoing(bytes(range(256)), tags="TagA", keys="one two", flag=-7),
        # The client compresses what is this large, if it can be.
        Outgoing(b"squeeze me " * 4096, keys="zipped", properties={"colour": "blue", "two words": "a b"}),
        Outgoing(
            noise.randbytes(1 << 20), tags="Größe", keys="schlüssel 键", properties={"ключ": "значение 🚀"}
        ),
    ]


def test_every_way_of_sending_arrives_byte_for_byte(site: Site) -> None:
    topic = site.topic("t")
    ways: dict[str, dict[str, object]] = {
        "sync": {},
        "async": {},
        "queue": {"brokerName": BROKER, "queueId": 2},
        "selector": {"selectBy": 3},
    }
    expected: dict[tuple[int, int], tuple[Outgoing, str]] = {}
    with site.clients.producer(site.name_server) as producer:
        for mode, options in ways.items():
            messages = awkward_messages()
            sent = producer.send(topic, messages, mode=mode, **options)
            for message, result in zip(messages, sent, strict=True):
                assert result.status == "SEND_OK"
                expected[result.queue_id, result.queue_offset] = message, result.message_id
                if mode in {"queue", "selector"}:
                    assert result.queue_id == {"queue": 2, "selector": 3}[mode]

    with site.clients.push_consumer(site.name_server, topic, topic) as consumer:
        received = consumer.received(len(expected))

    assert len(expected) == len(received) == 16
    for delivery in received:
        message, message_id = expected[delivery.place]
        assert delivery.body == message.body
        assert (delivery.tags, delivery.keys, delivery.flag) == (message.tags, message.keys, message.flag)
        assert (message.properties or {}).items() <= delivery.properties.items()
        assert delivery.message_id == message_id


def test_one_way_sends_and_batches_arrive(site: Site) -> None:
    topic = site.topic("t")
    one_way = numbered(20)
    batch = [Outgoing(b"batch-%d" % n, keys=f"k{n}", properties={"n": str(n)}) for n in range(30)]
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, [Outgoing(b"first")])
        producer.send_one_way(topic, one_way)
        (sent,) = producer.send(topic, batch, mode="batch")

    with site.clients.push_consumer(site.name_server, topic, topic) as consumer:
        received = consumer.received(51)

    assert len(received) == 51
    assert bodies(received) == {b"first"} | bodies(one_way) | bodies(batch)
    at_place = {delivery.place: delivery for delivery in received}
    unique_ids = sent.message_id.split(",")
    for number, message in enumerate(batch):
        delivery = at_place[sent.queue_id, sent.queue_offset + number]
        assert (delivery.body, delivery.keys, delivery.properties["n"]) == (
            message.body,
            message.keys,
            str(number),
        )
        # A client of 5.x gives the batch an id too, which hides those of its messages from all brokers.
        assert site.clients.line.startswith("5.") or delivery.message_id == unique_ids[number]


def test_a_first_send_creates_the_topic_with_as_many_queues_as_allowed(site: Site) -> None:
    with site.clients.pull_consumer(site.name_server, site.topic("looks")) as looks:
        for asked, given in ((3, 3), (16, 8)):
            topic = site.topic(f"t{asked}")
            with site.clients.producer(site.name_server, topicQueues=asked) as producer:
                sent = producer.send(topic, numbered(16))
            assert {result.queue_id for result in sent} == set(range(given))
            assert looks.bounds(topic, BROKER, 0, time_ms=0)["queues"] == given


def test_illegal_sends_are_refused_with_what_the_client_knows(site: Site) -> None:
    topic = site.topic("t")
    noise = random.Random(5).randbytes(5 << 20)
    with site.clients.producer(site.name_server, maxMessageBytes=8 << 20) as producer:
        producer.send(topic, numbered(1))

        with pytest.raises(StepFailed) as oversize:
            producer.send(topic, [Outgoing(noise)])
        with pytest.raises(StepFailed) as long_properties:
            producer.send(topic, [Outgoing(b"x", properties={"p": "y" * 40_000})])
        with pytest.raises(StepFailed) as no_queue:
            producer.send(topic, numbered(1), mode="queue", brokerName=BROKER, queueId=99)
        with pytest.raises(StepFailed) as bad_name:
            producer.send("a/b", numbered(1))

        assert producer.send(topic, numbered(1))[0].status == "SEND_OK"
    for refusal, code in (
        (oversize, MESSAGE_ILLEGAL),
        (long_properties, MESSAGE_ILLEGAL),
        (no_queue, INVALID_PARAMETER),
    ):
        assert (refusal.value.error, refusal.value.code) == ("MQBrokerException", code)
    assert "at most 4194304" in oversize.value.message
    assert bad_name.value.error == "MQClientException"


def test_a_send_creates_no_topic_where_that_is_off(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    with (
        BrokerProcess(tmp_path / "broker", own_names.address, autoCreateTopicEnable="false"),
        clients.producer(own_names.address) as producer,
        pytest.raises(StepFailed, match="No route info of this topic"),
    ):
        producer.send("Unknown", numbered(1))


def test_tags_choose_what_a_group_gets(site: Site) -> None:
    topic = site.topic("t")
    messages = numbered(60, tags=("A", "B", "C", None))
    with (
        site.clients.producer(site.name_server) as producer,
        site.clients.push_consumer(site.name_server, site.topic("all"), topic) as everything,
    ):
        producer.send(topic, messages)
        with site.clients.push_consumer(
            site.name_server, site.topic("ab"), topic, expression="A || B"
        ) as chosen:
            assert bodies(chosen.received(30)) == bodies(m for m in messages if m.tags in {"A", "B"})
            everything.rebalance()
            assert bodies(everything.received(60)) == bodies(messages)
            # What is not wanted moves the offset all the same; the next wanted one comes at once.
            (late,) = producer.send(topic, [Outgoing(b"late", tags="B")])
            assert chosen.received(31)[-1].place == (late.queue_id, late.queue_offset)


def test_a_message_reaches_a_waiting_listener_within_a_second(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, numbered(8))
        with site.clients.push_consumer(site.name_server, topic, topic) as consumer:
            assert len(consumer.received(8)) == 8
            for count in range(9, 19):
                producer.send(topic, [Outgoing(b"late-%d" % count)])
                consumer.received(count)
            delays_ms = [one.received_ms - one.born_ms for one in consumer.received(18)[8:]]
    assert len(delays_ms) == 10
    assert max(delays_ms) < 1000


def test_an_orderly_group_locks_its_queues_and_keeps_their_order(site: Site) -> None:
    topic = site.topic("t")
    with (
        site.clients.producer(site.name_server) as producer,
        site.clients.push_consumer(site.name_server, topic, topic, isOrderly=True) as first,
    ):
        producer.send(topic, numbered(80))
        first.rebalance()
        assert len(first.received(80)) == 80
        assert first.assigned() == dict.fromkeys(range(4), True)

        with site.clients.push_consumer(site.name_server, topic, topic, isOrderly=True) as second:
            wait_until(lambda: are_shared_and_locked([first, second], 4))
            producer.send(topic, numbered(40, start=80))
            wait_until(lambda: len(first.received(0)) + len(second.received(0)) >= 120)
            received = [*first.received(0), *second.received(0)]

    assert bodies(received) == bodies(numbered(120))
    assert len(received) == 120
    # How many a queue gets is the producer's choice: a new route has it begin anew with any of them.
    for offsets in by_queue(received).values():
        assert offsets == list(range(len(offsets)))


def are_shared_and_locked(members: Sequence[PushConsumer], queue_count: int) -> bool:
    """The same for an orderly group. Who finds a queue still locked would try again only 20 s later."""
    if are_shared(members, queue_count):
        return all(all(member.assigned().values()) for member in members)
    for member in members:
        member.rebalance()
    return False


def test_every_member_of_a_broadcasting_group_gets_everything(site: Site) -> None:
    topic = site.topic("t")
    messages = numbered(40)
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, messages[:20])
        with (
            site.clients.push_consumer(site.name_server, topic, topic, isBroadcasting=True) as first,
            site.clients.push_consumer(site.name_server, topic, topic, isBroadcasting=True) as second,
        ):
            producer.send(topic, messages[20:])
            for member in (first, second):
                received = member.received(40)
                assert bodies(received) == bodies(messages)
                assert duplicate_count(received) == 0


def test_members_that_come_and_go_are_told_and_no_message_is_missed(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server, topicQueues=8) as producer:
        producer.start_stream(topic)
        producer.wait_for_acknowledged(100)
        with site.clients.push_consumer(site.name_server, topic, topic) as first:
            wait_until(lambda: are_shared([first], 8))
            with site.clients.push_consumer(site.name_server, topic, topic) as second:
                wait_until(lambda: are_shared([first, second], 8), timeout_s=NOTIFIED_S)
                producer.wait_for_acknowledged(100)
                second.leave()
                wait_until(lambda: are_shared([first], 8), timeout_s=NOTIFIED_S)
                producer.wait_for_acknowledged(100)
                streamed = producer.end_stream()
                acknowledged = {body.encode() for body in streamed.acknowledged}
                wait_until(lambda: acknowledged <= bodies([*first.received(0), *second.received(0)]))
                received = [*first.received(0), *second.received(0)]
    assert streamed.failures == 0
    print(f"{duplicate_count(received)} duplicates of {len(acknowledged)} messages")
    # A queue that moves may bring again what its former member had not committed.
    assert duplicate_count(received) < len(acknowledged) / 2


def test_pulls_by_hand_find_what_is_there(site: Site) -> None:
    topic = site.topic("t")
    with (
        site.clients.producer(site.name_server) as producer,
        site.clients.pull_consumer(site.name_server, topic) as consumer,
    ):
        producer.send(topic, numbered(1))
        sent = producer.send(topic, numbered(40, tags=("A", "B")), mode="queue", brokerName=BROKER, queueId=1)
        end = sent[-1].queue_offset + 1

        assert len(consumer.pull(topic, BROKER, 1, 0).messages) == 32
        found = consumer.pull(topic, BROKER, 1, end - 4, count=3)
        assert (found.status, found.next, found.max) == ("FOUND", end - 1, end)
        assert [one.queue_offset for one in found.messages] == [end - 4, end - 3, end - 2]
        tagged = consumer.pull(topic, BROKER, 1, 0, expression="B")
        assert {one.tags for one in tagged.messages} == {"B"}
        assert consumer.pull(topic, BROKER, 1, 0, expression="C").status == "NO_MATCHED_MSG"
        assert consumer.pull(topic, BROKER, 1, end).status == "NO_NEW_MSG"
        beyond = consumer.pull(topic, BROKER, 1, end + 5)
        assert (beyond.status, beyond.next) == ("OFFSET_ILLEGAL", end)
        with pytest.raises(StepFailed) as no_topic:
            consumer.pull(site.topic("none"), BROKER, 0, 0)
        assert no_topic.value.code == TOPIC_NOT_EXIST

        bounds = consumer.bounds(topic, BROKER, 1, time_ms=0)
        assert (bounds["min"], bounds["max"], bounds["atTime"]) == (0, end, 0)
        later_ms = bounds["earliestMs"] + 3_600_000
        assert consumer.bounds(topic, BROKER, 1, time_ms=later_ms)["atTime"] in {end - 1, end}


def test_a_new_group_begins_where_it_says(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    # The beginning of the log is deleted: else every new group begins at the first message of a young topic.
    cleaning: dict[str, object] = {
        "fileReservedTime": 0,
        "deleteWhen": ";".join(map(str, range(24))),
        "cleanResourceInterval": 50,
        "mappedFileSizeCommitLog": 1 << 20,
    }
    hurried: Any = {"rebalanceMs": 500}
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address, name=BROKER, **cleaning),
        clients.producer(address) as producer,
        clients.pull_consumer(address, "looks") as looks,
    ):
        noise = random.Random(6)
        producer.send("T", [Outgoing(noise.randbytes(64 << 10)) for _ in range(40)])

        def kept() -> int:
            bounds = [looks.bounds("T", BROKER, queue_id, time_ms=0) for queue_id in range(4)]
            return sum(one["max"] - one["min"] for one in bounds)

        # A file holds 15 of them, and the last one is not deleted.
        wait_until(lambda: kept() <= 15)
        old = kept()
        second = int(time.time()) + 1
        wait_until(lambda: time.time() >= second)
        producer.send("T", numbered(10))
        since = time.strftime("%Y%m%d%H%M%S", time.localtime(second))
        with (
            clients.push_consumer(address, "first", "T", **hurried) as first,
            clients.push_consumer(address, "last", "T", start=FROM_LAST, **hurried) as last,
            clients.push_consumer(
                address, "time", "T", start=FROM_TIMESTAMP, timestamp=since, **hurried
            ) as from_time,
        ):
            wait_until(lambda: are_shared([last], 4))
            producer.send("T", numbered(10, start=10))
            assert 0 < old < 40
            assert len(first.received(old + 20)) == old + 20
            assert bodies(from_time.received(20)) == bodies(numbered(20))
            assert bodies(last.received(10)) == bodies(numbered(10, start=10))


def test_a_new_group_misses_nothing_of_a_young_topic(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, numbered(10))
    with site.clients.push_consumer(site.name_server, topic, topic, start=FROM_LAST) as consumer:
        assert bodies(consumer.received(10)) == bodies(numbered(10))


def test_offsets_survive_a_restart(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address) as broker,
        clients.producer(address) as producer,
    ):
        producer.send("T", numbered(50))
        with clients.push_consumer(address, "g", "T") as consumer:
            assert len(consumer.received(50)) == 50
        broker.stop()
        broker.restart()
        # The client tries again by itself, but not after a refused connection.
        wait_until(lambda: is_sent(lambda: producer.send("T", numbered(1, start=50))))
        producer.send("T", numbered(49, start=51))
        with clients.push_consumer(address, "g", "T") as consumer:
            received = consumer.received(50)
    assert Counter(one.body for one in received) == Counter(bodies(numbered(50, start=50)))


@pytest.mark.takes(12)
def test_a_group_goes_on_after_a_restart_without_a_loss(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address) as broker,
        clients.producer(address) as producer,
    ):
        producer.start_stream("T")
        producer.wait_for_acknowledged(100)
        # A broker that was restarted does not know what a group wants before its next heartbeat.
        with clients.push_consumer(address, "g", "T", heartbeatMs=500) as consumer:
            consumer.received(50)
            broker.stop()
            broker.restart()
            producer.wait_for_acknowledged(100)
            acknowledged = {body.encode() for body in producer.end_stream().acknowledged}
            wait_until(lambda: acknowledged <= bodies(consumer.received(0)))
            print(f"{duplicate_count(consumer.received(0))} duplicates of {len(acknowledged)} messages")


@pytest.mark.takes(15)
def test_what_was_acknowledged_under_sync_flush_survives_kill_9(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address, flushDiskType="SYNC_FLUSH") as broker,
        clients.producer(address) as producer,
    ):
        producer.start_stream("T")
        for _ in range(2):
            producer.wait_for_acknowledged(150)
            broker.kill()
            broker.restart()
        producer.wait_for_acknowledged(100)
        streamed = producer.end_stream()
        acknowledged = {body.encode() for body in streamed.acknowledged}
        with clients.push_consumer(address, "g", "T") as consumer:
            wait_until(lambda: acknowledged <= bodies(consumer.received(0)))
            received = consumer.received(0)
    assert len(acknowledged) >= 400
    assert duplicate_count(received) == 0
    print(f"{len(acknowledged)} messages acknowledged, {streamed.failures} sends failed")
