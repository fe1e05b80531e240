"""Request and reply between Python producers, through a broker in this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tanist.client import (
    ClientClosed,
    Consumer,
    InvalidArgument,
    Message,
    NoReply,
    NoRoute,
    Producer,
    ReceivedMessage,
    SendFailed,
    Start,
)
from tanist.client.requests import requests
from tanist.errors import TooBusy
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.response_errors import TopicNotFound
from tanist.testing import EmbeddedBroker
from tests.support.fake_cluster import FakeCluster, accept, refuse
from tests.support.reading import Reader

TOPIC = "Prices"
REPLIES = "DefaultCluster_REPLY_TOPIC"
PATIENCE_S = 30.0


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[EmbeddedBroker, Producer, Producer, Reader]]:
    """A broker, a producer that asks, one that replies, and a reader who sees the requests."""
    async with (
        EmbeddedBroker(topics={TOPIC: 1}) as broker,
        Producer(group="askers", namesrv=broker.namesrv) as asker,
        Producer(group="repliers", namesrv=broker.namesrv) as replier,
        Reader(broker.address, broker_name=broker.broker_name) as reader,
    ):
        yield broker, asker, replier, reader


async def reply_to_all(replier: Producer, reader: Reader, count: int) -> None:
    """What a service does: reply to each request with ``re:`` and the same."""
    answered = 0
    while answered < count:
        for request in await reader.wait_for(TOPIC):
            await replier.reply(request, b"re: " + request.body, properties={"number": str(answered)})
            answered += 1


def test_a_request_gets_its_reply() -> None:
    async def scenario() -> None:
        async with serving() as (_, asker, replier, reader), asyncio.TaskGroup() as group:
            group.create_task(reply_to_all(replier, reader, 2))
            for number, body in enumerate([b"o-17", b"squeeze me " * 4096]):
                reply = await asker.request(Message(TOPIC, body), timeout_s=PATIENCE_S)
                assert reply.body == b"re: " + body
                assert reply.properties["number"] == str(number)
                assert reply.properties["MSG_TYPE"] == "reply"
                assert "PUSH_REPLY_TIME" in reply.properties

    asyncio.run(scenario())


def test_many_requests_at_once_each_get_their_own_reply() -> None:
    async def scenario() -> None:
        async with serving() as (_, asker, replier, reader), asyncio.TaskGroup() as group:
            group.create_task(reply_to_all(replier, reader, 200))
            bodies = [b"o-%d" % n for n in range(200)]
            replies = await asyncio.gather(
                *(asker.request(Message(TOPIC, body), timeout_s=PATIENCE_S) for body in bodies)
            )
            assert [reply.body for reply in replies] == [b"re: " + body for body in bodies]

    asyncio.run(scenario())


def test_the_first_request_may_make_its_topic() -> None:
    async def scenario() -> None:
        async with serving() as (_, asker, _replier, _reader):
            with pytest.raises(NoReply) as late:
                await asker.request(Message("BrandNew", b"anybody there?"), timeout_s=1)
            assert late.value.is_sent

    asyncio.run(scenario())


def test_a_request_to_a_topic_that_nobody_makes_names_the_topic() -> None:
    async def scenario() -> None:
        async with (
            FakeCluster("a", topics=(REPLIES,)) as cluster,
            Producer(group="askers", namesrv=cluster.namesrv) as asker,
        ):
            with pytest.raises(TopicNotFound, match="no topic Prices"):
                await asker.request(Message(TOPIC, b"o-17"))

    asyncio.run(scenario())


def test_a_request_that_no_broker_takes_says_why() -> None:
    async def scenario() -> None:
        async with FakeCluster("a", topics=(TOPIC, REPLIES)) as cluster:
            cluster.brokers["a"].answer = refuse(ResponseCode.SYSTEM_BUSY)
            async with Producer(group="askers", namesrv=cluster.namesrv) as asker:
                with pytest.raises(SendFailed, match="so the test says"):
                    await asker.request(Message(TOPIC, b"o-17"), timeout_s=PATIENCE_S)
            cluster.brokers["a"].answer = lambda _: None
            async with Producer(group="askers", namesrv=cluster.namesrv) as asker:
                with pytest.raises(SendFailed, match="did not answer") as failed:
                    await asker.request(Message(TOPIC, b"o-17"), timeout_s=2)
            assert failed.value.may_be_stored

    asyncio.run(scenario())


def test_a_request_that_nobody_replies_to_says_what_to_look_at_and_a_late_reply_is_dropped() -> None:
    async def scenario() -> None:
        async with serving() as (_, asker, replier, reader):
            with pytest.raises(NoReply, match="whether a consumer runs and replies") as late:
                await asker.request(Message(TOPIC, b"o-17"), timeout_s=2)
            assert (late.value.topic, late.value.timeout_s, late.value.is_sent) == (TOPIC, 2, True)
            (request,) = await reader.wait_for(TOPIC)
            assert request.properties["TTL"] == "2000"
            await replier.reply(request, b"too late")
            async with asyncio.TaskGroup() as group:
                group.create_task(reply_to_all(replier, reader, 1))
                reply = await asker.request(Message(TOPIC, b"o-18"), timeout_s=PATIENCE_S)
            assert reply.body == b"re: o-18"

    asyncio.run(scenario())


def test_a_second_reply_to_the_same_request_is_dropped() -> None:
    async def scenario() -> None:
        async with serving() as (_, asker, replier, reader), asyncio.TaskGroup() as group:
            asking = group.create_task(asker.request(Message(TOPIC, b"o-17"), timeout_s=PATIENCE_S))
            (request,) = await reader.wait_for(TOPIC)
            await replier.reply(request, b"first")
            await replier.reply(request, b"second")
            assert (await asking).body == b"first"

    asyncio.run(scenario())


def test_a_reply_to_a_producer_that_has_gone_fails() -> None:
    async def scenario() -> None:
        async with serving() as (broker, _, replier, reader):
            async with Producer(group="gone", namesrv=broker.namesrv) as gone:
                with pytest.raises(NoReply):
                    await gone.request(Message(TOPIC, b"o-17"), timeout_s=2)
            (request,) = await reader.wait_for(TOPIC)
            with pytest.raises(SendFailed, match=r"channel of <.*> not found"):
                await replier.reply(request, b"hello?")

    asyncio.run(scenario())


def test_a_producer_is_known_to_the_broker_before_its_first_request_is_sent() -> None:
    async def scenario() -> None:
        async with serving() as (broker, _, replier, reader):
            for number in range(5):
                async with Producer(group=f"fresh-{number}", namesrv=broker.namesrv) as fresh:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(reply_to_all(replier, reader, 1))
                        reply = await fresh.request(Message(TOPIC, b"o-17"), timeout_s=PATIENCE_S)
                    assert reply.body == b"re: o-17"

    asyncio.run(scenario())


def test_all_brokers_of_the_cluster_know_who_asks_before_the_request_is_sent() -> None:
    async def scenario() -> None:
        # The topic is on one broker alone; a reply may come through any.
        async with FakeCluster("a", "b", "c", topics=(TOPIC, REPLIES)) as cluster:
            cluster.without[TOPIC] = {"b", "c"}
            beats: list[int] = []

            def note(request: Command) -> Command:
                beats.extend(len(broker.others) for broker in cluster.brokers.values())
                return accept(request)

            cluster.brokers["a"].answer = note
            async with Producer(group="askers", namesrv=cluster.namesrv) as asker:
                with pytest.raises(NoReply):
                    await asker.request(Message(TOPIC, b"o-17"), timeout_s=2)
            assert len(beats) == 3
            assert min(beats) > 0

    asyncio.run(scenario())


def test_a_broker_that_does_not_listen_holds_a_request_up_once_and_not_for_all_its_time() -> None:
    async def scenario() -> None:
        async with FakeCluster("a", "b", topics=(TOPIC, REPLIES)) as cluster:
            cluster.without[TOPIC] = {"b"}
            cluster.brokers["b"].is_listening = False
            async with Producer(group="askers", namesrv=cluster.namesrv, timeout_s=60) as asker:
                for count in (1, 2):
                    with pytest.raises(NoReply) as late:
                        await asker.request(Message(TOPIC, b"o-17"), timeout_s=1)
                    assert late.value.is_sent
                    assert len(cluster.brokers["a"].sent) == count

    asyncio.run(scenario())


def test_a_reply_goes_through_the_broker_of_the_request_and_else_through_another() -> None:
    async def scenario() -> None:
        async with (
            serving() as (_, asker, _replier, reader),
            FakeCluster("embedded", "other", topics=(REPLIES,)) as cluster,
            Producer(group="repliers", namesrv=cluster.namesrv) as replier,
        ):
            with pytest.raises(NoReply):
                await asker.request(Message(TOPIC, b"o-17"), timeout_s=2)
            (request,) = await reader.wait_for(TOPIC)
            near, far = cluster.brokers["embedded"], cluster.brokers["other"]
            await replier.reply(request, b"yes")
            await replier.reply(request, b"yes")
            assert (len(near.sent), len(far.sent)) == (2, 0)
            near.answer = refuse(ResponseCode.SYSTEM_ERROR)
            await replier.reply(request, b"yes")
            assert len(far.sent) == 1
            assert {sent.code for sent in cluster.sent} == {RequestCode.SEND_REPLY_MESSAGE_V2}

    asyncio.run(scenario())


def test_a_consumer_s_handler_replies() -> None:
    async def scenario() -> None:
        async with (
            serving() as (broker, asker, replier, _reader),
            Consumer(
                group="pricing", namesrv=broker.namesrv, topics={TOPIC: "*"}, start=Start.FIRST
            ) as consumer,
        ):

            async def price(message: ReceivedMessage) -> None:
                await replier.reply(message, b"re: " + message.body)

            running = asyncio.create_task(consumer.run(price))
            try:
                reply = await asker.request(Message(TOPIC, b"o-17"), timeout_s=PATIENCE_S)
                assert reply.body == b"re: o-17"
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())


def test_a_cancelled_request_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_WAITING", 1)

    async def scenario() -> None:
        async with serving() as (_, asker, replier, reader):
            asking = asyncio.create_task(asker.request(Message(TOPIC, b"o-17"), timeout_s=PATIENCE_S))
            (request,) = await reader.wait_for(TOPIC)
            with pytest.raises(TooBusy, match="1 requests wait for replies"):
                await asker.request(Message(TOPIC, b"one too many"))
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await replier.reply(request, b"nobody wants it")
            async with asyncio.TaskGroup() as group:
                group.create_task(reply_to_all(replier, reader, 1))
                await asker.request(Message(TOPIC, b"o-18"), timeout_s=PATIENCE_S)

    asyncio.run(scenario())


def test_closing_the_producer_ends_its_requests() -> None:
    async def scenario() -> None:
        async with serving() as (broker, _, _replier, reader):
            asker = Producer(group="closing", namesrv=broker.namesrv)
            async with asker:
                asking = asyncio.create_task(asker.request(Message(TOPIC, b"o-17"), timeout_s=PATIENCE_S))
                await reader.wait_for(TOPIC)
                # Its answer follows that of the request, which now waits for nothing but the reply.
                await asker.send(Message(TOPIC, b"later"))
            with pytest.raises(ClientClosed):
                await asking

    asyncio.run(scenario())


def test_a_request_without_a_broker_says_that_there_is_no_route() -> None:
    async def scenario() -> None:
        async with Producer(group="askers", namesrv="127.0.0.1:1", timeout_s=1) as asker:
            with pytest.raises(NoRoute, match="no name server answers"):
                await asker.request(Message(TOPIC, b"o-17"), timeout_s=5)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("message", "timeout_s", "argument"),
    [
        (b"o-17", 1, "message"),
        (Message(TOPIC, b"o-17"), 0, "timeout_s"),
        (Message(TOPIC, b"x"), "1", "timeout_s"),
    ],
)
def test_what_can_not_be_a_request_is_refused(message: Any, timeout_s: Any, argument: str) -> None:
    async def scenario() -> None:
        async with Producer(group="askers") as asker:
            with pytest.raises(InvalidArgument) as refused:
                await asker.request(message, timeout_s=timeout_s)
            assert refused.value.argument == argument

    asyncio.run(scenario())


def test_only_requests_are_replied_to() -> None:
    async def scenario() -> None:
        async with serving() as (_, asker, replier, reader):
            await asker.send(Message(TOPIC, b"a plain message"))
            (plain,) = await reader.wait_for(TOPIC)
            with pytest.raises(InvalidArgument, match="it is no request") as refused:
                await replier.reply(plain, b"yes")
            assert refused.value.argument == "received"

    asyncio.run(scenario())


def test_a_closed_producer_neither_asks_nor_replies() -> None:
    async def scenario() -> None:
        producer = Producer(group="askers")
        with pytest.raises(ClientClosed):
            await producer.request(Message(TOPIC, b"o-17"))
        received: Any = object()
        with pytest.raises(ClientClosed):
            await producer.reply(received, b"yes")

    asyncio.run(scenario())
