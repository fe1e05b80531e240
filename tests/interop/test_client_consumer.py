"""Tanist's consumer with brokers of RocketMQ, and in one group with RocketMQ's own consumers."""

import asyncio
from dataclasses import dataclass

import pytest

from tanist.client import Consumer, MessageQueue, ReceivedMessage, Sql, Start
from tanist.model.topics import dlq_topic
from tests.support.consuming import Handled, are_shared, bodies, in_loop, own_queues, send, take, until
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.stock_client import PushConsumer, StockClients
from tests.support.site import numbered

pytestmark = pytest.mark.partner("java", "maven")

_QUEUES = 4


@dataclass(frozen=True)
class Partner:
    """RocketMQ for the tests of this module, and names that no other test uses."""

    rocketmq: RocketMQ
    topic: str

    @property
    def namesrv(self) -> str:
        return self.rocketmq.name_server

    def make_topic(self, queues: int = _QUEUES) -> None:
        self.rocketmq.mqadmin(
            "updateTopic", "-c", "tanist-tests", "-t", self.topic, "-r", str(queues), "-w", str(queues)
        )

    def consumer(self, **arguments: object) -> Consumer:
        given: dict[str, object] = {
            "group": self.topic,
            "namesrv": self.namesrv,
            "topics": {self.topic: "*"},
            "start": Start.FIRST,
            **arguments,
        }
        return Consumer(**given)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def partner(shared_rocketmq: RocketMQ, request: pytest.FixtureRequest) -> Partner:
    partner = Partner(shared_rocketmq, request.node.originalname[-60:])
    partner.make_topic()
    return partner


def test_all_messages_of_a_rocketmq_broker_come_and_those_acknowledged_do_not_come_again(
    partner: Partner,
) -> None:
    async def scenario() -> None:
        sent = await send(partner.namesrv, 40, topic=partner.topic, tags=("a", "b"))
        async with partner.consumer() as consumer:
            assert sorted(bodies(await take(consumer, 40))) == sorted(sent)
        more = await send(partner.namesrv, 8, topic=partner.topic, start=40, tags=("a", "b"))
        async with partner.consumer() as consumer:
            assert sorted(bodies(await take(consumer, 8))) == sorted(more)
        async with partner.consumer(group=f"{partner.topic}-a", topics={partner.topic: "a"}) as consumer:
            assert len(await take(consumer, 24)) == 24
        topics = {partner.topic: Sql("TAGS = 'b'")}
        async with partner.consumer(group=f"{partner.topic}-b", topics=topics) as consumer:
            assert len(await take(consumer, 24)) == 24

    in_loop(scenario())


def test_a_rocketmq_broker_gives_failed_messages_again_and_then_to_the_dead_letters(
    partner: Partner,
) -> None:
    async def scenario() -> None:
        await send(partner.namesrv, 4, topic=partner.topic)
        tries: list[tuple[bytes, int]] = []

        async def handle(message: ReceivedMessage) -> None:
            tries.append((message.body, message.reconsume_times))
            if message.body == b"1":
                raise RuntimeError("never")

        async with partner.consumer(max_retries=2) as consumer:
            runs = asyncio.create_task(consumer.run(handle))
            await until(lambda: (b"1", 2) in tries)
            dead_queue = MessageQueue(topic=dlq_topic(partner.topic), broker_name="broker-a", queue_id=0)
            async with partner.consumer(group="undertaker") as other:
                while True:
                    dead = await other.pull(dead_queue, 0, timeout_s=10)
                    if dead:
                        break
        await runs
        assert bodies(dead) == [b"1"]
        assert sorted(tries) == [(b"0", 0), (b"1", 0), (b"1", 1), (b"1", 2), (b"2", 0), (b"3", 0)]

    in_loop(scenario())


def test_in_order_members_share_the_queues_of_a_rocketmq_broker(partner: Partner) -> None:
    async def scenario() -> None:
        await send(partner.namesrv, 40, topic=partner.topic)
        first_handled, second_handled = Handled(), Handled()
        async with partner.consumer(orderly=True) as first:
            runs = [asyncio.create_task(first.run(first_handled))]
            await until(lambda: len(first_handled.messages) == 40)
            async with partner.consumer(orderly=True) as second:
                runs.append(asyncio.create_task(second.run(second_handled)))
                await until(lambda: are_shared([first, second], _QUEUES))
                await send(partner.namesrv, 40, topic=partner.topic, start=40)
                # A message that was on its way when its queue changed hands may come to both.
                await until(lambda: len(_places(first_handled) | _places(second_handled)) == 80)
        await asyncio.gather(*runs)
        for handled in (first_handled, second_handled):
            for queue_id in range(_QUEUES):
                offsets = [m.queue_offset for m in handled.messages if m.queue.queue_id == queue_id]
                assert offsets == sorted(offsets)

    in_loop(scenario())


