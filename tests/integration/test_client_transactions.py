"""Transactions of the Python producer with a broker in this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tanist.client import (
    CommitInDoubt,
    InvalidArgument,
    Message,
    Outcome,
    Producer,
    ReceivedMessage,
    SendFailed,
)
from tanist.client.errors import ClientClosed
from tanist.client.transactions import check_backs
from tanist.errors import ConnectFailed
from tanist.model.message import SysFlag
from tanist.model.property_names import TRANSACTION_CHECK_TIMES
from tanist.protocol import ResponseCode
from tanist.testing import EmbeddedBroker
from tests.support.conditions import until
from tests.support.dying import die_in_a_transaction
from tests.support.fake_cluster import FakeCluster, refuse
from tests.support.log_lines import LogLines
from tests.support.reading import Reader

TOPIC, GROUP = "Orders", "orders"
ORDER = Message(TOPIC, b"orphan", keys=["o-17"])
QUICK = {"transactionTimeOut": "200", "transactionCheckInterval": "200", "transactionOpBatchInterval": "50"}
"""A broker that asks so soon that a test need not wait for long."""


class Asked:
    """Keeps what brokers asked, and commits it: what was over already would be delivered, or once more."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, message: ReceivedMessage) -> Outcome:
        self.bodies.append(message.body)
        return Outcome.COMMIT


async def outlast_questions(producer: Producer, lines: LogLines) -> None:
    """Send in a transaction that is asked about twice: whatever else is open is asked about meanwhile."""
    async with producer.transaction(Message(TOPIC, b"slow")) as receipt:
        answered = f"transaction checked transaction={receipt.message_id} outcome=UNKNOWN"
        await until(lambda: lines.count(answered) >= 2, timeout_s=30)


@asynccontextmanager
async def serving(**settings: str) -> AsyncGenerator[tuple[EmbeddedBroker, Reader]]:
    async with (
        EmbeddedBroker(topics={TOPIC: 1}, settings=settings) as broker,
        Reader(broker.address, broker_name=broker.broker_name) as reader,
    ):
        yield broker, reader


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    return [message.body for message in messages]


def test_a_message_is_delivered_when_its_block_ends_and_not_before() -> None:
    async def scenario() -> None:
        async with (
            serving() as (broker, reader),
            Producer(group=GROUP, namesrv=broker.namesrv, on_check=Asked()) as producer,
        ):
            order = Message(TOPIC, b"paid", tags="A", keys=["o-17"], properties={"own": "text"})
            async with producer.transaction(order) as receipt:
                await producer.send(Message(TOPIC, b"sent meanwhile"))
                assert bodies(await reader.wait_for(TOPIC)) == [b"sent meanwhile"]
                assert receipt.transaction_id == receipt.message_id
            (message,) = await reader.wait_for(TOPIC)
            assert (message.body, message.tags, message.keys) == (b"paid", "A", ["o-17"])
            assert message.properties["own"] == "text"
            assert message.message_id == receipt.message_id

    asyncio.run(scenario())


def test_a_message_whose_block_raises_or_is_cancelled_is_never_delivered() -> None:
    async def scenario() -> None:
        asked = Asked()
        async with (
            serving(**QUICK) as (broker, reader),
            Producer(group=GROUP, namesrv=broker.namesrv, on_check=asked) as producer,
        ):
            is_inside = asyncio.Event()

            async def transact() -> None:
                async with producer.transaction(Message(TOPIC, b"cancelled")):
                    is_inside.set()
                    await asyncio.Event().wait()

            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(Message(TOPIC, b"failed")):
                    raise ZeroDivisionError
            task = asyncio.create_task(transact())
            await is_inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await outlast_questions(producer, lines)
            assert bodies(await reader.wait_for(TOPIC)) == [b"slow"]
            assert asked.bodies == []

    with LogLines(check_backs.__name__) as lines:
        asyncio.run(scenario())


@pytest.mark.behaviour("S1-3")
def test_a_new_producer_is_asked_what_one_left_open_that_died_in_its_block() -> None:
    async def scenario() -> None:
        asked: list[ReceivedMessage] = []

        async def on_check(message: ReceivedMessage) -> Outcome:
            asked.append(message)
            return Outcome.UNKNOWN if len(asked) == 1 else Outcome.COMMIT

        async with serving(**QUICK) as (broker, reader):
            await die_in_a_transaction(broker.namesrv, GROUP, ORDER)
            # It sends nothing: brokers have to find it before it has anything to do with them.
            async with Producer(group=GROUP, namesrv=broker.namesrv, on_check=on_check):
                (message,) = await reader.wait_for(TOPIC)
            assert message.body == b"orphan"
            assert [(one.topic, one.body, one.keys) for one in asked] == [(TOPIC, b"orphan", ["o-17"])] * 2
            assert {one.message_id for one in asked} == {message.message_id}

    asyncio.run(scenario())


def test_what_on_check_rolls_back_is_asked_no_more_and_never_delivered() -> None:
    async def scenario() -> None:
        asked: list[bytes] = []

        async def on_check(message: ReceivedMessage) -> Outcome:
            asked.append(message.body)
            return Outcome.ROLLBACK if len(asked) == 1 else Outcome.COMMIT

        async with serving(**QUICK) as (broker, reader):
            await die_in_a_transaction(broker.namesrv, GROUP, ORDER)
            async with Producer(group=GROUP, namesrv=broker.namesrv, on_check=on_check) as producer:
                await until(lambda: bool(asked), timeout_s=30)
                await outlast_questions(producer, lines)
                assert bodies(await reader.wait_for(TOPIC)) == [b"slow"]
            assert asked == [b"orphan"]

    with LogLines(check_backs.__name__) as lines:
        asyncio.run(scenario())


