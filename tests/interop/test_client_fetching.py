"""What a consumer fetches from Apache RocketMQ's brokers, and asks of them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.pulling.fetched import Outcome
from tanist.model.route import MASTER_ID, MessageQueue
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.model.topics import retry_topic
from tanist.protocol.codes import ResponseCode
from tanist.protocol.response_errors import BadSubscription, SubscriptionUnknown
from tests.support.conditions import turns
from tests.support.received import at
from tests.support.requests import GROUP, pull_request
from tests.support.rocketmq import RocketMQ, body_of
from tests.support.sessions import Reader, bodies, open_session
from tests.support.site import BROKER

pytestmark = pytest.mark.partner("java", "maven")

COMPRESSED_BYTES = 6000
"""More than what RocketMQ's producers leave as it is."""


def read(partner: RocketMQ, topic: str, scenario: Callable[[Reader], Awaitable[None]]) -> None:
    async def run() -> None:
        everything = subscribe(topic, "*", sub_version=1)
        async with open_session(partner.name_server, everything) as session:
            await scenario(Reader(session, topic, BROKER))

    asyncio.run(run())


def test_what_a_java_producer_compressed_comes_as_it_was_with_its_id_tag_and_key(
    shared_rocketmq: RocketMQ,
) -> None:
    sent = shared_rocketmq.produce(
        "Compressed", count=5, body_bytes=COMPRESSED_BYTES, tags=("a", "b"), key_prefix="key-"
    )

    async def scenario(reader: Reader) -> None:
        fetched = await reader.fetch(0)
        assert (fetched.outcome, fetched.next_offset) == (Outcome.FOUND, 5)
        assert bodies(fetched) == [body_of(number, COMPRESSED_BYTES) for number in range(5)]
        assert max(message.stored_bytes for message in fetched.messages) < COMPRESSED_BYTES
        for number, (message, receipt) in enumerate(zip(fetched.messages, sent, strict=True)):
            assert (message.message_id, message.offset_id) == (receipt.message_id, receipt.offset_message_id)
            assert (message.tags, message.keys) == ("ab"[number % 2], [f"key-{number}"])
            assert (message.queue_offset, message.topic) == (number, "Compressed")

    read(shared_rocketmq, "Compressed", scenario)


def test_tags_choose_messages_and_those_with_the_same_hash_are_passed_over(shared_rocketmq: RocketMQ) -> None:
    shared_rocketmq.produce("Tagged", count=6, tags=("Aa", "BB", "C"))

    async def scenario(reader: Reader) -> None:
        fetched = await reader.fetch(0, subscribe("Tagged", "BB", sub_version=0))
        assert [message.tags for message in fetched.messages] == ["BB", "BB"]
        assert fetched.next_offset >= 5
        nothing = await reader.fetch(0, subscribe("Tagged", "D", sub_version=0))
        assert (nothing.outcome, nothing.next_offset) == (Outcome.RETRY, 6)

    read(shared_rocketmq, "Tagged", scenario)


def test_sql_chooses_messages_by_hand(shared_rocketmq: RocketMQ) -> None:
    shared_rocketmq.produce("BySql", count=1)

    async def scenario(reader: Reader) -> None:
        await reader.send(b"cheap", properties="price\0012\2")
        await reader.send(b"dear", properties="price\0019\2")
        by_sql = SubscriptionData(topic="BySql", expression="price > 3", expression_type=SQL92)
        fetched = await reader.fetch(0, by_sql)
        assert (bodies(fetched), fetched.next_offset) == ([b"dear"], 3)

    read(shared_rocketmq, "BySql", scenario)


def test_rocketmq_takes_a_wrong_expression_for_everything_unless_it_is_asked_to_check_it(
    shared_rocketmq: RocketMQ,
) -> None:
    shared_rocketmq.produce("WrongSql", count=3)

    async def scenario(reader: Reader) -> None:
        wrong = SubscriptionData(topic="WrongSql", expression="price >", expression_type=SQL92)
        assert len((await reader.fetch(0, wrong)).messages) == 3
        with pytest.raises(BadSubscription):
            await BrokerCalls(reader.session, GROUP).check_subscription(wrong)

    read(shared_rocketmq, "WrongSql", scenario)


def test_an_offset_that_the_queue_does_not_have_is_moved_and_its_end_waits_for_what_comes(
    shared_rocketmq: RocketMQ,
) -> None:
    shared_rocketmq.produce("Moved", count=3)

    async def scenario(reader: Reader) -> None:
        moved = await reader.fetch(500)
        assert (moved.outcome, moved.next_offset) == (Outcome.MOVED, 3)
        assert (await reader.fetch(3)).outcome is Outcome.NOTHING
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(reader.fetch(3, suspend_s=15))
            await turns()
            await reader.send(b"new")
        assert bodies(waiting.result()) == [b"new"]

    read(shared_rocketmq, "Moved", scenario)


