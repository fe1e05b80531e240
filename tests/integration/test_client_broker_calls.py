"""What a consumer asks of brokers, asked of a Tanist broker."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.errors import NoRoute
from tanist.client.pulling.fetching import Fetcher
from tanist.client.received import ReceivedMessage
from tanist.client.session.session import Session
from tanist.errors import ConnectFailed
from tanist.model.integers import INT32_MAX
from tanist.model.property_names import ORIGIN_MESSAGE_ID
from tanist.model.route import MessageQueue
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.model.topics import dlq_topic, retry_topic
from tanist.protocol.response_errors import BadSubscription, BrokerFailed, GroupNotFound, TopicNotFound
from tanist.testing import EmbeddedBroker
from tests.support.received import at
from tests.support.remoting import in_time
from tests.support.requests import GROUP
from tests.support.sessions import open_session, send

TOPIC = "OrderTopic"
SUBSCRIPTION = subscribe(TOPIC, "*", sub_version=1)


class Member:
    """A member of the group, and the queue it asks about."""

    def __init__(self, session: Session, broker_name: str) -> None:
        self.session = session
        self.calls = BrokerCalls(session, GROUP)
        self.queue = MessageQueue(topic=TOPIC, broker_name=broker_name, queue_id=0)

    async def send(self, count: int) -> None:
        await send(self.session, self.queue, [b"number %d" % number for number in range(count)])

    async def first(self, queue: MessageQueue | None = None) -> ReceivedMessage:
        queue = queue or self.queue
        subscription = subscribe(queue.topic, "*", sub_version=0)
        fetch = Fetcher(self.session, GROUP).fetch
        fetched = await in_time(fetch(queue, at(0), subscription=subscription, is_by_hand=True))
        return fetched.messages[0]


Scenario = Callable[[Member], Awaitable[None]]


def ask(scenario: Scenario, *, is_member: bool = True, **settings: str) -> None:
    async def run() -> None:
        async with (
            EmbeddedBroker(topics={TOPIC: 2}, settings=settings) as broker,
            open_session(broker.namesrv, SUBSCRIPTION) as session,
        ):
            await session.routes.find(TOPIC)
            if is_member:
                await session.heartbeats.beat()
            await scenario(Member(session, broker.broker_name))

    asyncio.run(run())


def test_a_group_stands_nowhere_until_it_commits_and_then_where_it_said() -> None:
    async def scenario(member: Member) -> None:
        calls = member.calls
        await member.send(3)
        await calls.commit_offset(member.queue, at(2))
        assert await calls.query_offset(member.queue) == 2
        await calls.commit_offset(member.queue, at(1))
        assert await calls.query_offset(member.queue) == 1
        beside = MessageQueue(topic=TOPIC, broker_name=member.queue.broker_name, queue_id=1)
        assert await calls.query_offset(beside) is None

    ask(scenario)


def test_a_group_that_the_broker_does_not_know_can_not_commit() -> None:
    async def scenario(member: Member) -> None:
        with pytest.raises(GroupNotFound):
            await member.calls.commit_offset(member.queue, at(2))

    ask(scenario, is_member=False)


def test_a_queue_tells_its_bounds_and_what_came_when() -> None:
    async def scenario(member: Member) -> None:
        calls, queue = member.calls, member.queue
        assert (await calls.min_offset(queue), await calls.max_offset(queue)) == (0, 0)
        await member.send(3)
        assert (await calls.min_offset(queue), await calls.max_offset(queue)) == (0, 3)
        stored_ms = (await member.first()).store_timestamp_ms
        assert await calls.offset_at(queue, stored_ms) == 0
        assert await calls.offset_at(queue, stored_ms + 3_600_000) == 3

    ask(scenario)


def test_a_message_that_is_sent_back_comes_again_under_its_own_topic() -> None:
    async def scenario(member: Member) -> None:
        await member.send(1)
        message = await member.first()
        await member.calls.send_back(message, delay_level=1, max_retries=16)
        retries = MessageQueue(topic=retry_topic(GROUP), broker_name=member.queue.broker_name, queue_id=0)
        again = await member.first(retries)
        assert (again.body, again.topic, again.message_id) == (b"number 0", TOPIC, message.message_id)
        assert (again.reconsume_times, again.queue) == (1, retries)

    ask(scenario, messageDelayLevel="1s 5s")


def test_a_message_that_failed_too_often_is_a_dead_letter() -> None:
    async def scenario(member: Member) -> None:
        await member.send(1)
        await member.calls.send_back(await member.first(), max_retries=0)
        dead = MessageQueue(topic=dlq_topic(GROUP), broker_name=member.queue.broker_name, queue_id=0)
        assert await member.calls.max_offset(dead) == 1

    ask(scenario)


def test_a_copy_of_a_message_comes_again_later_as_the_message_would() -> None:
    async def scenario(member: Member) -> None:
        await member.send(1)
        message = await member.first()
        retries = MessageQueue(topic=retry_topic(GROUP), broker_name=member.queue.broker_name, queue_id=0)
        await member.calls.send_copy(message, delay_level=1, max_retries=16)
        again = await member.first(retries)
        assert (again.body, again.topic, again.message_id) == (b"number 0", TOPIC, message.message_id)
        assert (again.reconsume_times, again.queue) == (1, retries)
        assert again.properties[ORIGIN_MESSAGE_ID] == message.offset_id

    ask(scenario, messageDelayLevel="1s 5s")


@pytest.mark.parametrize(("delay_level", "max_retries"), [(0, 0), (-1, INT32_MAX)])
def test_a_copy_of_a_message_that_may_not_come_again_is_a_dead_letter(
    delay_level: int, max_retries: int
) -> None:
    async def scenario(member: Member) -> None:
        await member.send(1)
        message = await member.first()
        await member.calls.send_copy(message, delay_level=delay_level, max_retries=max_retries)
        dead = MessageQueue(topic=dlq_topic(GROUP), broker_name=member.queue.broker_name, queue_id=0)
        assert (await member.first(dead)).message_id == message.message_id

    ask(scenario)


def test_members_are_those_who_told_the_broker_and_none_are_before() -> None:
    async def scenario(member: Member) -> None:
        assert await member.calls.members(TOPIC) == []
        await member.session.heartbeats.beat()
        assert await member.calls.members(TOPIC) == [member.session.client_id]

    ask(scenario, is_member=False)


def test_a_locked_queue_is_its_holders_until_it_is_unlocked() -> None:
    async def scenario(member: Member) -> None:
        queue, broker = member.queue, member.queue.broker_name
        async with open_session(member.session.settings.namesrv[0]) as session:
            rival = BrokerCalls(session, GROUP)
            assert await member.calls.lock(broker, [queue]) == {queue}
            assert await rival.lock(broker, [queue]) == frozenset()
            await member.calls.unlock(broker, [queue])
            assert await rival.lock(broker, [queue]) == {queue}
            await rival.unlock(broker, [queue])
            assert await member.calls.lock(broker, [queue]) == {queue}

    ask(scenario)


def test_an_expression_is_checked_by_a_broker() -> None:
    async def scenario(member: Member) -> None:
        good = SubscriptionData(topic=TOPIC, expression="price > 3", expression_type=SQL92)
        await member.calls.check_subscription(good)
        with pytest.raises(BadSubscription):
            await member.calls.check_subscription(
                SubscriptionData(topic=TOPIC, expression="price >", expression_type=SQL92)
            )

    ask(scenario, enablePropertyFilter="true")


def test_a_broker_without_sql_says_so() -> None:
    async def scenario(member: Member) -> None:
        by_sql = SubscriptionData(topic=TOPIC, expression="price > 3", expression_type=SQL92)
        with pytest.raises(BrokerFailed):
            await member.calls.check_subscription(by_sql)

    ask(scenario, enablePropertyFilter="false")


def test_a_topic_and_a_broker_that_do_not_exist_are_told_apart() -> None:
    async def scenario(member: Member) -> None:
        nowhere = MessageQueue(topic="NoSuchTopic", broker_name="broker-x", queue_id=0)
        with pytest.raises(TopicNotFound):
            await member.calls.max_offset(nowhere)
        with pytest.raises(TopicNotFound):
            await member.calls.members("NoSuchTopic")
        elsewhere = MessageQueue(topic=TOPIC, broker_name="broker-x", queue_id=0)
        with pytest.raises(NoRoute, match="no replica of broker broker-x"):
            await member.calls.query_offset(elsewhere)
        with pytest.raises(NoRoute, match="broker broker-x has no master now"):
            await member.calls.lock("broker-x", [elsewhere])

    ask(scenario)


def test_a_broker_that_is_gone_fails_the_call_within_its_time() -> None:
    async def run() -> None:
        async with EmbeddedBroker(topics=[TOPIC]) as broker:
            namesrv, name = broker.namesrv, broker.broker_name
            async with open_session(namesrv) as session:
                await session.routes.find(TOPIC)
                table = session.routes.table
        # The route is what it was; nobody is there any more.
        async with open_session(namesrv, timeout_s=2.0) as session:
            session.routes.table = table
            queue = MessageQueue(topic=TOPIC, broker_name=name, queue_id=0)
            calls = BrokerCalls(session, GROUP)
            with pytest.raises(ConnectFailed):
                await calls.query_offset(queue)
            with pytest.raises(ConnectFailed):
                await calls.members(TOPIC)

    asyncio.run(run())
