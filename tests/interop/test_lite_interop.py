"""DefaultLitePullConsumer of both lines polls, moves, pauses, commits and shares queues at Tanist."""

import time

import pytest

from tests.support.rocketmq.stock_client import LiteConsumer
from tests.support.site import BROKER, Site, bodies, by_queue, duplicate_count, numbered, wait_until

pytestmark = pytest.mark.partner("java", "maven")

QUEUES = 4


def test_a_lite_consumer_polls_seeks_and_commits(site: Site) -> None:
    topic, group = site.topic("t"), site.topic("g")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, numbered(20), mode="queue", brokerName=BROKER, queueId=0)
        producer.send(topic, numbered(40, start=20))
    with site.clients.lite_consumer(site.name_server, site.topic("all"), topic) as consumer:
        assert bodies(consumer.poll(60)) == bodies(numbered(60))
    with site.clients.lite_consumer(
        site.name_server, group, topic, brokerName=BROKER, queueIds=[0]
    ) as consumer:
        assert [one.queue_offset for one in consumer.poll(30)] == list(range(30))
        consumer.seek(topic, BROKER, 0, 25)
        assert [one.queue_offset for one in consumer.poll(5)] == list(range(25, 30))
        consumer.seek(topic, BROKER, 0, 3)
        assert [one.queue_offset for one in consumer.poll(27)] == list(range(3, 30))
        consumer.seek(topic, BROKER, 0, 28)
        assert [one.queue_offset for one in consumer.poll(2)] == [28, 29]
        consumer.commit(topic, BROKER, 0)
        assert consumer.committed(topic, BROKER, 0) == 30


def test_a_lite_consumer_goes_to_the_ends_of_a_queue_and_to_a_time(site: Site) -> None:
    topic = site.topic("t")
    place = (topic, BROKER, 0)
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, numbered(5), mode="queue", brokerName=BROKER, queueId=0)
        split_ms = int(time.time() * 1000) + 1
        wait_until(lambda: time.time() * 1000 >= split_ms)
        producer.send(topic, numbered(5, start=5), mode="queue", brokerName=BROKER, queueId=0)
        with site.clients.lite_consumer(
            site.name_server, topic, topic, brokerName=BROKER, queueIds=[0]
        ) as consumer:
            assert len(consumer.poll(10)) == 10
            assert consumer.offset_for_time(*place, time_ms=split_ms) == 5
            consumer.seek_to_begin(*place)
            assert [one.queue_offset for one in consumer.poll(10)] == list(range(10))
            consumer.seek(*place, 2)
            consumer.seek_to_end(*place)
            producer.send(topic, numbered(1, start=10), mode="queue", brokerName=BROKER, queueId=0)
            assert [one.queue_offset for one in consumer.poll(1)] == [10]


def test_a_paused_queue_waits_while_another_goes_on(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:

        def send(body: int, queue_id: int) -> None:
            producer.send(topic, numbered(1, start=body), mode="queue", brokerName=BROKER, queueId=queue_id)

        send(0, 0)
        with site.clients.lite_consumer(
            site.name_server, topic, topic, brokerName=BROKER, queueIds=[0, 1]
        ) as consumer:
            assert bodies(consumer.poll(1)) == {b"number-0"}
            consumer.pause(topic, BROKER, 0)
            send(
                1, 0
            )  # A pull that waits may be given this one yet, before what comes later in another queue.
            send(2, 1)
            polled = _poll_until(consumer, b"number-2")
            send(3, 0)
            send(4, 1)
            polled |= _poll_until(consumer, b"number-4")
            assert b"number-3" not in polled
            consumer.resume(topic, BROKER, 0)
            polled |= _poll_until(consumer, b"number-3")
    assert polled == {b"number-%d" % number for number in range(1, 5)}


def test_a_lite_consumer_that_commits_by_itself_leaves_its_place_to_the_next(site: Site) -> None:
    topic = site.topic("t")
    place = (topic, BROKER, 0)
    on_queue = {"brokerName": BROKER, "queueIds": [0]}
    alone, told = site.topic("alone"), site.topic("told")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, numbered(20), mode="queue", brokerName=BROKER, queueId=0)
    with (
        site.clients.lite_consumer(
            site.name_server, alone, topic, isAutoCommitting=True, **on_queue
        ) as by_itself,
        site.clients.lite_consumer(site.name_server, told, topic, **on_queue) as when_told,
    ):
        assert len(by_itself.poll(20)) == len(when_told.poll(20)) == 20

        def is_committed() -> bool:
            assert by_itself.poll(1, timeout_ms=1) == when_told.poll(1, timeout_ms=1) == []
            return by_itself.committed(*place) == 20

        wait_until(is_committed)
    with (
        site.clients.lite_consumer(site.name_server, alone, topic, **on_queue) as after_it,
        site.clients.lite_consumer(site.name_server, told, topic, **on_queue) as after_other,
    ):
        assert after_it.committed(*place) == 20
        assert len(after_other.poll(20)) == 20


def test_two_lite_consumers_share_the_queues_until_one_leaves(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server, topicQueues=QUEUES) as producer:
        for queue_id in range(QUEUES):
            messages = numbered(5, start=queue_id * 5)
            producer.send(topic, messages, mode="queue", brokerName=BROKER, queueId=queue_id)
    with site.clients.lite_consumer(site.name_server, topic, topic) as stays:
        with site.clients.lite_consumer(site.name_server, topic, topic) as leaves:
            members = (stays, leaves)
            wait_until(lambda: sorted(stays.assigned() + leaves.assigned()) == list(range(QUEUES)))
            polled = [member.poll(10) for member in members]
            for member, got in zip(members, polled, strict=True):
                assert sorted(by_queue(got)) == member.assigned()
                assert duplicate_count(got) == 0
            assert bodies(polled[0]) | bodies(polled[1]) == bodies(numbered(5 * QUEUES))
        wait_until(lambda: stays.assigned() == list(range(QUEUES)))


def _poll_until(consumer: LiteConsumer, body: bytes) -> set[bytes]:
    """All that is polled until this one comes."""
    polled = set[bytes]()
    while body not in polled:
        polled |= bodies(consumer.poll(1))
    return polled
