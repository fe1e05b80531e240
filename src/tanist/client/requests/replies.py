"""What requests and their replies carry, so that a reply finds the one who asked. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tanist.client.errors import InvalidArgument
from tanist.client.message import Message
from tanist.client.received import MAX_BODY_BYTES, ReceivedMessage
from tanist.client.session.routes import TopicRoute
from tanist.model.host import pack_host
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.property_names import CLUSTER, CORRELATION_ID, MSG_TYPE, REPLY_TO_CLIENT, TTL
from tanist.model.route import MessageQueue
from tanist.model.topics import reply_topic
from tanist.protocol.command import Command
from tanist.protocol.compression import decompress_body
from tanist.protocol.headers.send import PushReplyMessageRequest
from tanist.protocol.record import Record

_REPLY = "reply"
# Nothing listens there; it stands for no address.
_NO_HOST = pack_host("0.0.0.0", 0)  # noqa: S104


class Reply(msgspec.Struct, frozen=True):
    """A reply on its way: to which topic, through which broker if it can, and what the client adds."""

    message: Message
    broker_name: str
    extra: dict[str, str]


def request_properties(*, correlation_id: str, client_id: str, timeout_s: float) -> dict[str, str]:
    """What a request says about itself beside what its program wrote."""
    return {
        CORRELATION_ID: correlation_id,
        REPLY_TO_CLIENT: client_id,
        TTL: str(int(timeout_s * 1000)),
    }


def reply_topics(route: TopicRoute) -> list[str]:
    """The topics through which replies to requests on this route may come: one for each cluster."""
    return sorted({reply_topic(broker.cluster) for broker in route.data.broker_datas})


def make_reply(received: Any, body: bytes, properties: Mapping[str, str] | None) -> Reply:
    """The reply to a request. Raises InvalidArgument if it was none, or the reply cannot be sent."""
    if not isinstance(received, ReceivedMessage):
        raise InvalidArgument("received", received, "give the message that a consumer received")
    asked = received.properties
    for name in (CORRELATION_ID, REPLY_TO_CLIENT, CLUSTER):
        if name not in asked:
            raise InvalidArgument(
                "received", received, f"it is no request, because it has no property {name}; nobody waits"
            )
    extra = {name: asked[name] for name in (CORRELATION_ID, REPLY_TO_CLIENT, TTL) if name in asked}
    message = Message(reply_topic(asked[CLUSTER]), body, properties=properties or {})
    return Reply(message, received.queue.broker_name, {MSG_TYPE: _REPLY, **extra})


def read_reply(command: Command) -> tuple[str | None, ReceivedMessage]:
    """A reply that a broker pushes, and the id of the request that it is for.

    Raises RemoteProtocolError if it is none.
    """
    pushed = command.header(PushReplyMessageRequest)
    properties = (pushed.properties or "").encode()
    body = bytes(decompress_body(command.body, pushed.sys_flag, max_bytes=MAX_BODY_BYTES))
    record = Record(
        size_bytes=len(command.body) + len(properties),
        queue_id=pushed.queue_id,
        flag=pushed.flag,
        # A broker that keeps replies does not say where, nor by its name which one it is.
        queue_offset=QueueOffset(0),
        log_offset=LogOffset(0),
        sys_flag=pushed.sys_flag,
        born_timestamp_ms=pushed.born_timestamp_ms,
        born_host=_packed(pushed.born_host),
        store_timestamp_ms=pushed.store_timestamp_ms,
        store_host=_packed(pushed.store_host),
        reconsume_times=pushed.reconsume_times or 0,
        prepared_transaction_offset=0,
        body_crc=0,
        body=body,
        topic=pushed.topic,
        properties=properties,
    )
    queue = MessageQueue(topic=pushed.topic, broker_name="", queue_id=pushed.queue_id)
    reply = ReceivedMessage(record, queue, body)
    return reply.properties.get(CORRELATION_ID), reply


def _packed(address: str) -> bytes:
    """``ip:port`` as records carry it. Brokers write it in more than one way, and nothing depends on it."""
    host, _, port = address.rpartition(":")
    try:
        return pack_host(host.removeprefix("[").removesuffix("]"), int(port))
    except ValueError:
        return _NO_HOST
