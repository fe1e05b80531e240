"""The producer: what programs send messages with."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tanist.client.checks import check_group, check_number
from tanist.client.errors import ClientClosed, InvalidArgument
from tanist.client.message import Message, Receipt
from tanist.client.outgoing import (
    DEFAULT_COMPRESS_FROM_BYTES,
    DEFAULT_MAX_MESSAGE_BYTES,
    OutgoingMaker,
    check_batch,
)
from tanist.client.sending import Sender
from tanist.client.session import Session
from tanist.client.settings import (
    DEFAULT_NAMESRV,
    DEFAULT_TIMEOUT_S,
    MAX_TIMEOUT_S,
    Credentials,
    local_address,
    make_settings,
)
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.client import HeartbeatData, ProducerData
from tanist.remoting.tls import TlsSettings

DEFAULT_RETRIES = 2
_MAX_RETRIES = 100


class Producer:
    """Sends messages.

        async with Producer(group="orders", namesrv="127.0.0.1:9876") as producer:
            receipt = await producer.send(Message("OrderTopic", b"...", tags="paid", keys=["o-17"]))

    Opening it uses no network: brokers are asked for when there is something to send. Many sends may be
    on their way at the same time; all of them share one connection to each broker.

    A send that fails is tried again, ``retries`` times and within ``timeout_s``, on another broker if there
    is one. Brokers that failed or are slow are avoided for some seconds. So a message may be stored twice
    if its first broker stored it and could not say so: consumers have to bear that.

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
    ) -> None:
        """Whatever is wrong with an argument is told here.

        Bodies of ``compress_from_bytes`` or more are compressed with ``compression``: zlib, lz4 or zstd,
        or None. Clients of RocketMQ before 4.9.4 know only zlib.
        """
        self._group = check_group(group)
        self._settings = make_settings(
            namesrv=namesrv, credentials=credentials, tls=tls, timeout_s=timeout_s, instance=instance
        )
        check_number("retries", retries, least=0, most=_MAX_RETRIES)
        self._retries = retries
        self._maker = OutgoingMaker(
            self._settings.clock,
            local_address=local_address(self._settings.namesrv[0]),
            max_message_bytes=max_message_bytes,
            compress_from_bytes=compress_from_bytes,
            compression=compression,
        )
        self._session: Session | None = None
        self._sender: Sender | None = None

    async def __aenter__(self) -> Self:
        if self._session is not None:
            raise RuntimeError("the producer is open already")
        self._session = Session(self._settings, handlers={}, describe=self._describe)
        self._sender = Sender(self._session, self._maker, group=self._group, retries=self._retries)
        self._session.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, sender = self._session, self._sender
        assert session is not None
        assert sender is not None
        self._session = self._sender = None
        sender.close()
        try:
            await session.heartbeats.leave(producer_group=self._group)
        finally:
            await session.close()

    async def send(
        self, message: Message, *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> Receipt:
        """Send one message; returns when a broker has it.

            receipt = await producer.send(Message("OrderTopic", b"..."))
            receipt.message_id, receipt.queue, receipt.queue_offset, receipt.status

        While very many sends are on their way this one waits for its turn first; ``timeout_s`` counts from
        then on.

        Raises SendFailed when no broker took it, NoRoute or TopicNotFound when there is none for its topic,
        or the error of a refusal that all brokers would give.
        """
        sender = self._open_sender()
        _check_send(message, queue, timeout_s)
        return await sender.send(message, queue=queue, timeout_s=timeout_s)

    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send one message without an answer: the fastest way, and a message may be lost unnoticed.

        await producer.send_oneway(Message("MetricTopic", b"..."))
        """
        sender = self._open_sender()
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

            receipt = await producer.send_batch([Message("OrderTopic", b"1"), Message("OrderTopic", b"2")])
            receipt.message_id.split(",")

        The receipt's ids are those of all messages, separated by commas; its ``queue_offset`` is that of
        the first, and the others follow it. Messages of a batch can not be delayed and are not compressed.
        """
        sender = self._open_sender()
        check_batch(messages)
        _check_send(messages[0], queue, timeout_s)
        return await sender.send_batch(messages, queue=queue, timeout_s=timeout_s)

    def _open_sender(self) -> Sender:
        if self._sender is None:
            raise ClientClosed("producer")
        return self._sender

    def _describe(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(client_id=client_id, producer_data_set=[ProducerData(group_name=self._group)])


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
