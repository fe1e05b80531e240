"""A producer that blocks: the one of ``tanist.client`` in a thread."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Required, Self, TypedDict, Unpack

from tanist import client
from tanist.client import (
    Credentials,
    Message,
    MessageQueue,
    Outcome,
    Receipt,
    ReceivedMessage,
    TlsSettings,
)
from tanist.client.checks import check_plain
from tanist.sync.loop_thread import LoopThread


class ProducerSettings(TypedDict, total=False):
    """The arguments of a producer: those of ``tanist.client.Producer``, with their defaults."""

    group: Required[str]
    namesrv: str | Sequence[str]
    credentials: Credentials | None
    tls: TlsSettings | None
    timeout_s: float
    instance: str | None
    retries: int
    max_message_bytes: int
    compress_from_bytes: int
    compression: str | None
    trace: bool


class Producer:
    """Sends messages; each call waits for its answer. Threads may share one producer.

    >>> with Producer(group="orders", namesrv=namesrv) as producer:
    ...     receipt = producer.send(Message("OrderTopic", b"paid", tags="paid", keys=["o-17"]))
    >>> print(receipt.status)
    SEND_OK
    """

    def __init__(
        self,
        *,
        on_check: Callable[[ReceivedMessage], Outcome] | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        """``on_check`` is called in a thread, when a broker asks what became of a transaction."""
        if on_check is not None:
            check_plain("on_check", on_check, "give a plain function that returns an Outcome")
        self._producer = client.Producer(
            on_check=None if on_check is None else _in_thread(on_check), **settings
        )
        self._thread = LoopThread("producer")

    def __enter__(self) -> Self:
        self._thread.enter(self._producer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.leave(self._producer, error)

    def send(
        self, message: Message, *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> Receipt:
        """Send one message and wait until a broker has it.

        >>> receipt = producer.send(Message("OrderTopic", b"made", sharding_key="o-17"))
        >>> producer.send(Message("OrderTopic", b"paid", sharding_key="o-17")).queue == receipt.queue
        True
        """
        return self._thread.call(self._producer.send(message, queue=queue, timeout_s=timeout_s))

    def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send one message without an answer: it may be lost unnoticed.

        >>> producer.send_oneway(Message("OrderTopic", b"..."))
        """
        self._thread.call(self._producer.send_oneway(message, queue=queue))

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_s: float | None = None,
    ) -> Receipt:
        """Send messages of one topic in one request: all are stored or none.

        >>> receipt = producer.send_batch([Message("OrderTopic", b"1"), Message("OrderTopic", b"2")])
        >>> len(receipt.message_id.split(","))
        2
        """
        return self._thread.call(self._producer.send_batch(messages, queue=queue, timeout_s=timeout_s))

    @contextmanager
    def transaction(self, message: Message) -> Generator[Receipt]:
        """Send a message that consumers see once the block has ended well; raising takes it back.

        >>> paid = set()
        >>> with producer.transaction(Message("OrderTopic", b"...", keys=["o-17"])) as receipt:
        ...     paid.add("o-17")
        """
        thread, block = self._thread, self._producer.transaction(message)
        receipt = thread.call(block.__aenter__())
        try:
            yield receipt
        except BaseException as error:
            thread.call(block.__aexit__(type(error), error, error.__traceback__))
            raise
        thread.call(block.__aexit__(None, None, None))

    def request(self, message: Message, *, timeout_s: float = 3.0) -> ReceivedMessage:
        """Send a message and wait for what some consumer replies to it.

        >>> import threading
        >>> def answer(message):
        ...     producer.reply(message, b"42.00")
        ...     consumer.stop()
        >>> answering = threading.Thread(target=consumer.run, args=(answer,))
        >>> answering.start()
        >>> producer.request(Message("OrderTopic", b"o-17"), timeout_s=5).body
        b'42.00'
        >>> answering.join()
        """
        return self._thread.call(self._producer.request(message, timeout_s=timeout_s))

    def reply(
        self, received: ReceivedMessage, body: bytes, *, properties: Mapping[str, str] | None = None
    ) -> None:
        """Answer a message that was sent with ``request``, where there is an example."""
        self._thread.call(self._producer.reply(received, body, properties=properties))


def _in_thread(
    check: Callable[[ReceivedMessage], Outcome],
) -> Callable[[ReceivedMessage], Awaitable[Outcome]]:
    async def asked(message: ReceivedMessage) -> Outcome:
        return await asyncio.to_thread(check, message)

    return asked
