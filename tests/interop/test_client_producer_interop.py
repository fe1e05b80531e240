"""The Python producer with RocketMQ's own broker, and its messages in the hands of Java consumers."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from tanist.client import Message, Producer, Receipt, SendFailed, SendStatus
from tanist.protocol.response_errors import MessageRefused
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.stock_client import Delivery, Outgoing, StockClients
from tests.support.site import wait_until

pytestmark = pytest.mark.partner("java", "maven")

_T = TypeVar("_T")
LATE_MS = 20_000
"""The machine may be slow; too early is what must not be."""


def produce(
    shared_rocketmq: RocketMQ, work: Callable[[Producer], Coroutine[Any, Any, _T]], **options: Any
) -> _T:
    """Do something with a producer. Its waits are long, because the machine may be busy."""

    arguments: dict[str, Any] = {"group": "python", "timeout_s": 30, **options}

    async def scenario() -> _T:
        async with Producer(namesrv=shared_rocketmq.name_server, **arguments) as producer:
            return await work(producer)

    return asyncio.run(scenario())


def consume(
    clients: StockClients, shared_rocketmq: RocketMQ, topic: str, count: int, **options: Any
) -> list[Delivery]:
    group = f"{topic}-{clients.line.replace('.', '_')}"
    with clients.push_consumer(shared_rocketmq.name_server, group, topic, **options) as consumer:
        return consumer.received(count)


def test_java_consumers_get_all_that_a_message_says(shared_rocketmq: RocketMQ, clients: StockClients) -> None:
    topic = f"Whole-{clients.line.replace('.', '_')}"
    message = Message(
        topic,
        "bezahlt: 3 €".encode(),
        tags="paid",
        keys=["o-17", "c-3"],
        properties={"shop": "Köln", "empty-ish": " "},
        flag=5,
    )

    async def send(producer: Producer) -> Receipt:
        await producer.send(Message(topic, b"other", tags="refunded"))
        return await producer.send(message)

    receipt = produce(shared_rocketmq, send)
    (delivery,) = consume(clients, shared_rocketmq, topic, 1, expression="paid")
    assert receipt.status is SendStatus.OK
    assert delivery.body == message.body
    assert (delivery.tags, delivery.keys, delivery.flag) == ("paid", "o-17 c-3", 5)
    assert delivery.message_id == receipt.message_id
    assert delivery.place == (receipt.queue.queue_id, receipt.queue_offset)
    assert delivery.properties["shop"] == "Köln"


def test_java_consumers_get_the_messages_of_a_batch_with_ids_of_their_own(
    shared_rocketmq: RocketMQ, clients: StockClients
) -> None:
    topic = f"Batch-{clients.line.replace('.', '_')}"
    messages = [Message(topic, b"%d" % number, keys=[f"k{number}"], tags="t") for number in range(20)]
    receipt = produce(shared_rocketmq, lambda producer: producer.send_batch(messages))
    deliveries = sorted(consume(clients, shared_rocketmq, topic, 20), key=lambda one: one.queue_offset)
    assert [one.body for one in deliveries] == [message.body for message in messages]
    assert {one.queue_id for one in deliveries} == {receipt.queue.queue_id}
    assert ",".join(one.message_id for one in deliveries) == receipt.message_id
    assert [one.keys for one in deliveries] == [f"k{number}" for number in range(20)]


@pytest.mark.parametrize("compression", ["zlib", "lz4", "zstd"])
def test_java_consumers_read_compressed_bodies(
    shared_rocketmq: RocketMQ, clients: StockClients, compression: str
) -> None:
    topic = f"Compressed-{compression}-{clients.line.replace('.', '_')}"
    body = os.urandom(1000) * 20
    produce(shared_rocketmq, lambda producer: producer.send(Message(topic, body)), compression=compression)
    (delivery,) = consume(clients, shared_rocketmq, topic, 1)
    assert delivery.body == body


def test_an_orderly_java_consumer_gets_the_messages_of_a_key_in_order(
    shared_rocketmq: RocketMQ, clients: StockClients
) -> None:
    topic = f"Ordered-{clients.line.replace('.', '_')}"

    async def send(producer: Producer) -> None:
        await producer.send(Message(topic, b"0/first", sharding_key="first"))
        await asyncio.gather(
            *(
                producer.send(
                    Message(topic, b"%d/o-%d" % (number, number % 7), sharding_key=f"o-{number % 7}")
                )
                for number in range(210)
            )
        )

    produce(shared_rocketmq, send)
    order: dict[bytes, list[int]] = defaultdict(list)
    queues: dict[bytes, set[int]] = defaultdict(set)
    for delivery in consume(clients, shared_rocketmq, topic, 211, isOrderly=True):
        number, _, key = delivery.body.partition(b"/")
        order[key].append(int(number))
        queues[key].add(delivery.queue_id)
        assert delivery.properties["__SHARDINGKEY"] == key.decode()
    assert len(order) == 8
    assert all(numbers == sorted(numbers) for numbers in order.values())
    assert all(len(of_key) == 1 for of_key in queues.values())


def test_delayed_messages_come_when_they_are_due(rocketmq: RocketMQ, clients: StockClients) -> None:
    timers = {"timerWheelEnable": "true", "timerPrecisionMs": 100}
    rocketmq.start_broker(properties={**timers, "messageDelayLevel": "1s 2s 3s"})
    topic = f"Late-{clients.line.replace('.', '_')}"
    with clients.producer(rocketmq.name_server) as java:
        java.send(topic, [Outgoing(b"first")])
    with clients.push_consumer(rocketmq.name_server, topic, topic) as consumer:
        consumer.received(1)
        due = datetime.now(UTC) + timedelta(seconds=3)

        async def send(producer: Producer) -> None:
            await producer.send(Message(topic, b"level", delay_level=2))
            await producer.send(Message(topic, b"delay", delay_s=1.5))
            await producer.send(Message(topic, b"time", deliver_at=due))

        produce(rocketmq, send)
        received = {one.body: one for one in consumer.received(4)}
    least_ms = {b"level": 2000, b"delay": 1500}
    for body, wait_ms in least_ms.items():
        waited_ms = received[body].received_ms - received[body].born_ms
        assert wait_ms - 200 <= waited_ms < wait_ms + LATE_MS
    assert -200 <= received[b"time"].received_ms - due.timestamp() * 1000 < LATE_MS


def test_a_key_goes_to_the_queue_that_java_would_choose(
    shared_rocketmq: RocketMQ, clients: StockClients
) -> None:
    topic = f"Same-{clients.line.replace('.', '_')}"

    async def send(producer: Producer) -> list[Receipt]:
        await producer.send(Message(topic, b"x"))
        return [await producer.send(Message(topic, b"x", sharding_key="hello"))]

    (receipt,) = produce(shared_rocketmq, send)
    # Java's hashCode of "hello" is 99162322, and a topic that a send makes has four queues.
    assert receipt.queue.queue_id == 99162322 % 4


@pytest.mark.takes(20)
def test_one_way_messages_arrive(shared_rocketmq: RocketMQ, clients: StockClients) -> None:
    topic = f"OneWay-{clients.line.replace('.', '_')}"

    async def send(producer: Producer) -> None:
        for number in range(100):
            await producer.send_oneway(Message(topic, b"%d" % number))
        await producer.send(Message(topic, b"last"))

    produce(shared_rocketmq, send)
    # A one-way message may be lost while its topic is made; it is not after that.
    received = {one.body for one in consume(clients, shared_rocketmq, topic, 101)}
    assert received == {b"last", *(b"%d" % number for number in range(100))}


def test_a_broker_of_rocketmq_knows_the_producer_until_it_leaves(shared_rocketmq: RocketMQ) -> None:
    def connections() -> str:
        return shared_rocketmq.mqadmin("producerConnection", "-g", "python-member", "-t", "Member")

    async def send(producer: Producer) -> str:
        await producer.send(Message("Member", b"x"))
        seen = ""
        while "PYTHON" not in seen:
            seen = await asyncio.to_thread(connections)
        return seen

    assert "@one" in produce(shared_rocketmq, send, group="python-member", instance="one")
    wait_until(lambda: "PYTHON" not in connections())


def test_refusals_of_rocketmq_are_told(shared_rocketmq: RocketMQ) -> None:
    async def send(producer: Producer) -> None:
        await producer.send(Message("Refusals", b"x"))
        with pytest.raises(MessageRefused):
            await producer.send(Message("Refusals", os.urandom(5 << 20)))
        with pytest.raises(SendFailed):
            await producer.send(Message("SCHEDULE_TOPIC_XXXX", b"x"), timeout_s=3)

    produce(shared_rocketmq, send, max_message_bytes=8 << 20)


def test_ten_thousand_sends_at_once_are_all_stored_once(shared_rocketmq: RocketMQ) -> None:
    async def send(producer: Producer) -> list[Receipt]:
        await producer.send(Message("Many", b"x"))
        return await asyncio.gather(*(producer.send(Message("Many", b"%d" % n)) for n in range(10_000)))

    receipts = produce(shared_rocketmq, send)
    assert len({(receipt.queue, receipt.queue_offset) for receipt in receipts}) == 10_000
