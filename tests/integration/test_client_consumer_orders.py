"""What brokers order a consumer to do: to rebalance, to reset its offsets, to tell what it does."""

import asyncio
import logging
from pathlib import Path

import pytest

from tanist.client import Consumer, MessageQueue, ReceivedMessage, RetryLater
from tanist.client.queues import rebalancing
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode
from tanist.protocol.bodies.running import ConsumeDirectlyResult, ConsumerRunningInfo, ConsumerStatus
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.client import ConsumeMessageDirectlyRequest, ConsumerRunningInfoRequest
from tanist.protocol.headers.common import TopicGroupRequest
from tanist.protocol.java_json import decode_java_json
from tanist.remoting import RemotingClient
from tanist.testing import EmbeddedBroker
from tests.support.consuming import TOPIC, Handled, bodies, in_loop, send, take, until
from tests.support.ordering import GROUP, States, keep_states, make_consumer, order_reset, queue_of


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> States:
    return keep_states(monkeypatch)


async def ask_client(states: States, consumer: Consumer, question: Command) -> Command:
    client = states[-1].clients.find_consumer(GROUP, consumer.client_id)
    assert client is not None
    return await client.connection.request(question, 5)


@pytest.mark.behaviour("S4-10", "S4-14", "S4-15", "S4-17", "S4-33")
def test_a_reset_moves_the_queues_it_names_and_no_other(
    states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is consumed afterwards is not to be kept before it was looked at.
    monkeypatch.setattr(rebalancing, "PERSIST_S", 600.0)

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2, "Other": 1}) as broker:
            for queue_id in range(2):
                await send(broker.namesrv, 5, start=queue_id * 10, queue=queue_of(broker, queue_id))
            await send(broker.namesrv, 3, topic="Other", start=100)
            async with make_consumer(broker, topics={TOPIC: "*", "Other": "*"}) as consumer:
                handled = Handled()
                runs = asyncio.create_task(consumer.run(handled))
                await until(lambda: len(handled.messages) == 13)
                other = queue_of(broker, 0, topic="Other")
                order_reset(states, consumer, {queue_of(broker, 1): 2, other: 0})
                await until(lambda: len(handled.messages) == 16)
                assert handled.bodies[13:] == [b"12", b"13", b"14"]
                assert sum((await consumer.lag()).values()) == 0
                assert states[-1].offsets.find(GROUP, TOPIC, 1) == 2
                await consumer.commit()
                assert states[-1].offsets.find(GROUP, TOPIC, 1) == 5
            await runs
            assert len(handled.messages) == 16

    in_loop(scenario())


@pytest.mark.behaviour("S4-20")
def test_a_queue_that_comes_back_is_read_from_where_its_broker_says(states: States) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 5)
            handled = Handled()
            async with make_consumer(broker, instance="second") as member:
                runs = asyncio.create_task(member.run(handled))
                await until(lambda: len(handled.messages) == 5)
                # So that it has nothing more to say when it gives the queue up.
                await member.commit()
                # The members' names sort them: this one takes the only queue, and leaves it alone.
                async with make_consumer(broker, instance="first") as other:
                    await until(lambda: queue_of(broker, 0) in other.assignment)
                    await until(lambda: queue_of(broker, 0) not in member.assignment)
                    states[-1].offsets.commit(GROUP, TOPIC, 0, QueueOffset(2))
                await until(lambda: len(handled.messages) == 8)
            await runs
            assert handled.bodies[5:] == [b"2", b"3", b"4"]

    in_loop(scenario())


