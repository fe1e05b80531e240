"""Requests and replies: a message that is answered by whoever consumes it.

The reply comes through any broker of the cluster, on the connection on which that broker knows us. So all
of them know us before a request is sent.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from uuid import uuid4

from tanist.client.errors import ClientClosed, NoReply, NoRoute, SendFailed
from tanist.client.message import Message
from tanist.client.received import ReceivedMessage
from tanist.client.requests.replies import make_reply, read_reply, reply_topics, request_properties
from tanist.client.sending.sender import Sender
from tanist.client.session.session import Session
from tanist.errors import TooBusy
from tanist.model.route import MessageQueue
from tanist.model.topics import AUTO_CREATE_TOPIC
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import TopicNotFound
from tanist.remoting import Connection

_log = logging.getLogger(__name__)

MAX_WAITING = 10_000
"""Requests of one producer that may wait for their replies."""
_INTRODUCTION_SHARE = 1 / 3
"""The part of a request's time that a broker may take which does not know us and is slow to listen."""


class Requests:
    """The requests of one producer that wait for a reply, and the replies it gives to others."""

    def __init__(self, session: Session, sender: Sender) -> None:
        self._session = session
        self._sender = sender
        # None: the producer is closed, and no reply can come any more.
        self._waiting: dict[str, asyncio.Future[ReceivedMessage | None]] = {}

    async def request(self, message: Message, *, timeout_s: float) -> ReceivedMessage:
        """Send a request and wait for its reply. Raises NoReply, or what a send raises."""
        if len(self._waiting) >= MAX_WAITING:
            raise TooBusy(f"whoever replies on {message.topic}", f"{MAX_WAITING} requests wait for replies")
        # By chance, so that nobody else can guess it and reply in place of the one who was asked.
        correlation_id = str(uuid4())
        loop = asyncio.get_running_loop()
        awaited: asyncio.Future[ReceivedMessage | None] = loop.create_future()
        extra = request_properties(
            correlation_id=correlation_id, client_id=self._session.client_id, timeout_s=timeout_s
        )
        deadline_s = loop.time() + timeout_s
        is_sent = False
        self._waiting[correlation_id] = awaited
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._introduce(message.topic, timeout_s=timeout_s * _INTRODUCTION_SHARE)
            # It has a deadline of its own, and tells what failed when that is over.
            await self._sender.send(message, extra=extra, timeout_s=deadline_s - loop.time())
            is_sent = True
            async with asyncio.timeout_at(deadline_s):
                reply = await awaited
        except TimeoutError:
            raise NoReply(message.topic, timeout_s, is_sent=is_sent) from None
        finally:
            del self._waiting[correlation_id]
        if reply is None:
            raise ClientClosed("producer")
        return reply

    async def reply(
        self, received: ReceivedMessage, body: bytes, properties: Mapping[str, str] | None
    ) -> None:
        """Send a reply, and go on when whoever asked has it. Raises InvalidArgument or what a send raises."""
        reply = make_reply(received, body, properties)
        send = partial(
            self._sender.send, reply.message, extra=reply.extra, code=RequestCode.SEND_REPLY_MESSAGE_V2
        )
        nearest = await self._queue_at(reply.broker_name, reply.message.topic)
        if nearest is not None:
            # The broker that has the request surely knew who asked. If it does not any more, another may.
            try:
                await send(queue=nearest, retries=0)
                return
            except (SendFailed, NoRoute) as error:
                _log.debug("reply goes another way broker=%s error=%s", reply.broker_name, error)
        await send()

    def handle(self, command: Command, connection: Connection) -> Command:
        """Take a reply that a broker pushes. One that nobody waits for any more is dropped: it came late."""
        correlation_id, reply = read_reply(command)
        awaited = self._waiting.get(correlation_id or "")
        if awaited is None:
            _log.debug(
                "reply dropped, nobody waits correlation=%s broker=%s", correlation_id, connection.peer
            )
        elif not awaited.done():
            awaited.set_result(reply)
        return command.reply()

    def close(self) -> None:
        """Nobody shall wait for a reply that cannot come."""
        for awaited in self._waiting.values():
            if not awaited.done():
                awaited.set_result(None)

    async def _queue_at(self, broker_name: str, topic: str) -> MessageQueue | None:
        """A queue of the topic on this broker; None if it has none now."""
        route = await self._session.routes.find(topic)
        return next((queue for queue in route.publish_queues if queue.broker_name == broker_name), None)

    async def _introduce(self, topic: str, *, timeout_s: float) -> None:
        """Have all brokers know us through which a reply may come: those of the topic and its clusters."""
        routes = self._session.routes
        try:
            route = await routes.find(topic)
        except TopicNotFound as unknown:
            # The request makes the topic, on one of the brokers that make topics.
            try:
                route = await routes.find(AUTO_CREATE_TOPIC)
            except TopicNotFound:
                raise unknown from None
        for replies in reply_topics(route):
            await routes.find(replies)
        await self._session.heartbeats.introduce(timeout_s=timeout_s)
