"""The producer: what programs send messages with."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from tanist.client.checks import check_async, check_flag, check_group, check_int, check_number
from tanist.client.errors import ClientClosed, InvalidArgument
from tanist.client.message import Message, Receipt
from tanist.client.received import ReceivedMessage
from tanist.client.requests.requests import Requests
from tanist.client.sending.outgoing import (
    DEFAULT_COMPRESS_FROM_BYTES,
    DEFAULT_MAX_MESSAGE_BYTES,
    OutgoingMaker,
    check_batch,
)
from tanist.client.sending.sender import Sender
from tanist.client.session.session import Session
from tanist.client.settings import (
    DEFAULT_NAMESRV,
    DEFAULT_TIMEOUT_S,
    MAX_TIMEOUT_S,
    Credentials,
    local_address,
    make_settings,
)
from tanist.client.tracing.trace_sending import make_tracer
from tanist.client.tracing.tracer import Tracer
from tanist.client.transactions.check_backs import OnCheck
from tanist.client.transactions.transactions import Transactions
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.client import HeartbeatData, ProducerData
from tanist.protocol.codes import RequestCode
from tanist.remoting import Handler
from tanist.remoting.tls import TlsSettings

DEFAULT_RETRIES = 2
_MAX_RETRIES = 100


class Producer:
    """Sends messages.

    >>> async with Producer(group="orders", namesrv=namesrv) as producer:
    ...     receipt = await producer.send(Message("OrderTopic", b"...", tags="paid", keys=["o-17"]))
    >>> print(receipt.status, receipt.queue.topic)
    SEND_OK OrderTopic

    Opening it uses no network: brokers are asked for when there is something to send. Many sends may be
    on their way at the same time; all of them share one connection to each broker.

    A send that fails is tried again, ``retries`` times and within ``timeout_s``, on another broker if there
    is one. Brokers that failed or are slow are avoided for some seconds. So a message may be stored twice
    if its first broker stored it and could not say so: consumers have to bear that. While a broker has no
    master, or is started anew, sends to it wait for that and no try is counted.

    Messages with the same sharding key are stored in the order in which their sends were begun, one after
    the other. All others may overtake each other while several are on their way.

    A topic that does not exist is made by the first message, if the brokers allow that.
    """

    def __init__(
        self,
        *,
        group: str,
        namesrv: str | Sequence[str] = DEFAULT_NAMESRV,
        credentials: Credentials | None = None,
        tls: TlsSettings | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        instance: str | None = None,
        retries: int = DEFAULT_RETRIES,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        compress_from_bytes: int = DEFAULT_COMPRESS_FROM_BYTES,
        compression: str | None = "zlib",
        trace: bool = False,
        on_check: OnCheck | None = None,
    ) -> None:
        """Whatever is wrong with an argument is told here.

        Bodies of ``compress_from_bytes`` or more are compressed with ``compression``: zlib, lz4 or zstd,
        or None. Clients of RocketMQ before 4.9.4 know only zlib. With ``trace`` what is sent is told to the
        topic of traces, where ``mqadmin queryMsgTraceById`` finds it.

        ``on_check`` is asked what became of a transaction whose end was lost; see ``transaction``.
        """
        self._group = check_group(group)
        self._settings = make_settings(
            namesrv=namesrv, credentials=credentials, tls=tls, timeout_s=timeout_s, instance=instance
        )
        check_int("retries", retries, least=0, most=_MAX_RETRIES)
        if on_check is not None:
            check_async("on_check", on_check, "give an 'async def' function that returns an Outcome")
        check_flag("trace", trace)
        self._retries = retries
        self._is_traced = trace
        self._on_check = on_check
        self._make_maker = partial(
            OutgoingMaker,
            self._settings.clock,
            local_address=local_address(self._settings.namesrv[0]),
            max_message_bytes=max_message_bytes,
            compress_from_bytes=compress_from_bytes,
            compression=compression,
        )
        self._make_maker()  # It tells what is wrong with its arguments.
        self._opened: _Opened | None = None

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise RuntimeError("the producer is open already")
        # What answers brokers needs the session, so it is entered when there is one.
        handlers: dict[int, Handler] = {}
        session = Session(self._settings, handlers=handlers, describe=self._describe)
        tracer = make_tracer(session, group=self._group, is_consumer=False) if self._is_traced else None
        # Processes that were forked from the one that made this producer must not give the same ids.
        maker = self._make_maker()
        sender = Sender(session, maker, group=self._group, retries=self._retries, tracer=tracer)
        transactions = Transactions(
            session, sender, group=self._group, on_check=self._on_check, tracer=tracer
        )
        requests = Requests(session, sender)
        handlers[RequestCode.CHECK_TRANSACTION_STATE] = transactions.check_backs.handle
        handlers[RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT] = requests.handle
        self._opened = _Opened(session, sender, transactions, requests, tracer)
        session.open()
        if tracer is not None:
            tracer.open()
        transactions.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened = self._parts()
        self._opened = None
        opened.requests.close()
        opened.sender.close()
        try:
            if opened.tracer is not None:
                await opened.tracer.close()
            await opened.session.heartbeats.leave(producer_group=self._group)
        finally:
            await opened.session.close()

    async def send(
        self, message: Message, *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> Receipt:
        """Send one message; returns when a broker has it.

        >>> receipts = await asyncio.gather(*(producer.send(Message("OrderTopic", b"...")) for _ in range(8)))
        >>> sorted((receipt.queue.queue_id, receipt.queue_offset) for receipt in receipts)
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]

        While very many sends are on their way this one waits for its turn first; ``timeout_s`` counts from
        then on.

        Raises SendFailed when no broker took it, NoRoute or TopicNotFound when there is none for its topic,
        or the error of a refusal that all brokers would give.
        """
        sender = self._parts().sender
        _check_send(message, queue, timeout_s)
        return await sender.send(message, queue=queue, timeout_s=timeout_s)

    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send one message without an answer: the fastest way, and a message may be lost unnoticed.

        >>> await producer.send_oneway(Message("OrderTopic", b"..."))
        """
        sender = self._parts().sender
        _check_send(message, queue, None)
        await sender.send_oneway(message, queue=queue)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_s: float | None = None,
    ) -> Receipt:
        """Send messages of one topic in one request, to one queue; all are stored or none.

        >>> receipt = await producer.send_batch([Message("OrderTopic", b"1"), Message("OrderTopic", b"2")])
        >>> len(receipt.message_id.split(","))
        2

        The receipt's ids are those of all messages, separated by commas; its ``queue_offset`` is that of
        the first, and the others follow it. Messages of a batch can not be delayed and are not compressed.
        """
        sender = self._parts().sender
        check_batch(messages)
        _check_send(messages[0], queue, timeout_s)
        return await sender.send_batch(messages, queue=queue, timeout_s=timeout_s)

    def transaction(self, message: Message) -> AbstractAsyncContextManager[Receipt]:
        """Send one message that consumers get only if the block around it succeeds.

        >>> async def what_became_of(message):
        ...     return Outcome.COMMIT if message.keys[0] in paid else Outcome.ROLLBACK
        >>> paid = set()
        >>> async with Producer(group="orders", namesrv=namesrv, on_check=what_became_of) as producer:
        ...     async with producer.transaction(Message("OrderTopic", b"...", keys=["o-17"])) as receipt:
        ...         paid.add("o-17")

        The message is with a broker before the block begins. It is committed when the block ends, and
        rolled back when the block raises or is cancelled. If the end is lost, because this program dies or
        the broker does, the broker later asks ``on_check`` of any producer of the group, so that must tell
        from what the block has left behind.

        Raises CommitInDoubt at the end of the block if the broker does not confirm the commit, and on
        entering TransactionNotBegun or what ``send`` raises. Messages in transactions can not be delayed.
        """
        transactions = self._parts().transactions
        _check_send(message, None, None)
        return transactions.begin(message)

    async def request(self, message: Message, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> ReceivedMessage:
        """Send one message and wait for the reply of whoever consumes it.

        >>> async def answer(message):
        ...     await producer.reply(message, b"42.00")
        >>> answering = asyncio.create_task(consumer.run(answer))
        >>> reply = await producer.request(Message("OrderTopic", b"o-17"), timeout_s=5)
        >>> reply.body
        b'42.00'
        >>> answering.cancel()
        True

        Raises NoReply if none comes in time, or what ``send`` raises. A reply that comes later is dropped.
        As with ``send``, waiting for its turn while very many sends are on their way may take longer.
        """
        requests = self._parts().requests
        _check_send(message, None, timeout_s)
        return await requests.request(message, timeout_s=timeout_s)

    async def reply(
        self, received: ReceivedMessage, body: bytes, *, properties: Mapping[str, str] | None = None
    ) -> None:
        """Reply to a request that a consumer received; returns when whoever asked has the reply.

        See ``request`` for an example. Raises SendFailed if whoever asked is gone.
        """
        await self._parts().requests.reply(received, body, properties)

    def _parts(self) -> "_Opened":
        if self._opened is None:
            raise ClientClosed("producer")
        return self._opened

    def _describe(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(client_id=client_id, producer_data_set=[ProducerData(group_name=self._group)])


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a producer is made of while it is open."""

    session: Session
    sender: Sender
    transactions: Transactions
    requests: Requests
    tracer: Tracer | None


def _check_send(message: object, queue: object, timeout_s: float | None) -> None:
    if not isinstance(message, Message):
        raise InvalidArgument("message", message, "give a Message, such as Message('OrderTopic', b'...')")
    if queue is not None:
        if not isinstance(queue, MessageQueue):
            raise InvalidArgument("queue", queue, "give a MessageQueue")
        if queue.topic != message.topic:
            raise InvalidArgument("queue", queue, f"the message is for topic {message.topic}")
    if timeout_s is not None:
        check_number("timeout_s", timeout_s, least=0.001, most=MAX_TIMEOUT_S)
