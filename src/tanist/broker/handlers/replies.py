"""Request and reply: SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2.

A request is a message like any other; it says which client waits for its reply. The reply is pushed to
that client, and whoever sent it is answered when the client has taken it. Nothing waits meanwhile.
"""

import asyncio
import logging

from tanist.broker.consumer_group import Client
from tanist.broker.handlers.send import make_intake
from tanist.broker.late import send_failure, send_late
from tanist.broker.state import BrokerState
from tanist.errors import DiskFull, MQError, NotWritable, ProtocolError, ResponseError
from tanist.model.message import Appended, Message
from tanist.model.names import shown
from tanist.model.offsets import QueueOffset
from tanist.model.property_names import PUSH_REPLY_TIME, REPLY_TO_CLIENT
from tanist.model.topics import TopicConfig, reply_topic
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.send import (
    PushReplyMessageRequest,
    SendMessageRequest,
    SendMessageRequestV2,
    SendMessageResponse,
)
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import encode_properties, find_property, join_properties
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)

_PUSH_TIMEOUT_S = 10.0
_NOT_STORED = "0"
"""The id of a reply that is not kept. Java clients fail without one."""


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ReplyHandler(state)
    return {
        RequestCode.SEND_REPLY_MESSAGE: handler.reply_v1,
        RequestCode.SEND_REPLY_MESSAGE_V2: handler.reply_v2,
    }


class ReplyHandler:
    """Hands replies to the clients that wait for them."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._intake = make_intake(state)

    def reply_v1(self, command: Command, connection: Connection) -> None:
        self._reply(command, command.header(SendMessageRequest), connection)

    def reply_v2(self, command: Command, connection: Connection) -> None:
        self._reply(command, command.header(SendMessageRequestV2), connection)

    def _reply(self, command: Command, request: SendMessageRequest, connection: Connection) -> None:
        topic = self._topic(request.topic)
        message, _ = self._intake.accept(
            request,
            command.body,
            topic=topic,
            # Java reads a queue that the topic lacks as a mistake; of a reply nobody ever asks where it lies.
            queue_id=request.queue_id % max(topic.write_queue_count, 1),
            born_host=connection.peer_host,
            make_id=None,
        )
        # Kept also if it can not be pushed, as RocketMQ does: what was answered can be looked up.
        stored = self._store(message) if self._state.settings.store_reply_message_enable else None
        success = self._success(message, stored)
        client = self._requester(message)
        pushed = self._push(client, self._push_command(request, message, connection.peer))
        # What waits for the client must not keep the bytes that it came in.
        kept = command.without_content()

        def on_pushed(done: asyncio.Future[Command]) -> None:
            # It is cancelled only when the broker stops, and then nobody is there to be told.
            if done.cancelled():
                return
            if (refusal := _refusal(client, done)) is not None:
                send_failure(kept, connection, refusal)
            elif stored is None or not self._state.writer.pending.is_on or kept.is_one_way:
                send_late(kept, connection, kept.reply(header=success))
            else:
                # Its copy has been on its way to disk and slaves meanwhile.
                frame = encode_command(kept.reply(header=success))
                self._state.writer.pending.answer_when_safe(stored, connection, frame, tells_why_not=False)

        pushed.add_done_callback(on_pushed)

    def _topic(self, name: str) -> TopicConfig:
        """The topic of the cluster's replies and no other: a reply must not do what a send may not."""
        allowed = reply_topic(self._state.settings.broker_cluster_name)
        topic = self._state.topics.find(name) if name == allowed else None
        if topic is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST, f"replies are sent to topic {allowed}, not to {shown(name)}"
            )
        return topic

    def _store(self, message: Message) -> Appended | None:
        try:
            self._state.writer.pending.check(is_waiting=False)
            return self._state.writer.append(message)
        except (NotWritable, DiskFull, OSError, ResponseError) as error:
            # Somebody waits for the reply, and nobody for its copy.
            _log.debug("reply not stored topic=%s reason=%s", message.topic, error)
            return None
        except ProtocolError as error:
            raise ResponseError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error

    def _success(self, message: Message, stored: Appended | None) -> SendMessageResponse:
        if stored is None:
            return SendMessageResponse(
                msg_id=_NOT_STORED, queue_id=message.queue_id, queue_offset=QueueOffset(0)
            )
        return SendMessageResponse(
            msg_id=encode_offset_id(self._state.store_host, stored.log_offset),
            queue_id=message.queue_id,
            queue_offset=stored.queue_offset,
        )

    def _requester(self, message: Message) -> Client:
        """The client that waits for this reply."""
        found = find_property(message.properties, REPLY_TO_CLIENT)
        if found is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"reply message properties[{REPLY_TO_CLIENT}] is null"
            )
        client_id = found.decode("utf-8", "replace")
        client = self._state.clients.find_producer(client_id)
        if client is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"push reply message fail, channel of <{client_id}> not found."
            )
        return client

    def _push(self, client: Client, push: Command) -> asyncio.Future[Command]:
        try:
            return asyncio.ensure_future(client.connection.request(push, _PUSH_TIMEOUT_S))
        except MQError as error:
            raise _not_pushed(client, str(error)) from error

    def _push_command(self, request: SendMessageRequest, message: Message, peer: str) -> Command:
        now_ms = self._state.clock.now_ms()
        properties = join_properties(message.properties, encode_properties({PUSH_REPLY_TIME: str(now_ms)}))
        header = PushReplyMessageRequest(
            producer_group=request.producer_group,
            topic=request.topic,
            default_topic=request.default_topic,
            default_topic_queue_count=request.default_topic_queue_count,
            queue_id=request.queue_id,
            sys_flag=request.sys_flag,
            born_timestamp_ms=request.born_timestamp_ms,
            flag=request.flag,
            properties=properties.decode("utf-8", "replace"),
            reconsume_times=request.reconsume_times,
            is_unit_mode=request.is_unit_mode,
            born_host=peer,
            store_host=self._state.settings.address,
            store_timestamp_ms=now_ms,
        )
        return Command.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, header, body=message.body)


def _refusal(client: Client, pushed: asyncio.Future[Command]) -> ResponseError | None:
    """Why the client has not taken a reply that was pushed to it; None if it has."""
    try:
        code = pushed.result().code
    except MQError as error:
        return _not_pushed(client, str(error))
    return None if code == ResponseCode.SUCCESS else _not_pushed(client, f"it answered {code}")


def _not_pushed(client: Client, reason: str) -> ResponseError:
    return ResponseError(
        ResponseCode.SYSTEM_ERROR, f"push reply message to {client.client_id} fail: {reason}"
    )
