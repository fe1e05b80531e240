"""What producers and consumers tell of their messages, and the context of spans that travels with them."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from tanist.client import (
    Consumer,
    InvalidArgument,
    Message,
    Outcome,
    Producer,
    Receipt,
    ReceivedMessage,
    RetryLater,
    Start,
    extract_context,
    inject_context,
)
from tanist.client.sending.outgoing import OutgoingMaker
from tanist.client.sending.sender import Sender
from tanist.client.session.session import Session
from tanist.client.settings import make_settings
from tanist.client.tracing.trace_format import (
    AfterTrace,
    BeforeTrace,
    ConsumeResult,
    EndState,
    EndTrace,
    SendTrace,
    TraceKind,
)
from tanist.model.message import SysFlag
from tanist.model.property_names import PGROUP, TRAN_MSG
from tanist.model.topics import TRACE_TOPIC
from tanist.protocol.bodies.client import HeartbeatData
from tanist.protocol.response_errors import TopicNotFound
from tanist.testing import EmbeddedBroker
from tests.support.looking_up import find_messages, find_traces

SPANS = TracerProvider().get_tracer("tests")


def consumer_of(broker: EmbeddedBroker) -> Consumer:
    topics = {"OrderTopic": "*"}
    return Consumer(group="billing", namesrv=broker.namesrv, topics=topics, start=Start.FIRST, trace=True)


def transacting(broker: EmbeddedBroker, outcomes: Mapping[str, Outcome]) -> Producer:
    """A producer that traces and knows what became of some transactions."""

    async def tell(message: ReceivedMessage) -> Outcome:
        return outcomes[message.message_id]

    return Producer(group="orders", namesrv=broker.namesrv, trace=True, on_check=tell)


async def transact(producer: Producer, *, fails: bool) -> Receipt:
    """Send a message in a transaction that succeeds or fails."""
    begun: list[Receipt] = []
    with suppress(LookupError):
        async with producer.transaction(Message("OrderTopic", b"...", keys=["o-17"])) as half:
            begun.append(half)
            if fails:
                raise LookupError
    return begun[0]


async def leave_open(broker: EmbeddedBroker) -> Receipt:
    """Begin a transaction that nobody ends: its producer fails before."""
    message = Message("OrderTopic", b"...")
    settings = make_settings(
        namesrv=broker.namesrv, credentials=None, tls=None, timeout_s=10, instance="gone"
    )
    session = Session(settings, handlers={}, describe=lambda client_id: HeartbeatData(client_id=client_id))
    maker = OutgoingMaker(session.clock, local_address="127.0.0.1")
    try:
        extra = {TRAN_MSG: "true", PGROUP: "orders"}
        sender = Sender(session, maker, group="orders", retries=2)
        return await sender.send(message, extra=extra, sys_flag=SysFlag.PREPARED)
    finally:
        await session.close()


async def handle(message: ReceivedMessage) -> None:
    match message.body:
        case b"bad":
            raise ValueError("this one is bad")
        case b"later":
            raise RetryLater(delay_level=18)
        case _:
            pass


def test_every_message_that_is_sent_has_a_trace_that_is_found_by_its_id() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker() as broker:
            async with Producer(group="orders", namesrv=broker.namesrv, trace=True) as producer:
                one = await producer.send(Message("OrderTopic", b"paid", tags="paid", keys=["o-17"]))
                late = await producer.send(Message("OrderTopic", b"paid", delay_level=1))
                batch = await producer.send_batch([Message("OrderTopic", b"1"), Message("OrderTopic", b"22")])
            (trace,) = await find_traces(broker.address, one.message_id)
            assert isinstance(trace, SendTrace)
            assert trace == SendTrace(
                timestamp_ms=trace.timestamp_ms,
                region="DefaultRegion",
                group="orders",
                topic="OrderTopic",
                message_id=one.message_id,
                tags="paid",
                keys="o-17",
                store_host=broker.address,
                body_bytes=4,
                cost_ms=trace.cost_ms,
                kind=TraceKind.NORMAL,
                offset_id=one.offset_id,
                is_ok=True,
            )
            (trace,) = await find_traces(broker.address, late.message_id)
            assert isinstance(trace, SendTrace)
            assert trace.kind is TraceKind.DELAY
            ids = zip(batch.message_id.split(","), batch.offset_id.split(","), (1, 2), strict=True)
            for message_id, offset_id, size in ids:
                (trace,) = await find_traces(broker.address, message_id)
                assert isinstance(trace, SendTrace)
                assert (trace.offset_id, trace.body_bytes) == (offset_id, size)

    asyncio.run(scenario())


def test_traces_are_sent_while_the_producer_is_open_and_found_by_the_keys_of_messages() -> None:
    async def scenario() -> None:
        async with (
            EmbeddedBroker() as broker,
            Producer(group="orders", namesrv=broker.namesrv, trace=True) as producer,
        ):
            receipt = await producer.send(Message("OrderTopic", b"paid", keys=["o-17"]))
            (found,) = await find_messages(broker.address, TRACE_TOPIC, "o-17")
            assert receipt.message_id in found.keys

    asyncio.run(scenario())


def test_a_producer_that_is_not_told_to_trace_does_not() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker() as broker:
            async with Producer(group="orders", namesrv=broker.namesrv) as producer:
                await producer.send(Message("OrderTopic", b"paid"))
            async with Producer(group="others", namesrv=broker.namesrv) as other:
                receipt = await other.send(Message(TRACE_TOPIC, b"a probe"))
            assert receipt.queue_offset == 0

    asyncio.run(scenario())


def test_traces_that_no_broker_takes_hold_up_nothing() -> None:
    async def scenario() -> None:
        settings = {"autoCreateTopicEnable": "false"}
        async with EmbeddedBroker(topics=["OrderTopic"], settings=settings) as broker:
            async with Producer(group="orders", namesrv=broker.namesrv, trace=True) as producer:
                assert (await producer.send(Message("OrderTopic", b"paid"))).queue_offset == 0
            async with Producer(group="others", namesrv=broker.namesrv) as other:
                with pytest.raises(TopicNotFound):
                    await other.send(Message(TRACE_TOPIC, b"a probe"))

    asyncio.run(scenario())


def test_every_message_that_is_handled_has_traces_of_its_begin_and_its_end() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={"OrderTopic": 1}) as broker:
            async with Producer(group="orders", namesrv=broker.namesrv) as producer:
                sent = [
                    await producer.send(Message("OrderTopic", body, keys=[body.decode()]))
                    for body in (b"good", b"bad", b"later")
                ]
            async with consumer_of(broker) as consumer, asyncio.TaskGroup() as tasks:
                running = tasks.create_task(consumer.run(handle, concurrency=1))
                told = [await find_traces(broker.address, one.message_id, count=2) for one in sent]
                running.cancel()
        results = (ConsumeResult.SUCCESS, ConsumeResult.EXCEPTION, ConsumeResult.FAILED)
        for (before, after, *_), one, body, result in zip(
            told, sent, ("good", "bad", "later"), results, strict=True
        ):
            assert isinstance(before, BeforeTrace)
            assert isinstance(after, AfterTrace)
            assert (before.group, before.message_id, before.keys) == ("billing", one.message_id, body)
            assert (before.retry_count, before.region) == (0, "DefaultRegion")
            assert after.request_id == before.request_id
            assert (after.group, after.keys, after.result) == ("billing", body, result)

    asyncio.run(scenario())


def test_what_a_loop_acknowledges_has_a_trace_when_the_block_ends() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={"OrderTopic": 1}) as broker:
            async with Producer(group="orders", namesrv=broker.namesrv) as producer:
                sent = await producer.send(Message("OrderTopic", b"good"))
            async with consumer_of(broker) as consumer:
                async for _ in consumer:
                    break
            before, after = await find_traces(broker.address, sent.message_id, count=2)
            assert isinstance(before, BeforeTrace)
            assert isinstance(after, AfterTrace)
            assert after.is_ok

    asyncio.run(scenario())


@pytest.mark.parametrize("state", [EndState.COMMIT, EndState.ROLLBACK])
def test_a_transaction_has_traces_of_its_half_and_of_its_end(state: EndState) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics=["OrderTopic"]) as broker:
            async with transacting(broker, {}) as producer:
                half = await transact(producer, fails=state is EndState.ROLLBACK)
            sent, ended = await find_traces(broker.address, half.message_id, count=2)
            assert isinstance(sent, SendTrace)
            assert sent.kind is TraceKind.HALF
            assert ended == EndTrace(
                timestamp_ms=ended.timestamp_ms,
                region="DefaultRegion",
                group="orders",
                topic="OrderTopic",
                message_id=half.message_id,
                tags=None,
                keys="o-17",
                store_host=broker.address,
                transaction_id=half.message_id,
                state=state,
                is_from_check=False,
            )

    asyncio.run(scenario())


def test_the_end_of_a_transaction_that_a_broker_asked_about_has_a_trace() -> None:
    async def scenario() -> None:
        settings = {"transactionCheckInterval": "100", "transactionTimeOut": "100"}
        async with EmbeddedBroker(topics=["OrderTopic"], settings=settings) as broker:
            half = await leave_open(broker)
            async with transacting(broker, {half.message_id: Outcome.COMMIT}):
                (ended, *_) = await find_traces(broker.address, half.message_id)
            assert isinstance(ended, EndTrace)
            assert (ended.state, ended.is_from_check) == (EndState.COMMIT, True)
            assert (ended.topic, ended.transaction_id) == ("OrderTopic", half.message_id)

    asyncio.run(scenario())


@pytest.mark.parametrize("trace", ["false", None, 1])
def test_the_switch_is_a_bool_and_nothing_else(trace: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^trace="):
        Producer(group="orders", trace=trace)
    with pytest.raises(InvalidArgument, match=r"^trace="):
        Consumer(group="orders", topics={"OrderTopic": "*"}, trace=trace)


def test_a_message_carries_the_context_of_the_span_it_was_sent_in() -> None:
    async def scenario() -> None:
        async with (
            EmbeddedBroker() as broker,
            Producer(group="orders", namesrv=broker.namesrv) as producer,
        ):
            with SPANS.start_as_current_span("sell") as sold:
                receipt = await producer.send(Message("OrderTopic", b"paid", properties={"shop": "7"}))
            outside = await producer.send(Message("OrderTopic", b"paid"))
            (message,) = await find_messages(broker.address, "OrderTopic", receipt.message_id)
            assert message.properties["shop"] == "7"
            with SPANS.start_as_current_span("bill", context=extract_context(message)) as billed:
                assert isinstance(billed, ReadableSpan)
                assert billed.parent is not None
                assert billed.parent.span_id == sold.get_span_context().span_id
            (message,) = await find_messages(broker.address, "OrderTopic", outside.message_id)
            assert extract_context(message) == {}

    asyncio.run(scenario())


def test_a_context_that_the_program_put_into_a_message_is_not_replaced() -> None:
    async def scenario() -> None:
        async with (
            EmbeddedBroker() as broker,
            Producer(group="orders", namesrv=broker.namesrv) as producer,
        ):
            with SPANS.start_as_current_span("sell") as sold:
                message = Message("OrderTopic", b"paid", properties=inject_context({}))
            with SPANS.start_as_current_span("flush"):
                receipt = await producer.send_batch([message, Message("OrderTopic", b"other")])
            (found,) = await find_messages(broker.address, "OrderTopic", receipt.message_id.split(",")[0])
            assert f"{sold.get_span_context().span_id:016x}" in found.properties["traceparent"]

    asyncio.run(scenario())
