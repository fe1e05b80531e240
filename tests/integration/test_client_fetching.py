"""Fetching from a Tanist broker."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable

import pytest

from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.pulling.fetched import Outcome
from tanist.model.route import MessageQueue
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.protocol.response_errors import (
    BadSubscription,
    InvalidParameter,
    SubscriptionOutdated,
    SubscriptionUnknown,
    TopicNotFound,
)
from tanist.testing import EmbeddedBroker
from tests.support.conditions import turns
from tests.support.received import at
from tests.support.requests import GROUP
from tests.support.sessions import Reader, bodies, open_session

TOPIC = "OrderTopic"
EVERYTHING = subscribe(TOPIC, "*", sub_version=1)


def read(scenario: Callable[[Reader], Awaitable[None]], **settings: str) -> None:
    async def run() -> None:
        async with (
            EmbeddedBroker(topics={TOPIC: 1}, settings=settings) as broker,
            open_session(broker.namesrv, EVERYTHING) as session,
        ):
            await scenario(Reader(session, TOPIC, broker.broker_name))

    asyncio.run(run())


def test_messages_are_fetched_in_order_and_no_more_than_wanted() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.send(b"a", b"b", b"c")
        first = await reader.fetch(0, max_count=2)
        assert (first.outcome, bodies(first), first.next_offset) == (Outcome.FOUND, [b"a", b"b"], 2)
        second = await reader.fetch(first.next_offset)
        assert (bodies(second), second.next_offset) == ([b"c"], 3)
        assert (second.min_offset, second.max_offset) == (0, 3)

    read(scenario)


def test_a_fetch_at_the_end_of_a_queue_finds_nothing_or_waits_for_what_comes() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.send(b"a")
        nothing = await reader.fetch(1)
        assert (nothing.outcome, nothing.next_offset) == (Outcome.NOTHING, 1)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(reader.fetch(1, suspend_s=15))
            await turns()
            # Behind the fetch, on the same connection.
            await reader.send(b"b")
        assert bodies(waiting.result()) == [b"b"]
        expired = await reader.fetch(2, suspend_s=0.05)
        assert (expired.outcome, expired.next_offset) == (Outcome.NOTHING, 2)

    read(scenario)


def test_an_offset_that_the_queue_does_not_have_is_moved() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.send(b"a", b"b")
        moved = await reader.fetch(50)
        assert (moved.outcome, moved.next_offset, moved.messages) == (Outcome.MOVED, 2, [])

    read(scenario)


def test_tags_choose_messages_and_those_with_the_same_hash_are_passed_over() -> None:
    async def scenario(reader: Reader) -> None:
        # "Aa" and "BB" have the same hash in Java: the broker takes the one for the other.
        await reader.send(b"1", properties="TAGS\1Aa\2")
        await reader.send(b"2", properties="TAGS\1BB\2")
        await reader.send(b"3", properties="TAGS\1C\2")
        fetched = await reader.fetch(0, subscribe(TOPIC, "BB", sub_version=0))
        assert bodies(fetched) == [b"2"]
        none = await reader.fetch(0, subscribe(TOPIC, "D", sub_version=0))
        assert (none.outcome, none.next_offset) == (Outcome.RETRY, 3)

    read(scenario)


def test_sql_chooses_messages_by_hand() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.send(b"cheap", properties="price\0012\2")
        await reader.send(b"dear", properties="price\0019\2")
        by_sql = SubscriptionData(topic=TOPIC, expression="price > 3", expression_type=SQL92)
        assert bodies(await reader.fetch(0, by_sql)) == [b"dear"]
        wrong = SubscriptionData(topic=TOPIC, expression="price >", expression_type=SQL92)
        with pytest.raises(BadSubscription):
            await reader.fetch(0, wrong)

    read(scenario, enablePropertyFilter="true")


def test_compressed_bodies_come_as_they_were() -> None:
    async def scenario(reader: Reader) -> None:
        plain = b"again and " * 2000
        await reader.send(zlib.compress(plain), sys_flag=0x301)
        assert bodies(await reader.fetch(0)) == [plain]

    read(scenario)


def test_a_fetch_commits_on_its_way_if_it_is_told_to() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.send(b"a", b"b", b"c")
        calls = BrokerCalls(reader.session, GROUP)
        await reader.fetch(2, consumer_offset=at(2))
        assert await calls.query_offset(reader.queue) == 2
        await reader.fetch(0)
        assert await calls.query_offset(reader.queue) == 2

    read(scenario)


def test_without_a_subscription_of_its_own_a_fetch_needs_that_of_a_heartbeat_as_new_as_it() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.send(b"a")
        with pytest.raises(SubscriptionUnknown):
            await reader.fetch(0, is_by_hand=False)
        await reader.session.heartbeats.beat()
        assert bodies(await reader.fetch(0, is_by_hand=False)) == [b"a"]
        with pytest.raises(SubscriptionOutdated):
            await reader.fetch(0, subscribe(TOPIC, "*", sub_version=2), is_by_hand=False)

    read(scenario)


def test_a_topic_and_a_queue_that_do_not_exist_are_told() -> None:
    async def scenario(reader: Reader) -> None:
        await reader.send(b"a")
        broker = reader.queue.broker_name
        reader.queue = MessageQueue(topic=TOPIC, broker_name=broker, queue_id=7)
        with pytest.raises(InvalidParameter, match="queue 7"):
            await reader.fetch(0)
        reader.queue = MessageQueue(topic="NoSuchTopic", broker_name=broker, queue_id=0)
        with pytest.raises(TopicNotFound):
            await reader.fetch(0)

    read(scenario)
