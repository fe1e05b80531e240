import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from tanist.client.errors import NoRoute
from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.session.tasks import OwnedTasks
from tanist.client.tracing import tracer as tracing
from tanist.client.tracing.trace_format import (
    AfterTrace,
    BeforeTrace,
    ConsumeResult,
    EndState,
    EndTrace,
    SendTrace,
    Trace,
    TraceKind,
    decode_traces,
)
from tanist.client.tracing.trace_queue import BATCH_COUNT
from tanist.client.tracing.tracer import Tracer, trace_group
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tests.support.clocks import FakeClock
from tests.support.conditions import until
from tests.support.received import received_with

QUEUE = MessageQueue(topic="OrderTopic", broker_name="broker-a", queue_id=0)
NOW_MS = 1_700_000_000_000


class Traced:
    """A tracer, and what it sent."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.failures: list[Exception] = []
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.clock = FakeClock(NOW_MS)
        self.tasks = OwnedTasks()
        self.tracer = Tracer(
            "billing",
            send=self._send,
            address_of={"broker-a": "127.0.0.1:10911"}.get,
            tasks=self.tasks,
            clock=self.clock,
        )

    async def _send(self, message: Message) -> None:
        await self.may_send.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.messages.append(message)

    @property
    def traces(self) -> list[Trace]:
        return decode_traces("".join(message.body.decode() for message in self.messages))


@asynccontextmanager
async def traced() -> AsyncGenerator[Traced]:
    traced = Traced()
    traced.tracer.open()
    try:
        yield traced
    finally:
        await traced.tracer.close()
        await traced.tasks.close()


def receipt(number: int = 1, **fields: Any) -> Receipt:
    known: dict[str, Any] = {"message_id": f"M{number}", "offset_id": f"O{number}"} | fields
    return Receipt(queue=QUEUE, queue_offset=QueueOffset(number), **known)


def test_a_send_is_told_with_all_that_is_known_of_it() -> None:
    async def scenario() -> None:
        async with traced() as site:
            message = Message("OrderTopic", b"paid", tags="paid", keys=["o-17", "o-18"])
            site.tracer.sent(message, receipt(region="north"), started_ms=NOW_MS - 12)
        assert site.traces == [
            SendTrace(
                timestamp_ms=NOW_MS - 12,
                region="north",
                group="billing",
                topic="OrderTopic",
                message_id="M1",
                tags="paid",
                keys="o-17 o-18",
                store_host="127.0.0.1:10911",
                body_bytes=4,
                cost_ms=12,
                kind=TraceKind.NORMAL,
                offset_id="O1",
                is_ok=True,
            )
        ]
        assert [(one.topic, one.keys) for one in site.messages] == [
            ("RMQ_SYS_TRACE_TOPIC", ["M1", "o-17", "o-18"])
        ]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("message", "is_half", "kind"),
    [
        (Message("T", b"1"), False, TraceKind.NORMAL),
        (Message("T", b"1"), True, TraceKind.HALF),
        (Message("T", b"1", delay_level=3), True, TraceKind.DELAY),
        (Message("T", b"1", delay_s=1.5), False, TraceKind.DELAY),
        (Message("T", b"1", deliver_at=datetime(2030, 1, 1, tzinfo=UTC)), False, TraceKind.DELAY),
    ],
)
def test_a_send_is_told_with_its_kind(message: Message, is_half: bool, kind: TraceKind) -> None:
    async def scenario() -> None:
        async with traced() as site:
            site.tracer.sent(message, receipt(), started_ms=NOW_MS, is_half=is_half)
        (trace,) = site.traces
        assert isinstance(trace, SendTrace)
        assert trace.kind is kind

    asyncio.run(scenario())


def test_a_send_that_is_not_as_safe_as_it_should_be_is_told_as_failed() -> None:
    async def scenario() -> None:
        async with traced() as site:
            site.tracer.sent(
                Message("T", b"1"), receipt(status=SendStatus.FLUSH_SLAVE_TIMEOUT), started_ms=NOW_MS
            )
        (trace,) = site.traces
        assert isinstance(trace, SendTrace)
        assert not trace.is_ok

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("offset_id", "expected"), [("O1,O2", ["O1", "O2"]), ("O1", ["O1", "O1"]), ("O1,O2,O3", ["O1,O2,O3"] * 2)]
)
def test_each_message_of_a_batch_is_told_by_itself(offset_id: str, expected: list[str]) -> None:
    async def scenario() -> None:
        async with traced() as site:
            messages = [Message("T", b"1", keys=["k1"]), Message("T", b"22", tags="b")]
            whole = receipt(message_id="M1,M2", offset_id=offset_id)
            site.tracer.sent_batch(messages, whole, started_ms=NOW_MS)
        first, second = site.traces
        assert isinstance(first, SendTrace)
        assert isinstance(second, SendTrace)
        assert (first.message_id, first.keys, first.tags, first.body_bytes) == ("M1", "k1", None, 1)
        assert (second.message_id, second.keys, second.tags, second.body_bytes) == ("M2", None, "b", 2)
        assert [first.offset_id, second.offset_id] == expected

    asyncio.run(scenario())


def test_a_send_to_a_broker_that_wants_no_traces_is_not_told() -> None:
    async def scenario() -> None:
        async with traced() as site:
            site.tracer.sent(Message("T", b"1"), receipt(is_traced=False), started_ms=NOW_MS)
        assert site.messages == []

    asyncio.run(scenario())


def test_a_handling_is_told_before_and_after_under_one_request() -> None:
    async def scenario() -> None:
        async with traced() as site:
            for result in (ConsumeResult.EXCEPTION, ConsumeResult.SUCCESS):
                message = received_with(
                    {"UNIQ_KEY": "M1", "KEYS": "o-17", "MSG_REGION": "north"}, reconsume_times=2
                )
                site.tracer.before(message)
                site.clock.advance_ms(30)
                site.tracer.after(message, result)
        first, failed, second, done = site.traces
        assert isinstance(first, BeforeTrace)
        assert isinstance(second, BeforeTrace)
        assert first.request_id != second.request_id
        assert (first.timestamp_ms, first.region, first.retry_count) == (NOW_MS, "north", 2)
        assert failed == AfterTrace(
            timestamp_ms=NOW_MS + 30,
            group="billing",
            request_id=first.request_id,
            message_id="M1",
            keys="o-17",
            cost_ms=30,
            is_ok=False,
            result=ConsumeResult.EXCEPTION,
        )
        assert isinstance(done, AfterTrace)
        assert (done.request_id, done.is_ok) == (second.request_id, True)

    asyncio.run(scenario())


def test_a_clock_that_goes_back_makes_no_handling_shorter_than_nothing() -> None:
    async def scenario() -> None:
        async with traced() as site:
            message = received_with()
            site.tracer.before(message)
            site.clock.set_now_ms(NOW_MS - 500)
            site.tracer.after(message, ConsumeResult.SUCCESS)
        trace = site.traces[-1]
        assert isinstance(trace, AfterTrace)
        assert trace.cost_ms == 0

    asyncio.run(scenario())


def test_the_end_of_a_handling_is_told_once() -> None:
    async def scenario() -> None:
        async with traced() as site:
            message = received_with()
            site.tracer.before(message)
            site.tracer.after(message, ConsumeResult.EXCEPTION)
            site.tracer.after(message, ConsumeResult.SUCCESS)
        assert [type(trace) for trace in site.traces] == [BeforeTrace, AfterTrace]

    asyncio.run(scenario())


def test_messages_that_are_not_to_be_traced_and_traces_themselves_are_not() -> None:
    async def scenario() -> None:
        async with traced() as site:
            for message in (received_with({"TRACE_ON": "false"}), received_with(topic="RMQ_SYS_TRACE_TOPIC")):
                site.tracer.before(message)
                site.tracer.after(message, ConsumeResult.SUCCESS)
        assert site.messages == []

    asyncio.run(scenario())


def test_the_end_of_a_transaction_is_told() -> None:
    async def scenario() -> None:
        async with traced() as site:
            site.tracer.ended(
                Message("OrderTopic", b"paid", tags="paid"),
                message_id="M1",
                transaction_id="X1",
                broker_name="broker-b",
                state=EndState.ROLLBACK,
                is_from_check=True,
            )
        assert site.traces == [
            EndTrace(
                timestamp_ms=NOW_MS,
                region="DefaultRegion",
                group="billing",
                topic="OrderTopic",
                message_id="M1",
                tags="paid",
                keys=None,
                store_host=None,
                transaction_id="X1",
                state=EndState.ROLLBACK,
                is_from_check=True,
            )
        ]

    asyncio.run(scenario())


def test_traces_are_sent_while_the_client_goes_on() -> None:
    async def scenario() -> None:
        async with traced() as site:
            site.tracer.sent(Message("T", b"1"), receipt(), started_ms=NOW_MS)
            await until(lambda: len(site.messages) == 1)

    asyncio.run(scenario())


def test_a_full_batch_does_not_wait_for_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(tracing, "PERIOD_S", 3600)
        async with traced() as site:
            for number in range(BATCH_COUNT + 1):
                site.tracer.sent(Message("T", b"1"), receipt(number), started_ms=NOW_MS)
            await until(lambda: len(site.traces) == BATCH_COUNT + 1)
            assert len(site.messages) == 2

    asyncio.run(scenario())


def test_what_can_not_be_sent_is_dropped_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with traced() as site:
            site.failures = [NoRoute("RMQ_SYS_TRACE_TOPIC", "not there")] * 2
            for number in range(3 * BATCH_COUNT):
                site.tracer.sent(Message("T", b"1"), receipt(number), started_ms=NOW_MS)
            await until(lambda: bool(site.messages))
            assert site.tracer.dropped_count == 2 * BATCH_COUNT
        assert len(site.traces) == BATCH_COUNT

    with caplog.at_level(logging.WARNING, logger=tracing.__name__):
        asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        f"traces dropped group=billing count={count} reason=no route to topic RMQ_SYS_TRACE_TOPIC: not there"
        for count in (BATCH_COUNT, 2 * BATCH_COUNT)
    ]


def test_what_comes_faster_than_it_can_be_sent_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(tracing, "QUEUE_LIMIT", 5)
        async with traced() as site:
            for number in range(8):
                site.tracer.sent(Message("T", b"1"), receipt(number), started_ms=NOW_MS)
            assert site.tracer.dropped_count == 3
        assert [trace.message_id for trace in site.traces] == ["M0", "M1", "M2", "M3", "M4"]

    asyncio.run(scenario())


def test_closing_does_not_wait_for_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(tracing, "FAREWELL_S", 0.05)
        async with traced() as site:
            site.may_send.clear()
            for number in range(BATCH_COUNT + 7):
                site.tracer.sent(Message("T", b"1"), receipt(number), started_ms=NOW_MS)
        assert site.messages == []
        assert site.tracer.dropped_count == BATCH_COUNT + 7

    asyncio.run(scenario())
    assert "reason=the client was closed before they were sent" in caplog.text


def test_a_tracer_that_was_never_opened_can_be_closed() -> None:
    async def scenario() -> None:
        await Traced().tracer.close()

    asyncio.run(scenario())


def test_traces_go_out_under_a_group_that_names_whose_they_are() -> None:
    assert trace_group("billing", is_consumer=True) == "_INNER_TRACE_PRODUCER-billing-CONSUME"
    assert trace_group("orders", is_consumer=False) == "_INNER_TRACE_PRODUCER-orders-PRODUCE"
