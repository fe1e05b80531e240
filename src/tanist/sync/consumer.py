"""A consumer that blocks: the one of ``tanist.client`` in a thread."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Required, Self, TypedDict, Unpack

from tanist import client
from tanist.client import (
    AllocationStrategy,
    ClientClosed,
    Credentials,
    MessageQueue,
    ReceivedMessage,
    Start,
    TlsSettings,
)
from tanist.client.checks import check_plain
from tanist.client.consuming.consumer_arguments import check_concurrency
from tanist.client.consuming.message_iterator import MessageIterator
from tanist.client.consuming.subscriptions import Topics
from tanist.sync.loop_thread import LoopThread


class ConsumerSettings(TypedDict, total=False):
    """The arguments of a consumer: those of ``tanist.client.Consumer``, with their defaults."""

    group: Required[str]
    topics: Required[Topics]
    namesrv: str | Sequence[str]
    broadcasting: bool
    orderly: bool
    start: Start | datetime
    strategy: AllocationStrategy | None
    prefetch_count: int
    prefetch_bytes: int
    max_retries: int | None
    credentials: Credentials | None
    tls: TlsSettings | None
    timeout_s: float
    instance: str | None
    offsets_dir: Path | str | None
    trace: bool


class Consumer:
    """Gets messages, one after the other or with ``run`` many at a time.

    A message is acknowledged when the next one is asked for, or when the block ends; if it ends with an
    exception the message comes again.

    >>> receipt = producer.send(Message("OrderTopic", b"paid"))
    >>> topics = {"OrderTopic": "*"}
    >>> with Consumer(group="invoices", namesrv=namesrv, topics=topics, start=Start.FIRST) as consumer:
    ...     for message in consumer:
    ...         print(message.body)
    ...         break
    b'paid'
    """

    def __init__(self, **settings: Unpack[ConsumerSettings]) -> None:
        self._consumer = client.Consumer(**settings)
        self._thread = LoopThread("consumer")
        self._running: set[Future[None]] = set()

    def __enter__(self) -> Self:
        self._thread.enter(self._consumer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.leave(self._consumer, error)

    def __iter__(self) -> "Messages":
        """The messages, as they come; the loop ends when another thread closes the consumer."""
        thread = self._thread
        return Messages(thread, thread.apply(self._consumer.__aiter__))

    def run(self, handler: Callable[[ReceivedMessage], object], *, concurrency: int = 16) -> None:
        """Call ``handler`` with every message, in as many threads as ``concurrency`` says, until ``stop``.

        A message whose handler raises comes again.

        >>> receipt = producer.send(Message("OrderTopic", b"order 17"))
        >>> def bill(message):
        ...     print(message.body)
        ...     consumer.stop()
        >>> consumer.run(bill, concurrency=16)
        b'order 17'
        """
        check_plain("handler", handler, "give a plain function of one message")
        check_concurrency(concurrency)
        thread = self._thread
        with ThreadPoolExecutor(concurrency, thread_name_prefix="handler") as pool:

            async def in_thread(message: ReceivedMessage) -> None:
                work = asyncio.get_running_loop().run_in_executor(pool, partial(handler, message))
                try:
                    await asyncio.shield(work)
                except asyncio.CancelledError:
                    # A thread can not be stopped: what became of the message is known when it is through.
                    await asyncio.wait([work])
                    work.result()

            running = thread.begin(self._consumer.run(in_thread, concurrency=concurrency))
            self._running.add(running)
            try:
                with suppress(CancelledError):
                    thread.wait(running)
            finally:
                self._running.discard(running)

    def stop(self) -> None:
        """End ``run``. Any thread may call it, handlers too; those at work end first."""
        for running in tuple(self._running):
            running.cancel()

    @property
    def client_id(self) -> str:
        """The name by which the members of the group know this one."""
        return self._thread.apply(lambda: self._consumer.client_id)

    @property
    def assignment(self) -> frozenset[MessageQueue]:
        """The queues that are this member's now."""
        return self._thread.apply(lambda: self._consumer.assignment)

    def pause(self, *queues: MessageQueue) -> None:
        """Pull no more from these queues, or from all.

        >>> consumer.pause(*consumer.assignment)
        >>> consumer.resume()
        """
        self._thread.apply(lambda: self._consumer.pause(*queues))

    def resume(self, *queues: MessageQueue) -> None:
        """Pull from these queues again, or from all."""
        self._thread.apply(lambda: self._consumer.resume(*queues))

    def seek(self, queue: MessageQueue, offset: int | datetime) -> None:
        """Go on at another offset of the queue, or at a time.

        >>> receipt = producer.send(Message("OrderTopic", b"order 17"))
        >>> message = next(iter(consumer))
        >>> consumer.seek(message.queue, message.queue_offset)
        >>> next(iter(consumer)).body
        b'order 17'
        """
        self._thread.call(self._consumer.seek(queue, offset))

    def pull(
        self, queue: MessageQueue, offset: int, *, max_count: int = 32, timeout_s: float | None = None
    ) -> list[ReceivedMessage]:
        """Messages of one queue from ``offset`` on, by hand: nothing is acknowledged by it.

        >>> receipt = producer.send(Message("OrderTopic", b"order 17"))
        >>> [message.body for message in consumer.pull(receipt.queue, receipt.queue_offset)]
        [b'order 17']
        """
        return self._thread.call(self._consumer.pull(queue, offset, max_count=max_count, timeout_s=timeout_s))

    def lag(self) -> dict[MessageQueue, int]:
        """How many messages each of this member's queues has that are not acknowledged.

        >>> sum(consumer.lag().values())
        0
        """
        return self._thread.call(self._consumer.lag())

    def commit(self) -> None:
        """Have the offsets kept now instead of within 5 s.

        >>> consumer.commit()
        """
        self._thread.call(self._consumer.commit())


class Messages:
    """One loop over messages. Asking for the next message acknowledges the one before."""

    def __init__(self, thread: LoopThread, messages: MessageIterator) -> None:
        self._thread = thread
        self._messages = messages

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ReceivedMessage:
        try:
            return self._thread.call(self._messages.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        except ClientClosed:
            # It began while the consumer was open. In a forked process, though, nobody has closed it.
            if self._thread.is_open:
                raise
            raise StopIteration from None
