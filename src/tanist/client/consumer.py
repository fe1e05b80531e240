"""The consumer: what programs read messages with."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.client.checks import check_flag, check_number
from tanist.client.consuming.consumer_arguments import (
    DEFAULT_CONCURRENCY,
    DEFAULT_PREFETCH_BYTES,
    DEFAULT_PREFETCH_COUNT,
    check_handler,
    check_offset,
    check_offsets_dir,
    check_place,
    check_pull_count,
    check_queue,
    make_membership,
    make_retry_rules,
)
from tanist.client.consuming.consumption import Consumption
from tanist.client.consuming.handling import MessageHandler
from tanist.client.consuming.message_iterator import MessageIterator
from tanist.client.consuming.subscriptions import Start, Topics
from tanist.client.errors import ClientClosed, CommitFailed, InvalidArgument
from tanist.client.pulling.fetching import DEFAULT_COUNT
from tanist.client.pulling.pull_by_hand import pull_by_hand
from tanist.client.queues.allocation import AllocationStrategy, Averagely
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.received import ReceivedMessage
from tanist.client.settings import (
    DEFAULT_NAMESRV,
    DEFAULT_TIMEOUT_S,
    MAX_TIMEOUT_S,
    Credentials,
    make_settings,
)
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.remoting.tls import TlsSettings


class Consumer:
    """Reads messages as a member of a group.

    >>> receipt = await producer.send(Message("OrderTopic", b"order 17", tags="paid"))
    >>> topics = {"OrderTopic": "paid || refunded"}
    >>> async with Consumer(group="invoices", namesrv=namesrv, topics=topics, start=Start.FIRST) as consumer:
    ...     async for message in consumer:  # acknowledged when the next one is asked for
    ...         print(message.tags, message.body)  # raising redelivers it
    ...         break
    paid b'order 17'

    The members of a group share the queues of its topics; with ``broadcasting`` each reads all of them.
    A message comes at least once: it may come again after a crash, or when members come and go.

    Messages are fetched ahead, up to ``prefetch_count`` and ``prefetch_bytes`` of all queues together. With
    ``orderly`` each queue's messages are handled one after the other, and by one member only.

    A message that fails is given to the group again by its broker, after ``max_retries`` times to the
    group's dead letters. In order its queue waits and tries again after 1 s, for ever unless
    ``max_retries`` says otherwise. Broadcasting, it comes again here, and is then given up.
    """

    def __init__(
        self,
        *,
        group: str,
        topics: Topics,
        namesrv: str | Sequence[str] = DEFAULT_NAMESRV,
        broadcasting: bool = False,
        orderly: bool = False,
        start: Start | datetime = Start.LAST,
        strategy: AllocationStrategy | None = None,
        prefetch_count: int = DEFAULT_PREFETCH_COUNT,
        prefetch_bytes: int = DEFAULT_PREFETCH_BYTES,
        max_retries: int | None = None,
        credentials: Credentials | None = None,
        tls: TlsSettings | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        instance: str | None = None,
        offsets_dir: Path | str | None = None,
        trace: bool = False,
    ) -> None:
        """Whatever is wrong with an argument is told here.

        ``topics`` says which messages of which topics: ``"*"``, tags as ``"a || b"``, or ``Sql("x > 3")``.
        ``start`` is where a group begins that was never here. All members of a group need the same
        ``strategy``; Averagely is that of all clients. ``max_retries`` is 16 if it is not given, and
        without end in order. ``offsets_dir`` is where a broadcasting consumer keeps its offsets.
        With ``trace`` what is handled is told to the topic of traces, where ``mqadmin queryMsgTraceById``
        finds it.
        """
        self._settings = make_settings(
            namesrv=namesrv, credentials=credentials, tls=tls, timeout_s=timeout_s, instance=instance
        )
        self._member = make_membership(
            group=group,
            topics=topics,
            broadcasting=broadcasting,
            orderly=orderly,
            start=start,
            strategy=Averagely() if strategy is None else strategy,
            prefetch_count=prefetch_count,
            prefetch_bytes=prefetch_bytes,
            sub_version=self._settings.clock.now_ms(),
        )
        self._rules = make_retry_rules(self._member, max_retries)
        check_flag("trace", trace)
        self._is_traced = trace
        self._offsets_dir = check_offsets_dir(offsets_dir, is_broadcasting=broadcasting)
        self._consumption: Consumption | None = None

    async def __aenter__(self) -> Self:
        if self._consumption is not None:
            raise RuntimeError("the consumer is open already")
        consumption = Consumption(
            self._settings, self._member, self._rules, self._offsets_dir, is_traced=self._is_traced
        )
        await consumption.open()
        self._consumption = consumption
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        consumption = self._open()
        self._consumption = None
        await consumption.close(error)

    def __aiter__(self) -> MessageIterator:
        """The messages, as they come; the loop ends when the consumer is closed.

        A message is acknowledged when the next one is asked for, and the last one when the ``async with``
        block ends without an exception. An exception that leaves the block redelivers it.
        """
        return self._open().loops.begin()

    async def run(self, handler: MessageHandler, *, concurrency: int = DEFAULT_CONCURRENCY) -> None:
        """Have ``handler`` work on messages, ``concurrency`` of them at a time, until it is cancelled.

        >>> billed = asyncio.Queue()
        >>> async def bill(message: ReceivedMessage) -> None:
        ...     await billed.put(message.body)
        >>> running = asyncio.create_task(consumer.run(bill, concurrency=16))
        >>> receipt = await producer.send(Message("OrderTopic", b"order 17"))
        >>> await billed.get()
        b'order 17'
        >>> running.cancel()
        True

        A message is acknowledged when its handler returns, and comes again if it raises; RetryLater says
        when. Returns when the consumer is closed.
        """
        await self._open().run(check_handler(handler, concurrency), concurrency)

    @property
    def client_id(self) -> str:
        """The name by which the members of the group know this one."""
        return self._open().session.client_id

    @property
    def assignment(self) -> frozenset[MessageQueue]:
        """The queues that are this member's now, that of the group's retries included.

        >>> sorted(queue.queue_id for queue in consumer.assignment if queue.topic == "OrderTopic")
        [0, 1, 2, 3]
        """
        return frozenset(self._open().owned.by_queue)

    def pause(self, *queues: MessageQueue) -> None:
        """Read and hand out nothing of these queues, of all if none is given, until ``resume``.

        >>> consumer.pause(*consumer.assignment)
        >>> consumer.resume()
        """
        paused = self._open().owned.paused
        for owned in self._owned(queues):
            paused.add(owned.queue)
            owned.is_paused = True

    def resume(self, *queues: MessageQueue) -> None:
        """Go on with queues that were paused, with all if none is given.

        >>> consumer.pause()
        >>> consumer.resume(*consumer.assignment)
        """
        consumption = self._open()
        if not queues:
            consumption.owned.paused.clear()
        for owned in self._owned(queues):
            consumption.owned.paused.discard(owned.queue)
            owned.is_paused = False
            owned.wake_pull.set()
            consumption.delivery.release(owned)

    async def seek(self, queue: MessageQueue, offset: int | datetime) -> None:
        """Go on with one of this member's queues at another offset, or at a time.

        >>> receipt = await producer.send(Message("OrderTopic", b"order 17"))
        >>> message = await anext(aiter(consumer))
        >>> await consumer.seek(message.queue, message.queue_offset)
        >>> (await anext(aiter(consumer))).body
        b'order 17'
        >>> from datetime import UTC, timedelta
        >>> await consumer.seek(message.queue, datetime.now(UTC) - timedelta(hours=1))

        Messages in hand do not count any more: what is acknowledged is what comes from there on.
        """
        consumption = self._open()
        place = check_place(offset)
        (owned,) = self._owned([check_queue(queue)])
        to = await consumption.offset_at(owned.queue, place)
        if not await consumption.rebalancer.seek(queue, to):
            raise InvalidArgument("queue", queue, "it went to another member of the group meanwhile")

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_count: int = DEFAULT_COUNT,
        timeout_s: float | None = None,
    ) -> list[ReceivedMessage]:
        """Read messages of any queue from an offset on, by hand: nothing is acknowledged or redelivered.

        >>> receipt = await producer.send(Message("OrderTopic", b"order 17"))
        >>> await consumer.pull(receipt.queue, receipt.queue_offset, max_count=10)
        [<message ... topic=OrderTopic ...>]

        Waits up to ``timeout_s`` for the first message and returns none if there is none. Raises
        InvalidArgument if the queue does not have the offset.
        """
        consumption = self._open()
        check_queue(queue)
        check_pull_count(max_count)
        wait_s = self._settings.timeout_s if timeout_s is None else timeout_s
        check_number("timeout_s", wait_s, least=0.001, most=MAX_TIMEOUT_S)
        return await pull_by_hand(
            consumption.fetcher,
            queue,
            QueueOffset(check_offset(offset)),
            subscription=self._member.subscriptions.get(queue.topic),
            max_count=max_count,
            timeout_s=wait_s,
        )

    async def lag(self) -> dict[MessageQueue, int]:
        """How many messages of each of its queues the group has not acknowledged yet.

        >>> consumer.pause()
        >>> receipt = await producer.send(Message("OrderTopic", b"order 17"))
        >>> (await consumer.lag())[receipt.queue]
        1
        """
        consumption = self._open()
        queues = tuple(consumption.owned.by_queue.items())
        # All are waited for, also when one fails: nothing goes on that nobody waits for.
        asked = (consumption.calls.max_offset(queue) for queue, _ in queues)
        ends = await asyncio.gather(*asked, return_exceptions=True)
        lags: dict[MessageQueue, int] = {}
        for (queue, owned), end in zip(queues, ends, strict=True):
            if isinstance(end, BaseException):
                raise end
            lags[queue] = max(0, end - owned.cached.consumer_offset)
        return lags

    async def commit(self) -> None:
        """Have what is acknowledged kept now, and not only within 5 s. Raises CommitFailed.

        >>> receipt = await producer.send(Message("OrderTopic", b"order 17"))
        >>> async for message in consumer:
        ...     break
        >>> await consumer.commit()
        """
        if failed := await self._open().owned.persist():
            raise CommitFailed(self._member.group, failed)

    def _open(self) -> Consumption:
        if self._consumption is None:
            raise ClientClosed("consumer")
        return self._consumption

    def _owned(self, queues: Sequence[MessageQueue]) -> list[OwnedQueue]:
        owned = self._open().owned.by_queue
        for queue in queues:
            if check_queue(queue) not in owned:
                raise InvalidArgument("queue", queue, "it is not this member's now; see consumer.assignment")
        return [owned[queue] for queue in queues] if queues else list(owned.values())