def test_nobody_is_asked_about_a_block_that_still_runs_and_its_message_is_delivered_once() -> None:
    async def scenario() -> None:
        asked = Asked()
        async with (
            serving(**QUICK) as (broker, reader),
            Producer(group=GROUP, namesrv=broker.namesrv, on_check=asked) as producer,
        ):
            await outlast_questions(producer, lines)
            await outlast_questions(producer, lines)
            messages = await reader.wait_for(TOPIC, 2)
            assert bodies(messages) == [b"slow", b"slow"]
            # The newest copy was committed, which the broker made when it asked.
            assert all(int(message.properties[TRANSACTION_CHECK_TIMES]) >= 2 for message in messages)
            assert asked.bodies == []

    with LogLines(check_backs.__name__) as lines:
        asyncio.run(scenario())


def test_a_commit_that_no_broker_confirms_is_told_and_left_to_on_check() -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as life:
            broker = await life.enter_async_context(EmbeddedBroker(topics=[TOPIC]))
            namesrv, order = broker.namesrv, Message(TOPIC, b"paid")
            async with Producer(group=GROUP, namesrv=namesrv, timeout_s=1, on_check=Asked()) as producer:
                with pytest.raises(CommitInDoubt, match="will ask on_check") as doubt:
                    async with producer.transaction(order):
                        await life.aclose()
        assert (doubt.value.topic, doubt.value.broker_name) == (TOPIC, broker.broker_name)
        assert isinstance(doubt.value.__cause__, ConnectFailed)

    asyncio.run(scenario())


def test_a_block_s_own_error_comes_through_whatever_became_of_the_broker() -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as life:
            broker = await life.enter_async_context(EmbeddedBroker(topics=[TOPIC]))
            async with Producer(group=GROUP, namesrv=broker.namesrv, on_check=Asked()) as producer:

                async def transact() -> None:
                    async with producer.transaction(Message(TOPIC, b"paid")):
                        await life.aclose()
                        raise ZeroDivisionError

                with pytest.raises(ZeroDivisionError):
                    await transact()

    asyncio.run(scenario())


def test_a_half_that_a_broker_may_have_is_not_sent_to_another_one() -> None:
    async def scenario() -> None:
        async with FakeCluster("a", "b", topics=(TOPIC,)) as cluster:
            for broker in cluster.brokers.values():
                broker.answer = lambda _: None
            async with Producer(
                group=GROUP, namesrv=cluster.namesrv, timeout_s=2, on_check=Asked()
            ) as producer:
                with pytest.raises(SendFailed) as failed:
                    async with producer.transaction(ORDER):
                        pytest.fail("the block ran")
            assert failed.value.may_be_stored
            assert len(cluster.sent) == 1

    asyncio.run(scenario())


def test_a_half_that_no_broker_has_is_sent_to_another_one() -> None:
    async def scenario() -> None:
        async with FakeCluster("a", "b", topics=(TOPIC,)) as cluster:
            cluster.brokers["a"].answer = refuse(ResponseCode.SYSTEM_BUSY)
            async with Producer(
                group=GROUP, namesrv=cluster.namesrv, timeout_s=5, on_check=Asked()
            ) as producer:
                for _ in range(2):
                    # Which one is asked first is chance.
                    with pytest.raises(CommitInDoubt, match="37 is not supported"):
                        async with producer.transaction(ORDER) as receipt:
                            assert receipt.queue.broker_name == "b"
            halves = [header.sys_flag for header in cluster.brokers["b"].headers()]
            assert halves == [int(SysFlag.PREPARED)] * 2

    asyncio.run(scenario())


def test_many_transactions_at_once_all_end_as_their_blocks_do() -> None:
    async def scenario() -> None:
        async with (
            serving() as (broker, reader),
            Producer(group=GROUP, namesrv=broker.namesrv, on_check=Asked()) as producer,
        ):

            async def transact(n: int) -> None:
                async with producer.transaction(Message(TOPIC, b"%d" % n)):
                    if n % 2:
                        raise ZeroDivisionError

            await asyncio.gather(*(transact(n) for n in range(100)), return_exceptions=True)
            found = bodies(await reader.wait_for(TOPIC, 50))
            assert sorted(found) == sorted(b"%d" % n for n in range(0, 100, 2))

    asyncio.run(scenario())


def test_a_transaction_wants_on_check_at_the_call() -> None:
    async def scenario() -> None:
        async with Producer(group=GROUP) as producer:
            with pytest.raises(InvalidArgument, match="on_check") as refused:
                producer.transaction(Message(TOPIC, b"paid"))
            assert refused.value.argument == "on_check"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("message", "argument"),
    [
        (b"paid", "message"),
        (Message(TOPIC, b"paid", delay_level=3), "delay_level"),
        (Message(TOPIC, b"paid", delay_s=3), "delay_s"),
    ],
)
def test_what_can_not_be_in_a_transaction_is_refused_at_the_call(message: Message, argument: str) -> None:
    async def scenario() -> None:
        async with Producer(group=GROUP, on_check=Asked()) as producer:
            with pytest.raises(InvalidArgument) as refused:
                producer.transaction(message)
            assert refused.value.argument == argument

    asyncio.run(scenario())


@pytest.mark.parametrize("on_check", [Outcome.COMMIT, print, Asked])
def test_on_check_must_be_an_async_function(on_check: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Producer(group=GROUP, on_check=on_check)
    assert refused.value.argument == "on_check"


def test_a_closed_producer_begins_no_transaction() -> None:
    with pytest.raises(ClientClosed, match="the producer is not open"):
        Producer(group=GROUP, on_check=Asked()).transaction(Message(TOPIC, b"paid"))
