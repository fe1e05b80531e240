"""Requests and replies between Python producers and Java's clients, through Tanist and RocketMQ."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tanist.client import Message, NoReply, Producer, SendFailed
from tests.support.client_places import KINDS, Place, broker_of
from tests.support.reading import Reader
from tests.support.rocketmq.stock_client import StockClients

pytestmark = pytest.mark.partner("java", "maven")

PATIENCE_S = 75.0
QUEUES = 4
LARGE = b"squeeze me " * 4096
REQUESTS = [b"number-%d" % n for n in range(5)] + [LARGE]


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with broker_of(request.param, tmp_path_factory.mktemp("replies")) as started:
        yield started


@pytest.fixture
def name(clients: StockClients, place: Place, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Names of topics and groups that no other test uses."""
    prefix = f"{clients.line.replace('.', '_')}-{request.node.originalname[-60:]}"
    return lambda last: f"{prefix}-{last}"


def reading(place: Place) -> Reader:
    return Reader(place.address, broker_name=place.broker_name, queue_count=QUEUES)


def test_a_java_service_replies_to_python(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic = name("t")

    async def scenario() -> None:
        async with Producer(group=name("askers"), namesrv=place.namesrv) as asker:
            with pytest.raises(NoReply):
                # It makes the topic, before there is anybody to reply.
                await asker.request(Message(topic, b"anybody there?"), timeout_s=1)
            with clients.replier(place.namesrv, name("g"), topic, is_prompt=True):
                for body in REQUESTS:
                    reply = await asker.request(Message(topic, body), timeout_s=PATIENCE_S)
                    assert reply.body == b"re: " + body
                    assert "PUSH_REPLY_TIME" in reply.properties

    asyncio.run(scenario())


def test_python_replies_to_a_java_producer(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic = name("t")

    async def scenario() -> None:
        async with (
            Producer(group=name("repliers"), namesrv=place.namesrv) as replier,
            reading(place) as reader,
        ):
            await replier.send(Message(topic, b"makes the topic"))
            await reader.wait_for(topic)
            with clients.producer(place.namesrv) as asker:
                for body in REQUESTS:
                    asking = asyncio.create_task(asyncio.to_thread(asker.request, topic, body))
                    (request,) = await reader.wait_for(topic, timeout_s=PATIENCE_S)
                    assert request.body == body
                    await replier.reply(request, b"re: " + body, properties={"own": "text"})
                    reply = await asking
                    assert reply.body == b"re: " + body
                    assert reply.properties["own"] == "text"

    asyncio.run(scenario())


def test_a_reply_to_a_producer_that_has_gone_fails(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic = name("t")

    async def scenario() -> None:
        async with (
            Producer(group=name("repliers"), namesrv=place.namesrv) as replier,
            reading(place) as reader,
        ):
            async with Producer(group=name("gone"), namesrv=place.namesrv) as gone:
                with pytest.raises(NoReply, match="whether a consumer runs and replies"):
                    await gone.request(Message(topic, b"hello?"), timeout_s=1)
            (request,) = await reader.wait_for(topic, timeout_s=PATIENCE_S)
            with pytest.raises(SendFailed, match=r"channel of <.*> not found"):
                await replier.reply(request, b"too late")

    asyncio.run(scenario())
