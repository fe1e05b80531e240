"""Stock producers and consumers of one line of RocketMQ, driven from here.

with StockClients("4.9.8", tmp_path) as clients, clients.producer(name_server) as producer:
    producer.send("Orders", [Outgoing(b"one"), Outgoing(b"two", tags="A")])
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tanist.model.host import pack_host
from tests.support.rocketmq.client import Sent
from tests.support.rocketmq.jars import QUICK_START
from tests.support.rocketmq.scenario import ScenarioProcess, java_clients

FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"
FROM_LAST = "CONSUME_FROM_LAST_OFFSET"
FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"

_TIMEOUT_MS = 75_000
"""Longer than a client of 4.9 takes that lost a pull and then its route, 30 s each."""
_HEARTBEAT_MS = 1_000
_STATES = {"COMMIT": "COMMIT_MESSAGE", "ROLLBACK": "ROLLBACK_MESSAGE", "UNKNOWN": "UNKNOW"}
"""The client's names, one of which it does not spell out."""


class Outgoing(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message to send. ``keys`` are separated by spaces."""

    body: bytes = msgspec.field(name="bodyBase64")
    tags: str | None = None
    keys: str | None = None
    properties: dict[str, str] | None = None
    flag: int = 0
    delay_level: int = msgspec.field(name="delayLevel", default=0)
    system_properties: dict[str, str] | None = msgspec.field(name="systemProperties", default=None)
    """What clients set by methods of their own and not as a property of the user's."""


class Delivery(msgspec.Struct, frozen=True, rename="camel"):
    """A message as a consumer was given it."""

    received_ms: int
    born_ms: int
    topic: str
    queue_id: int
    queue_offset: int
    reconsume_times: int
    message_id: str
    flag: int
    tags: str | None
    keys: str | None
    body: bytes = msgspec.field(name="bodyBase64")
    properties: dict[str, str] = {}

    @property
    def place(self) -> tuple[int, int]:
        """Which message of its topic it is."""
        return self.queue_id, self.queue_offset


class Pull(msgspec.Struct, frozen=True):
    """The answer to a pull by hand."""

    status: str
    next: int
    min: int
    max: int
    messages: list[Delivery]


class Transaction(msgspec.Struct, frozen=True, rename="camel"):
    """What came of a send in a transaction. ``queue_offset`` is that of the half."""

    status: str
    state: str
    queue_id: int
    queue_offset: int
    message_id: str
    transaction_id: str


class Streamed(msgspec.Struct, frozen=True):
    """What came of a stream of sends: the bodies that were acknowledged, and how many sends failed."""

    acknowledged: list[str]
    failures: int


def store_host(address: str) -> str:
    """How a message's id begins that this broker has stored."""
    host, _, port = address.rpartition(":")
    return pack_host(host, int(port)).hex().upper()


class Reply(msgspec.Struct, frozen=True):
    """What came back for a request."""

    body: bytes = msgspec.field(name="bodyBase64")
    properties: dict[str, str] = {}


@dataclass(frozen=True)
class _Client:
    """A client that runs until its block ends."""

    name: str
    process: ScenarioProcess

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.do("shutdown", name=self.name)

    def _do(self, step: str, **options: object) -> Any:
        return self.process.do(step, name=self.name, **options)


class Producer(_Client):
    """DefaultMQProducer."""

    def send(
        self, topic: str, messages: Sequence[Outgoing], *, mode: str = "sync", **options: object
    ) -> list[Sent]:
        """Send messages: ``sync``, ``async``, ``batch``, ``queue`` or ``selector``.

        ``queue`` wants ``brokerName`` and ``queueId``, ``selector`` the number ``selectBy``. Raises
        StepFailed with what the client threw.
        """
        sent = self._do("send", topic=topic, messages=messages, mode=mode, **options)
        return msgspec.convert(sent, list[Sent])

    def send_one_way(self, topic: str, messages: Sequence[Outgoing]) -> None:
        self._do("send", topic=topic, messages=messages, mode="one-way")

    def request(self, topic: str, body: bytes, *, timeout_ms: int = _TIMEOUT_MS) -> Reply:
        """Send a request and wait for its reply. Raises StepFailed if none comes in time."""
        reply = self._do("request", topic=topic, bodyBase64=body, timeoutMs=timeout_ms)
        return msgspec.convert(reply, Reply)

    def start_stream(self, topic: str) -> None:
        """Send numbered messages from now on, from a few threads."""
        self._do("stream", topic=topic)

    def wait_for_acknowledged(self, count: int) -> None:
        """Wait until this many messages more of the stream are acknowledged."""
        self._do("streamed", count=count, timeoutMs=_TIMEOUT_MS)

    def acknowledged_by(self, address: str, *, since_ns: int) -> int:
        """Wait for the first message of the stream that this broker acknowledged since then; when that was.

        Both times are ``time.monotonic_ns``'s.
        """
        host = store_host(address)
        return self._do("streamed-from", storeHost=host, sinceNs=since_ns, timeoutMs=_TIMEOUT_MS)

    def end_stream(self) -> Streamed:
        return msgspec.convert(self._do("end-stream"), Streamed)


class Replier(_Client):
    """A consumer that answers what it gets with ``re:`` and the same."""

    def reply(self, *, timeout_ms: int = _TIMEOUT_MS) -> str:
        """Answer the next request; the status of that send. Raises StepFailed with what the client threw."""
        return self._do("reply", timeoutMs=timeout_ms)


class TransactionProducer(_Client):
    """TransactionMQProducer. Its local transactions end as the test says."""

    def send(self, topic: str, messages: Sequence[Outgoing], *, state: str) -> list[Transaction]:
        """Send messages and end each transaction with ``state``: COMMIT, ROLLBACK or UNKNOWN."""
        sent = self._do("send-in-transaction", topic=topic, messages=messages, state=_STATES[state])
        return msgspec.convert(sent, list[Transaction])

    def answer(self, state: str) -> None:
        """Answer every question from now on with ``state``; until then nothing is known."""
        self._do("answer-questions", state=_STATES[state])

    def questions(self, count: int, *, timeout_ms: int = _TIMEOUT_MS) -> list[Delivery]:
        """Wait for this many questions, at most for the time given; the messages of all that came."""
        asked = self._do("questions", count=count, timeoutMs=timeout_ms)
        return msgspec.convert(asked, list[Delivery])


class PushConsumer(_Client):
    """DefaultMQPushConsumer."""

    def received(self, count: int, *, timeout_ms: int = _TIMEOUT_MS) -> list[Delivery]:
        """Wait for this many different messages, at most for the time given; all that came, in order."""
        received = self._do("received", count=count, timeoutMs=timeout_ms)
        return msgspec.convert(received, list[Delivery])

    def assigned(self) -> dict[int, bool]:
        """The queues that this member has now, and whether it holds their locks."""
        return msgspec.convert(self._do("assigned"), dict[int, bool], strict=False)

    def leave(self) -> None:
        """Leave the group. What was received can still be asked for."""
        self._do("leave")

    def suspend(self) -> None:
        """Pull no more. What a pull that waits is given yet is consumed."""
        self._do("suspend")

    def resume(self) -> None:
        """Pull again after ``suspend``."""
        self._do("resume")

    def rebalance(self) -> None:
        """Do at once what else happens every 30 and every 20 s: look at the routes, and share the queues."""
        self._do("rebalance")


class LiteConsumer(_Client):
    """DefaultLitePullConsumer."""

    def poll(self, count: int, *, timeout_ms: int = _TIMEOUT_MS) -> list[Delivery]:
        return msgspec.convert(self._do("poll", count=count, timeoutMs=timeout_ms), list[Delivery])

    def assigned(self) -> list[int]:
        """The queues that this member has now."""
        return self._do("polled-queues")

    def seek(self, topic: str, broker_name: str, queue_id: int, queue_offset: int) -> None:
        self._do("seek", topic=topic, brokerName=broker_name, queueId=queue_id, queueOffset=queue_offset)

    def seek_to_begin(self, topic: str, broker_name: str, queue_id: int) -> None:
        self._do("seek-to-begin", topic=topic, brokerName=broker_name, queueId=queue_id)

    def seek_to_end(self, topic: str, broker_name: str, queue_id: int) -> None:
        self._do("seek-to-end", topic=topic, brokerName=broker_name, queueId=queue_id)

    def pause(self, topic: str, broker_name: str, queue_id: int) -> None:
        """Pull no more from a queue. What a pull that waits is given yet is still polled."""
        self._do("pause-queue", topic=topic, brokerName=broker_name, queueId=queue_id)

    def resume(self, topic: str, broker_name: str, queue_id: int) -> None:
        """Pull again after ``pause``."""
        self._do("resume-queue", topic=topic, brokerName=broker_name, queueId=queue_id)

    def offset_for_time(self, topic: str, broker_name: str, queue_id: int, *, time_ms: int) -> int:
        """The first message that was stored at this time or later."""
        return self._do(
            "offset-for-time", topic=topic, brokerName=broker_name, queueId=queue_id, timeMs=time_ms
        )

    def commit(self, topic: str, broker_name: str, queue_id: int) -> None:
        self._do("commit", topic=topic, brokerName=broker_name, queueId=queue_id)

    def committed(self, topic: str, broker_name: str, queue_id: int) -> int:
        return self._do("committed", topic=topic, brokerName=broker_name, queueId=queue_id)


class PullConsumer(_Client):
    """DefaultMQPullConsumer, which names every queue and offset itself."""

    def pull(
        self,
        topic: str,
        broker_name: str,
        queue_id: int,
        queue_offset: int,
        *,
        count: int = 32,
        expression: str = "*",
        sql: str | None = None,
        is_blocking: bool = False,
    ) -> Pull:
        """Pull by tags or, where the pull does not block, by SQL."""
        pulled = self._do(
            "pull",
            topic=topic,
            brokerName=broker_name,
            queueId=queue_id,
            queueOffset=queue_offset,
            count=count,
            expression=expression,
            sql=sql,
            isBlocking=is_blocking,
        )
        return msgspec.convert(pulled, Pull)

    def bounds(self, topic: str, broker_name: str, queue_id: int, *, time_ms: int) -> dict[str, int]:
        """How many ``queues`` the topic has; ``min``, ``max``, ``atTime`` and ``earliestMs`` of this one."""
        return self._do("bounds", topic=topic, brokerName=broker_name, queueId=queue_id, timeMs=time_ms)


class StockClients:
    """Clients of one line, all in one process: a start of Java is dear.

    All sign their requests if ``accessKey`` and ``secretKey`` are given. Of all but repliers ``namespace``,
    ``usesFastPort``, ``heartbeatMs`` and ``routePollMs`` override the defaults; with ``beatsShortly``
    those of RocketMQ 5 send short heartbeats.
    """

    def __init__(self, line: str, home: Path, *, flags: Sequence[str] = QUICK_START) -> None:
        self.line = line
        self.process = java_clients(line, home, flags=flags)
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.__exit__(kind, error, trace)

    def producer(self, name_server: str, **options: object) -> Producer:
        """Start a producer.

        ``topicQueues``, ``maxMessageBytes``, ``retries`` and, of RocketMQ 5, ``compression`` override the
        client's defaults; ``isTraced`` is false, and ``traceTopic`` names another topic for traces.
        """
        return Producer(self._start("producer", name_server, "tanist-producer", **options), self.process)

    def transaction_producer(self, name_server: str, group: str, **options: object) -> TransactionProducer:
        """Start a producer of transactions. Brokers know soon that it is there to be asked."""
        options = {"heartbeatMs": _HEARTBEAT_MS, **options}
        name = self._start("transaction-producer", name_server, group, **options)
        return TransactionProducer(name, self.process)

    def push_consumer(
        self, name_server: str, group: str, topic: str, *, start: str = FROM_FIRST, **options: object
    ) -> PushConsumer:
        """Start a push consumer.

        ``expression`` names tags, ``sql`` filters by properties instead; ``isOrderly``, ``isBroadcasting``
        and ``isTraced`` are false; ``timestamp`` is for FROM_TIMESTAMP, in the client's format;
        ``maxReconsumeTimes`` and ``pullThreshold`` override the client's
        defaults. With ``rebalanceMs`` it looks at its routes and shares the queues so often. The listener
        fails the first ``failures`` times, wants the message again after ``delayLevel``, and takes
        ``consumeMs`` over each. ``isAssignedByBroker`` has the broker assign queues, which RocketMQ 5 can.
        """
        options = {"topic": topic, "expression": "*", "from": start, **options}
        return PushConsumer(self._start("push-consumer", name_server, group, **options), self.process)

    def lite_consumer(self, name_server: str, group: str, topic: str, **options: object) -> LiteConsumer:
        """Start a lite pull consumer, on some queues alone if ``brokerName`` and ``queueIds`` say which.

        ``sql`` filters by properties instead of tags. With ``isAutoCommitting`` it commits
        once a second, when it is polled.
        """
        options = {"topic": topic, "expression": "*", **options}
        return LiteConsumer(self._start("lite-consumer", name_server, group, **options), self.process)

    def replier(
        self, name_server: str, group: str, topic: str, *, is_prompt: bool, **options: object
    ) -> Replier:
        """Start a service that answers requests to a topic: at once, or when it is told to."""
        name = self._start("replier", name_server, group, topic=topic, isPrompt=is_prompt, **options)
        return Replier(name, self.process)

    def pull_consumer(self, name_server: str, group: str, **options: object) -> PullConsumer:
        """Start a pull consumer."""
        return PullConsumer(self._start("pull-consumer", name_server, group, **options), self.process)

    def _start(self, step: str, name_server: str, group: str, **options: object) -> str:
        name = f"{step}-{next(self._numbers)}"
        self.process.do(step, name=name, nameServer=name_server, group=group, **options)
        return name
