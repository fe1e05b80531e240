"""Tells what became of messages, as RocketMQ's clients do, for ``mqadmin queryMsgTraceById`` and consoles.

Telling costs a send or a handler next to nothing: a trace is put into a bounded queue, and one task sends
what has gathered, every second or when a batch is full. Traces are a help, not a promise: what does not
fit or can not be sent is dropped and counted.
"""

import asyncio
import itertools
import logging
import random
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.received import ReceivedMessage
from tanist.client.session.tasks import OwnedTasks, wait_at_most
from tanist.client.tracing.trace_format import (
    AfterTrace,
    BeforeTrace,
    ConsumeResult,
    EndState,
    EndTrace,
    SendTrace,
    Trace,
    TraceKind,
)
from tanist.client.tracing.trace_queue import BATCH_COUNT, TraceQueue
from tanist.clock import Clock
from tanist.errors import MQError
from tanist.model.property_names import KEYS, MSG_REGION, TRACE_ON
from tanist.model.topics import TRACE_TOPIC
from tanist.protocol.headers.send import DEFAULT_REGION
from tanist.protocol.tags import KEY_SEPARATOR

_log = logging.getLogger(__name__)

QUEUE_LIMIT = 10_000
PERIOD_S = 1.0
FAREWELL_S = 3.0
"""How long closing waits for the last traces to be sent."""

_GROUP_PREFIX = "_INNER_TRACE_PRODUCER"


def trace_group(group: str, *, is_consumer: bool) -> str:
    """The group that the traces of a producer's or a consumer's group are sent as."""
    return f"{_GROUP_PREFIX}-{group}-{'CONSUME' if is_consumer else 'PRODUCE'}"


