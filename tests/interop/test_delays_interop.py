"""Delayed messages of stock clients of both lines, which come when they would come at a RocketMQ broker."""

import time
from pathlib import Path

import pytest

from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Delivery, Outgoing, PushConsumer, StockClients
from tests.support.site import Site, duplicate_count, is_sent, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

MESSAGE_ILLEGAL = 13
FIRST = b"first"
LEVELS_S = (1, 1, 1, 2, 2, 2, 3, 3, 3, 1, 1, 1, 2, 2, 2, 3, 3, 4)
# The client's clock stamps a message before it is sent, and the machine may be slow.
LATE_MS = 20_000


def timed(body: bytes, **properties: str) -> Outgoing:
    return Outgoing(body, system_properties=properties)


def subscribed(clients: StockClients, name_server: str, topic: str) -> PushConsumer:
    """A consumer of a topic that is there already: else it would look for it only every 20 s."""
    with clients.producer(name_server) as producer:
        producer.send(topic, [Outgoing(FIRST)])
    consumer = clients.push_consumer(name_server, topic, topic)
    consumer.received(1)
    return consumer


def received_later(consumer: PushConsumer, count: int) -> list[Delivery]:
    return [one for one in consumer.received(count + 1) if one.body != FIRST]


def waited_ms(delivery: Delivery) -> int:
    return delivery.received_ms - delivery.born_ms


def test_messages_of_all_18_levels_come_when_they_are_due(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    levels = " ".join(f"{seconds}s" for seconds in LEVELS_S)
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address, messageDelayLevel=levels),
        clients.producer(address) as producer,
        subscribed(clients, address, "T") as consumer,
    ):
        outgoing = [
            Outgoing(b"%d" % level, tags="late", keys=f"key-{level}", delay_level=level)
            for level in range(1, 19)
        ]
        # Past the last level is the last, and no level is none.
        outgoing += [Outgoing(b"99", delay_level=99), Outgoing(b"0", properties={"colour": "blue"})]
        sent = producer.send("T", outgoing)
        received = received_later(consumer, 20)

    assert [one.status for one in sent] == ["SEND_OK"] * 20
    by_body = {int(one.body): one for one in received}
    assert sorted(by_body) == [0, *range(1, 19), 99]
    assert duplicate_count(received) == 0
    for level, seconds in (*enumerate(LEVELS_S, 1), (99, LEVELS_S[-1])):
        assert 1000 * seconds <= waited_ms(by_body[level]) < 1000 * seconds + LATE_MS, level
    assert {(by_body[n].tags, by_body[n].keys) for n in (1, 18)} == {("late", "key-1"), ("late", "key-18")}
    # Whoever sends learns the queue in which the message comes.
    assert [by_body[n].queue_id for n in range(1, 19)] == [one.queue_id for one in sent[:18]]
    assert [by_body[n].message_id for n in range(1, 19)] == [one.message_id for one in sent[:18]]


def test_timer_messages_come_at_their_time_and_not_before(site: Site) -> None:
    topic = site.topic("t")
    with (
        site.clients.producer(site.name_server) as producer,
        subscribed(site.clients, site.name_server, topic) as consumer,
    ):
        deliver_ms = int(time.time() * 1000) + 3_000
        sent = producer.send(
            topic,
            [
                timed(b"seconds", TIMER_DELAY_SEC="2"),
                timed(b"milliseconds", TIMER_DELAY_MS="1500"),
                timed(b"at", TIMER_DELIVER_MS=str(deliver_ms)),
                timed(b"past", TIMER_DELIVER_MS="1"),
                Outgoing(b"both", delay_level=1, system_properties={"TIMER_DELAY_SEC": "3600"}),
            ],
        )
        received = {one.body: one for one in received_later(consumer, 5)}
        with pytest.raises(StepFailed) as too_far:
            producer.send(topic, [timed(b"far", TIMER_DELAY_SEC=str(3 * 86_400 + 60))])
        with pytest.raises(StepFailed) as no_number:
            producer.send(topic, [timed(b"bad", TIMER_DELAY_SEC="soon")])

    assert [one.status for one in sent] == ["SEND_OK"] * 5
    assert set(received) == {b"seconds", b"milliseconds", b"at", b"past", b"both"}
    for body, least_ms in ((b"seconds", 2_000), (b"milliseconds", 1_500), (b"both", 1_000)):
        assert least_ms <= waited_ms(received[body]) < least_ms + LATE_MS
    assert deliver_ms <= received[b"at"].received_ms < deliver_ms + LATE_MS
    assert (too_far.value.code, no_number.value.code) == (MESSAGE_ILLEGAL, MESSAGE_ILLEGAL)


@pytest.mark.takes(35)
def test_delayed_messages_survive_kill_9_and_a_change_of_the_levels(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address, messageDelayLevel="1s 30m 2s") as broker,
        clients.producer(address) as producer,
    ):
        producer.send("T", [Outgoing(b"level-%d" % n, delay_level=1 + 2 * (n % 2)) for n in range(10)])
        producer.send("T", [timed(b"timer-%d" % n, TIMER_DELAY_SEC="2") for n in range(10)])
        producer.send("T", [Outgoing(b"half an hour", delay_level=2)])
        broker.kill()
        # Level 2 is a second now, so what waits there is due; level 3 is gone, but not what waits there.
        broker.restart(messageDelayLevel="1s 1s")
        with clients.push_consumer(address, "g", "T", heartbeatMs=500) as consumer:
            first = consumer.received(21)
            broker.kill()
            broker.restart()
            wait_until(lambda: is_sent(lambda: producer.send("T", [Outgoing(b"last", delay_level=1)])))
            wait_until(lambda: b"last" in {one.body for one in consumer.received(0)})
            received = consumer.received(0)

    expected = {b"half an hour", *(b"%s-%d" % (kind, n) for kind in (b"level", b"timer") for n in range(10))}
    assert {one.body for one in first} == expected
    assert {one.body for one in received} == expected | {b"last"}
    # What the broker holds of each is one message, however often a client got it.
    places = {one.body: {other.place for other in received if other.body == one.body} for one in first}
    assert {len(found) for found in places.values()} == {1}