def _places(handled: Handled) -> set[tuple[int, int]]:
    return {(message.queue.queue_id, message.queue_offset) for message in handled.messages}


def test_an_operator_resets_a_group_and_sees_what_its_members_do(partner: Partner) -> None:
    async def scenario() -> None:
        await send(partner.namesrv, 40, topic=partner.topic)
        async with partner.consumer() as consumer:
            handled = Handled()
            runs = asyncio.create_task(consumer.run(handled))
            await until(lambda: len(handled.messages) == 40)
            # The broker refuses unless the group has an offset in every queue.
            await consumer.commit()
            printed = await asyncio.to_thread(
                partner.rocketmq.mqadmin_each,
                ["consumerStatus", "-g", partner.topic, "-i", consumer.client_id],
                ["resetOffsetByTime", "-g", partner.topic, "-t", partner.topic, "-s", "0"],
            )
            assert "PROP_CONSUMER_START_TIMESTAMP" in printed[0]
            assert "#Consumer MQ Detail#" in printed[0]
            # The reset may meet some that are being fetched: those may come once more.
            await until(lambda: len(handled.tries) == 40 and min(handled.tries.values()) >= 2)
        await runs

    in_loop(scenario())


def test_a_reset_that_the_broker_does_itself_reaches_the_members_with_their_next_pull(
    partner: Partner,
) -> None:
    def configure(is_server_side: bool) -> None:
        key, value = "useServerSideResetOffset", str(is_server_side).lower()
        partner.rocketmq.mqadmin("updateBrokerConfig", "-c", "tanist-tests", "-k", key, "-v", value)

    async def scenario() -> None:
        await send(partner.namesrv, 40, topic=partner.topic)
        async with partner.consumer() as consumer:
            handled = Handled()
            runs = asyncio.create_task(consumer.run(handled))
            await until(lambda: len(handled.messages) == 40)
            await consumer.commit()
            reset = ("resetOffsetByTime", "-g", partner.topic, "-t", partner.topic, "-s", "0")
            await asyncio.to_thread(partner.rocketmq.mqadmin, *reset)
            # A pull that waits at the broker hears of it when there is something to answer.
            more = await send(partner.namesrv, 8, topic=partner.topic, start=40)
            await until(lambda: sum(handled.tries.values()) >= 88)
            await until(lambda: set(more) <= set(handled.bodies))
        await runs
        assert {handled.tries[b"%d" % number] for number in range(40)} == {2}

    configure(is_server_side=True)
    try:
        in_loop(scenario())
    finally:
        configure(is_server_side=False)


@pytest.mark.parametrize("cluster", ["tanist", "rocketmq"])
def test_members_in_python_and_java_share_the_queues_without_overlap(
    cluster: str, clients: StockClients, request: pytest.FixtureRequest
) -> None:
    namesrv: str = (
        request.getfixturevalue("name_server")
        if cluster == "tanist"
        else request.getfixturevalue("shared_rocketmq").name_server
    )
    topic = f"mixed-{cluster}-{clients.line.replace('.', '_')}"
    with clients.producer(namesrv, topicQueues=8) as producer:
        producer.send(topic, numbered(64, start=1000))

    async def scenario(java: PushConsumer) -> None:
        async with Consumer(group=topic, namesrv=namesrv, topics={topic: "*"}) as consumer:
            handled = Handled()
            runs = asyncio.create_task(consumer.run(handled))
            # Both are told: nobody waits for a regular rebalance, which comes every 20 s.
            await until_split(consumer, java, 8, timeout_s=15)
            sent = await send(namesrv, 64, topic=topic)
            await until(lambda: len(set(handled.bodies) & set(sent)) == 32)
            theirs = await asyncio.to_thread(java.received, 64 + 32)
            ours = [body for body in handled.bodies if body in sent]
            assert sorted([*ours, *(each.body for each in theirs if each.body in sent)]) == sorted(sent)
        await runs
        await until_has_all(java, 8, timeout_s=15)

    with clients.push_consumer(namesrv, topic, topic) as java:
        assert len(java.received(64)) == 64
        in_loop(scenario(java))


async def until_split(consumer: Consumer, java: PushConsumer, queue_count: int, *, timeout_s: float) -> None:
    """Wait until each of two members has half of the queues, and no queue is both's."""
    async with asyncio.timeout(timeout_s):
        while True:
            ours = {queue.queue_id for queue in own_queues(consumer)}
            theirs = set(await asyncio.to_thread(java.assigned))
            if len(ours) == len(theirs) == queue_count // 2 and ours | theirs == set(range(queue_count)):
                return


async def until_has_all(java: PushConsumer, queue_count: int, *, timeout_s: float) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            if set(await asyncio.to_thread(java.assigned)) == set(range(queue_count)):
                return