def test_a_subscription_of_a_heartbeat_serves_and_without_one_the_broker_says_so(
    shared_rocketmq: RocketMQ,
) -> None:
    shared_rocketmq.produce("Subscribed", count=2)

    async def scenario(reader: Reader) -> None:
        await reader.session.routes.find("Subscribed")
        with pytest.raises(SubscriptionUnknown):
            await reader.fetch(0, is_by_hand=False)
        await reader.session.heartbeats.beat()
        fetched = await reader.fetch(0, is_by_hand=False, consumer_offset=at(1))
        assert len(fetched.messages) == 2
        assert await BrokerCalls(reader.session, GROUP).query_offset(reader.queue) == 1

    read(shared_rocketmq, "Subscribed", scenario)


def test_rocketmq_answers_all_that_a_consumer_asks(shared_rocketmq: RocketMQ) -> None:
    shared_rocketmq.produce("Asked", count=4)

    async def scenario(reader: Reader) -> None:
        calls, queue = BrokerCalls(reader.session, GROUP), reader.queue
        assert await calls.members("Asked") == []
        await reader.session.heartbeats.beat()
        assert await calls.members("Asked") == [reader.session.client_id]
        assert (await calls.min_offset(queue), await calls.max_offset(queue)) == (0, 4)
        stored_ms = (await reader.fetch(0)).messages[0].store_timestamp_ms
        assert await calls.offset_at(queue, stored_ms) == 0
        assert await calls.offset_at(queue, stored_ms + 3_600_000) == 4
        await calls.commit_offset(queue, at(3))
        assert await calls.query_offset(queue) == 3
        assert await calls.lock(BROKER, [queue]) == {queue}
        async with open_session(shared_rocketmq.name_server) as rival:
            assert await BrokerCalls(rival, GROUP).lock(BROKER, [queue]) == frozenset()
        await calls.unlock(BROKER, [queue])
        by_sql = SubscriptionData(topic="Asked", expression="a > 3", expression_type=SQL92)
        await calls.check_subscription(by_sql)

    read(shared_rocketmq, "Asked", scenario)


def test_a_message_that_is_sent_back_comes_again(shared_rocketmq: RocketMQ) -> None:
    shared_rocketmq.produce("SentBack", count=1)

    async def scenario(reader: Reader) -> None:
        calls = BrokerCalls(reader.session, GROUP)
        await reader.session.routes.find("SentBack")
        await reader.session.heartbeats.beat()
        message = (await reader.fetch(0)).messages[0]
        await calls.send_back(message, delay_level=1, max_retries=16)
        retries = MessageQueue(topic=retry_topic(GROUP), broker_name=BROKER, queue_id=0)
        reader.queue = retries
        again = (await reader.fetch(0, suspend_s=30)).messages[0]
        assert (again.topic, again.body, again.reconsume_times) == ("SentBack", message.body, 1)
        assert again.message_id == message.message_id

    read(shared_rocketmq, "SentBack", scenario)


@pytest.mark.takes(60)
def test_a_slave_of_rocketmq_is_read_while_its_master_is_dead_and_the_master_when_it_is_back(
    rocketmq: RocketMQ,
) -> None:
    readable = {"slaveReadEnable": "true"}
    master = rocketmq.start_broker(properties={**readable, "brokerRole": "ASYNC_MASTER"})
    slave = rocketmq.start_broker(properties={**readable, "brokerRole": "SLAVE", "brokerId": 1})
    rocketmq.produce("Survives", count=10)

    async def scenario(reader: Reader) -> None:
        routes, wire = reader.session.routes, reader.session.wire

        async def has_all() -> bool:
            """Whether the slave has the topic, which it hears of some time after it has the messages."""
            answer = await wire.exchange(slave.address, pull_request(9, topic="Survives"), timeout_s=10)
            return answer.code == ResponseCode.SUCCESS

        async def has_master() -> bool:
            return MASTER_ID in (await routes.ask("Survives")).replicas[BROKER]

        await until(has_all)
        assert (await reader.fetch(0, max_count=3)).broker_id == 0
        master.kill()
        on_slave = await reader.fetch(3, max_count=3)
        assert (on_slave.broker_id, on_slave.next_offset) == (1, 6)
        rocketmq.start_broker(
            store_dir=master.store_dir,
            properties={**readable, "brokerRole": "ASYNC_MASTER", "listenPort": master.port},
        )
        await until(has_master)

        async def is_read_from_master() -> bool:
            """Not at once: who was lost rests for a second."""
            back = await reader.fetch(6)
            assert back.next_offset == 10
            return back.broker_id == 0

        await until(is_read_from_master)

    read(rocketmq, "Survives", scenario)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it is so."""
    async with asyncio.timeout(90):
        while not await is_so():  # noqa: ASYNC110  What another process does is known only by asking.
            await asyncio.sleep(0.1)
