"""Transactions of the Python producer, with Tanist's and RocketMQ's brokers, as Java's clients see them."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tanist.client import Message, Outcome, Producer, ReceivedMessage
from tanist.client.transactions import check_backs
from tests.support.client_places import KINDS, Place, broker_of
from tests.support.conditions import until
from tests.support.dying import die_in_a_transaction
from tests.support.log_lines import LogLines
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import bodies

pytestmark = pytest.mark.partner("java", "maven")

PATIENCE_S = 60.0
LARGE = b"squeeze me " * 4096


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A broker that asks so soon what became of a transaction that a test need not wait for long."""
    with broker_of(
        request.param,
        tmp_path_factory.mktemp("transactions"),
        transactionTimeOut=1_000,
        transactionCheckInterval=1_000,
        transactionOpBatchInterval=200,
    ) as started:
        yield started


@pytest.fixture
def name(clients: StockClients, place: Place, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Names of topics and groups that no other test uses."""
    prefix = f"{clients.line.replace('.', '_')}-{request.node.originalname[-60:]}"
    return lambda last: f"{prefix}-{last}"


async def commit_all(_: ReceivedMessage) -> Outcome:
    """Say what shows most if a broker asks about what is over: it would be delivered, or once more."""
    return Outcome.COMMIT


async def roll_back(producer: Producer, message: Message) -> None:
    with pytest.raises(ZeroDivisionError):
        async with producer.transaction(message):
            raise ZeroDivisionError


def test_java_consumers_see_what_was_committed_and_nothing_else(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic = name("orders")

    async def scenario() -> list[str]:
        async with Producer(group=name("producers"), namesrv=place.namesrv, on_check=commit_all) as producer:
            ids: list[str] = []
            for n in range(8):
                order = Message(topic, b"number-%d" % n, tags="A", keys=[f"k-{n}"])
                async with producer.transaction(order) as receipt:
                    ids.append(receipt.message_id)
                await roll_back(producer, Message(topic, b"rolled back"))
            async with producer.transaction(Message(topic, LARGE)) as receipt:
                ids.append(receipt.message_id)
            return ids

    ids = asyncio.run(scenario())
    with clients.push_consumer(place.namesrv, name("group"), topic) as consumer:
        # In a little more time than it needs, so that what should not come could.
        received = consumer.received(9)
        received = consumer.received(10, timeout_ms=2_000)
    assert bodies(received) == {b"number-%d" % n for n in range(8)} | {LARGE}
    assert len(received) == 9
    assert {delivery.message_id for delivery in received} == set(ids)
    assert {delivery.keys for delivery in received if delivery.tags == "A"} == {f"k-{n}" for n in range(8)}


def test_a_block_that_outlasts_the_broker_s_patience_is_delivered_once(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic = name("orders")

    async def scenario() -> None:
        async with Producer(group=name("producers"), namesrv=place.namesrv, on_check=commit_all) as producer:
            # While the second one is asked about, the first would be asked about again if it were open.
            for body in (b"first", b"second"):
                async with producer.transaction(Message(topic, body)) as receipt:
                    asked = f"transaction checked transaction={receipt.message_id} outcome=UNKNOWN"
                    await until(lambda asked=asked: lines.count(asked) >= 2, timeout_s=PATIENCE_S)

    with LogLines(check_backs.__name__) as lines:
        asyncio.run(scenario())
    with clients.push_consumer(place.namesrv, name("group"), topic) as consumer:
        consumer.received(2)
        received = consumer.received(3, timeout_ms=2_000)
    assert bodies(received) == {b"first", b"second"}
    assert len(received) == 2


@pytest.mark.behaviour("S1-3")
def test_a_new_producer_is_asked_what_one_left_open_that_died_in_its_block(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic, group = name("orders"), name("producers")
    asked: list[ReceivedMessage] = []

    async def on_check(message: ReceivedMessage) -> Outcome:
        asked.append(message)
        if message.body == b"unwanted":
            return Outcome.ROLLBACK
        return Outcome.UNKNOWN if len(asked) < 3 else Outcome.COMMIT

    async def scenario() -> None:
        for body in (b"unwanted", LARGE):
            await die_in_a_transaction(place.namesrv, group, Message(topic, body, keys=["o-17"]))
        async with Producer(group=group, namesrv=place.namesrv, on_check=on_check):
            with clients.push_consumer(place.namesrv, name("group"), topic) as consumer:
                received = await asyncio.to_thread(consumer.received, 1)
                assert [(delivery.body, delivery.keys) for delivery in received] == [(LARGE, "o-17")]

    asyncio.run(scenario())
    assert {(one.topic, one.body, one.keys[0]) for one in asked} == {
        (topic, b"unwanted", "o-17"),
        (topic, LARGE, "o-17"),
    }


def test_a_python_producer_answers_for_a_java_producer_of_its_group(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic, group = name("orders"), name("producers")
    with clients.transaction_producer(place.namesrv, group) as java:
        java.send(topic, [Outgoing(b"nobody knows", keys="o-17"), Outgoing(LARGE)], state="UNKNOWN")

    async def on_check(message: ReceivedMessage) -> Outcome:
        return Outcome.COMMIT if message.body == LARGE else Outcome.ROLLBACK

    async def scenario() -> None:
        async with Producer(group=group, namesrv=place.namesrv, on_check=on_check):
            with clients.push_consumer(place.namesrv, name("group"), topic) as consumer:
                assert bodies(await asyncio.to_thread(consumer.received, 1)) == {LARGE}

    asyncio.run(scenario())


def test_a_java_producer_answers_for_a_python_producer_of_its_group(
    clients: StockClients, place: Place, name: Callable[[str], str]
) -> None:
    topic, group = name("orders"), name("producers")
    asyncio.run(die_in_a_transaction(place.namesrv, group, Message(topic, LARGE, keys=["o-17"])))
    with (
        clients.transaction_producer(place.namesrv, group) as java,
        clients.push_consumer(place.namesrv, name("group"), topic) as consumer,
    ):
        java.answer("COMMIT")
        # It knows no broker before it has something to do with one, and none can ask it before.
        java.send(topic, [Outgoing(b"own")], state="COMMIT")
        assert bodies(consumer.received(2)) == {b"own", LARGE}
        assert bodies(java.questions(1)) == {LARGE}