@pytest.mark.behaviour("S4-11")
def test_nothing_of_any_queue_is_handed_out_until_a_reset_is_over(
    states: States, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tanist.client")

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            await send(broker.namesrv, 1, queue=queue_of(broker, 0))
            may_end = asyncio.Event()
            seen: list[bytes] = []

            async def handle(message: ReceivedMessage) -> None:
                seen.append(message.body)
                await may_end.wait()

            async with make_consumer(broker) as consumer:
                runs = asyncio.create_task(consumer.run(handle))
                await until(lambda: seen == [b"0"])
                order_reset(states, consumer, {queue_of(broker, 0): 1})
                await until(lambda: "suspend this consumer" in caplog.text)
                await send(broker.namesrv, 1, start=7, queue=queue_of(broker, 1))
                consumption = consumer._consumption  # pyright: ignore[reportPrivateUsage]
                assert consumption is not None
                fetched = consumption.owned.by_queue[queue_of(broker, 1)].cached
                await until(lambda: fetched.next_offset == 1)
                assert seen == [b"0"]
                may_end.set()
                await until(lambda: seen == [b"0", b"7"])
            await runs

    in_loop(scenario())


@pytest.mark.behaviour("S4-12", "S4-13", "S4-18")
def test_what_is_in_hand_ends_before_a_reset_and_changes_nothing_of_it(
    states: States, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tanist.client")

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 6)
            began, may_end = asyncio.Event(), asyncio.Event()
            seen: list[bytes] = []

            async def handle(message: ReceivedMessage) -> None:
                seen.append(message.body)
                if len(seen) == 1:
                    began.set()
                    await may_end.wait()

            async with make_consumer(broker) as consumer:
                runs = asyncio.create_task(consumer.run(handle, concurrency=1))
                await began.wait()
                order_reset(states, consumer, {queue_of(broker, 0): 4})
                await until(lambda: "suspend this consumer" in caplog.text)
                # Messages 1 to 5 are here already, and nobody gets them.
                may_end.set()
                await until(lambda: len(seen) == 3)
                await consumer.commit()
                assert states[-1].offsets.find(GROUP, TOPIC, 0) == 6
            await runs
            assert seen == [b"0", b"4", b"5"]

    in_loop(scenario())


@pytest.mark.behaviour("S4-18")
def test_a_reset_holds_although_the_consumer_is_closed_while_it_waits_for_a_handler(
    states: States, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tanist.client")

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 6)
            began = asyncio.Event()

            async def handle(_message: ReceivedMessage) -> None:
                began.set()
                await asyncio.sleep(600)

            async with make_consumer(broker, timeout_s=1.0) as consumer:
                runs = asyncio.create_task(consumer.run(handle))
                await began.wait()
                order_reset(states, consumer, {queue_of(broker, 0): 4})
                await until(lambda: "suspend this consumer" in caplog.text)
            await runs
            assert states[-1].offsets.find(GROUP, TOPIC, 0) == 4
            assert "client task failed" not in caplog.text

    in_loop(scenario())


@pytest.mark.behaviour("S4-49")
def test_a_reset_can_be_followed_in_the_log(states: States, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tanist.client")
    story = [
        "invoke reset offset operation from broker",
        "suspend this consumer",
        "doRebalance, add a new mq",
        "add a new pull request",
        "resume this consumer",
    ]

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 3)
            async with make_consumer(broker) as consumer:
                caplog.clear()
                order_reset(states, consumer, {queue_of(broker, 0): 1})
                await until(lambda: "resume this consumer" in caplog.text)

    in_loop(scenario())
    told = [record.getMessage() for record in caplog.records]
    found = [next(line for line in story if text.startswith(line)) for text in told if is_told(text, story)]
    assert found == story
    assert any(text.startswith("add a new pull request") and "nextOffset=1" in text for text in told)


def is_told(text: str, story: list[str]) -> bool:
    return text.startswith(tuple(story))


@pytest.mark.behaviour("S4-26", "S4-29", "S4-30")
def test_a_reset_reaches_every_broadcasting_member(states: States, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 3)
            own = {"broadcasting": True, "offsets_dir": tmp_path}
            async with (
                make_consumer(broker, instance="one", **own) as one,
                make_consumer(broker, instance="two", **own) as two,
            ):
                for member in (one, two):
                    handled = Handled()
                    runs = asyncio.create_task(member.run(handled))
                    await until(lambda handled=handled: len(handled.messages) == 3)
                    order_reset(states, member, {queue_of(broker, 0): 1})
                    await until(lambda handled=handled: len(handled.messages) == 5)
                    assert handled.bodies[3:] == [b"1", b"2"]
                    runs.cancel()
                    await asyncio.gather(runs, return_exceptions=True)

    in_loop(scenario())


def test_a_reset_of_another_group_or_topic_is_not_ours(states: States) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 2)
            async with make_consumer(broker) as consumer:
                await take(consumer, 2)
                stranger = MessageQueue(topic=TOPIC, broker_name="nowhere", queue_id=0)
                order_reset(states, consumer, {stranger: 0})
                await send(broker.namesrv, 1, start=2)
                got = await take(consumer, 1)
                assert bodies(got) == [b"2"]

    in_loop(scenario())