class Tracer:
    """The traces of one client. ``send`` sends a message of traces, and is not traced itself.

    A producer calls ``sent`` and ``ended``; a consumer ``before`` and ``after`` around each handling.
    """

    def __init__(
        self,
        group: str,
        *,
        send: Callable[[Message], Awaitable[object]],
        address_of: Callable[[str], str | None],
        tasks: OwnedTasks,
        clock: Clock,
    ) -> None:
        """``address_of`` gives the address of a broker's master."""
        self._group = group
        self._send = send
        self._address_of = address_of
        self._tasks = tasks
        self._clock = clock
        self._queue = TraceQueue(limit=QUEUE_LIMIT)
        self._unsent_count = 0
        self._told_count = 0
        self._is_due = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        # By the identity of messages: whoever handles one has it in hand until its end is told.
        self._begun: dict[int, BeforeTrace] = {}
        self._request_prefix = f"{random.getrandbits(96):024X}"
        self._request_numbers = itertools.count()

    @property
    def dropped_count(self) -> int:
        """How many traces did not fit, or could not be sent."""
        return self._queue.dropped_count + self._unsent_count

    def open(self) -> None:
        self._task = self._tasks.start(self._run(), "traces")

    async def close(self) -> None:
        """Send what is left, but do not wait for long. What is told from now on is dropped."""
        if self._task is None:
            return
        self._is_closing = True
        self._is_due.set()
        _, late = await asyncio.wait([self._task], timeout=FAREWELL_S)
        for task in late:
            task.cancel()
            await asyncio.wait([task])
        self._task = None
        self._queue.clear()
        self._tell_losses("the client was closed before they were sent")

    def sent(
        self,
        message: Message,
        receipt: Receipt,
        *,
        started_ms: int,
        is_half: bool = False,
    ) -> None:
        """A message was stored. ``is_half``: in a transaction that is open still."""
        if not receipt.is_traced:
            return
        self._put(
            SendTrace(
                timestamp_ms=started_ms,
                region=receipt.region,
                group=self._group,
                topic=message.topic,
                message_id=receipt.message_id,
                tags=message.tags,
                keys=_joined(message),
                store_host=self._address_of(receipt.queue.broker_name),
                body_bytes=len(message.body),
                cost_ms=max(0, self._clock.now_ms() - started_ms),
                kind=_kind_of(message, is_half=is_half),
                offset_id=receipt.offset_id,
                is_ok=receipt.status is SendStatus.OK,
            )
        )

    def sent_batch(self, messages: Sequence[Message], receipt: Receipt, *, started_ms: int) -> None:
        """Messages were stored as one batch. Each has a trace: RocketMQ's tools find no other ones."""
        offset_ids = receipt.offset_id.split(",")
        if len(offset_ids) != len(messages):
            offset_ids = [receipt.offset_id] * len(messages)
        message_ids = receipt.message_id.split(",")
        for message, message_id, offset_id in zip(messages, message_ids, offset_ids, strict=True):
            own = msgspec.structs.replace(receipt, message_id=message_id, offset_id=offset_id)
            self.sent(message, own, started_ms=started_ms)

    def ended(
        self,
        message: Message | ReceivedMessage,
        *,
        message_id: str,
        transaction_id: str | None,
        broker_name: str,
        state: EndState,
        is_from_check: bool = False,
    ) -> None:
        """A transaction was ended. ``is_from_check``: because a broker asked about it."""
        self._put(
            EndTrace(
                timestamp_ms=self._clock.now_ms(),
                region=DEFAULT_REGION,
                group=self._group,
                topic=message.topic,
                message_id=message_id,
                tags=message.tags,
                keys=_joined(message),
                store_host=self._address_of(broker_name),
                transaction_id=transaction_id,
                state=state,
                is_from_check=is_from_check,
            )
        )

    def before(self, message: ReceivedMessage) -> None:
        """A message is about to be handled."""
        properties = message.properties
        # A consumer of traces that traced itself would never run out of work.
        if properties.get(TRACE_ON) == "false" or message.topic == TRACE_TOPIC:
            return
        trace = BeforeTrace(
            timestamp_ms=self._clock.now_ms(),
            region=properties.get(MSG_REGION, DEFAULT_REGION),
            group=self._group,
            request_id=f"{self._request_prefix}{next(self._request_numbers) & 0xFFFFFFFF:08X}",
            message_id=message.message_id,
            retry_count=message.reconsume_times,
            keys=properties.get(KEYS),
        )
        self._begun[id(message)] = trace
        self._put(trace)

    def after(self, message: ReceivedMessage, result: ConsumeResult) -> None:
        """The message was handled, with this result. Nothing is told if ``before`` told nothing."""
        before = self._begun.pop(id(message), None)
        if before is None:
            return
        now_ms = self._clock.now_ms()
        self._put(
            AfterTrace(
                timestamp_ms=now_ms,
                group=self._group,
                request_id=before.request_id,
                message_id=before.message_id,
                keys=before.keys,
                cost_ms=max(0, now_ms - before.timestamp_ms),
                is_ok=result is ConsumeResult.SUCCESS,
                result=result,
            )
        )

    def _put(self, trace: Trace) -> None:
        self._queue.put(trace)
        if len(self._queue) >= BATCH_COUNT:
            self._is_due.set()

    async def _run(self) -> None:
        while True:
            await wait_at_most(PERIOD_S, self._is_due)
            self._is_due.clear()
            await self._flush()
            if self._is_closing:
                return

    async def _flush(self) -> None:
        while (batch := self._queue.take()) is not None:
            is_sent = False
            why = "they come faster than they can be sent"
            try:
                await self._send(Message(TRACE_TOPIC, batch.body, keys=batch.keys))
                is_sent = True
            except MQError as error:
                why = str(error)
            finally:
                self._unsent_count += 0 if is_sent else batch.trace_count
            self._tell_losses(why)

    def _tell_losses(self, why: str) -> None:
        """Warn of the first loss, and then whenever they have doubled."""
        if self.dropped_count >= max(1, 2 * self._told_count):
            self._told_count = self.dropped_count
            _log.warning("traces dropped group=%s count=%d reason=%s", self._group, self._told_count, why)


def _joined(message: Message | ReceivedMessage) -> str | None:
    return KEY_SEPARATOR.join(message.keys) or None


def _kind_of(message: Message, *, is_half: bool) -> TraceKind:
    if message.delay_level is not None or message.delay_s is not None or message.deliver_at is not None:
        return TraceKind.DELAY
    return TraceKind.HALF if is_half else TraceKind.NORMAL