def test_a_consumer_tells_where_it_stands_and_what_it_does(states: States) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 3)
            async with make_consumer(broker, orderly=True) as consumer:
                await take(consumer, 3)
                question = TopicGroupRequest(topic=TOPIC, group=GROUP)
                answer = await ask_client(
                    states, consumer, Command.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, question)
                )
                status = decode_java_json(answer.body, ConsumerStatus)
                assert status.queue_table == {queue_of(broker, 0): 2}
                running = await ask_running_info(broker, consumer.client_id)
                assert running.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
                assert running.properties["PROP_CONSUMEORDERLY"] == "true"
                assert int(running.properties["PROP_CONSUMER_START_TIMESTAMP"]) > 0
                assert {each.topic for each in running.subscriptions} == {TOPIC, f"%RETRY%{GROUP}"}
                queue = running.queue_table[queue_of(broker, 0)]
                assert (queue.consumer_offset, queue.cached_count, queue.is_locked) == (2, 1, True)

    in_loop(scenario())


async def ask_running_info(broker: EmbeddedBroker, client_id: str) -> ConsumerRunningInfo:
    question = ConsumerRunningInfoRequest(consumer_group=GROUP, client_id=client_id)
    operator = RemotingClient()
    try:
        answer = await operator.request(
            broker.address, Command.request(RequestCode.GET_CONSUMER_RUNNING_INFO, question), timeout_s=10
        )
    finally:
        await operator.close()
    return decode_java_json(answer.body, ConsumerRunningInfo)


def test_an_operator_may_have_a_message_handled_now(states: States) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker, make_consumer(broker) as consumer:
            await send(broker.namesrv, 3)
            outcomes: dict[bytes, Exception | None] = {
                b"0": None,
                b"1": RetryLater(delay_level=1),
                b"2": RuntimeError("never"),
            }
            handled: list[bytes] = []

            async def handle(message: ReceivedMessage) -> None:
                handled.append(message.body)
                if error := outcomes[message.body]:
                    raise error

            messages = await consumer.pull(queue_of(broker, 0), 0)
            consumer.pause()
            # Without a handler nobody can.
            answer = await consume_directly(broker, consumer.client_id, messages[0])
            assert answer.code == ResponseCode.SYSTEM_ERROR
            runs = asyncio.create_task(consumer.run(handle))
            await asyncio.sleep(0)
            results = [
                decode_java_json(
                    (await consume_directly(broker, consumer.client_id, message)).body, ConsumeDirectlyResult
                )
                for message in messages
            ]
            assert [result.consume_result for result in results] == [
                "CR_SUCCESS",
                "CR_LATER",
                "CR_THROW_EXCEPTION",
            ]
            assert results[2].remark == "RuntimeError('never')"
            assert handled == [b"0", b"1", b"2"]
            runs.cancel()
            await asyncio.gather(runs, return_exceptions=True)

    in_loop(scenario())


async def consume_directly(broker: EmbeddedBroker, client_id: str, message: ReceivedMessage) -> Command:
    question = ConsumeMessageDirectlyRequest(
        consumer_group=GROUP, client_id=client_id, msg_id=message.offset_id, topic=TOPIC
    )
    operator = RemotingClient()
    try:
        request = Command.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, question)
        return await operator.request(broker.address, request, timeout_s=10)
    finally:
        await operator.close()
