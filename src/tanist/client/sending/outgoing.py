"""Messages as they go out: with an id, their properties as one string, the body compressed if that helps."""

import os
import random
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from tanist.client.checks import check_whole_number
from tanist.client.errors import InvalidArgument
from tanist.client.message import Message
from tanist.client.telemetry import current_context
from tanist.clock import Clock
from tanist.errors import LocalProtocolError
from tanist.model.message import SysFlag
from tanist.model.property_names import (
    DELAY,
    KEYS,
    SHARDING_KEY,
    TAGS,
    TIMER_DELAY_MS,
    TIMER_DELIVER_MS,
    UNIQ_KEY,
    WAIT,
)
from tanist.model.topics import DLQ_PREFIX, RETRY_PREFIX
from tanist.protocol.batch import encode_batch
from tanist.protocol.compression import Compression, compress_body
from tanist.protocol.frame import MAX_BODY_BYTES
from tanist.protocol.message_id import UniqueIds
from tanist.protocol.properties import NAME_END, VALUE_END
from tanist.protocol.record import MAX_PROPERTIES_BYTES
from tanist.protocol.tags import KEY_SEPARATOR

DEFAULT_MAX_MESSAGE_BYTES = 4 << 20
DEFAULT_COMPRESS_FROM_BYTES = 4096
_WAITING = f"{WAIT}{NAME_END}true{VALUE_END}"
_ID_OPENING = f"{_WAITING}{UNIQ_KEY}{NAME_END}"


class Outgoing(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One message, or a batch of them, as all tries of its send write it."""

    topic: str
    message_id: str
    body: bytes
    properties: str
    born_timestamp_ms: int
    sharding_key: str | None = None
    sys_flag: int = 0
    flag: int = 0
    is_batch: bool = False


class OutgoingMaker:
    """Makes the outgoing messages of one producer, and refuses those that no broker would take."""

    def __init__(
        self,
        clock: Clock,
        *,
        local_address: str,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        compress_from_bytes: int = DEFAULT_COMPRESS_FROM_BYTES,
        compression: str | None = "zlib",
    ) -> None:
        check_whole_number("max_message_bytes", max_message_bytes, least=1, most=MAX_BODY_BYTES)
        check_whole_number("compress_from_bytes", compress_from_bytes, least=0, most=MAX_BODY_BYTES)
        self._clock = clock
        self._max_message_bytes = max_message_bytes
        self._compressed_flag = _compressed_flag(compression)
        self._compress_from_bytes = compress_from_bytes if self._compressed_flag else MAX_BODY_BYTES + 1
        family = socket.AF_INET6 if ":" in local_address else socket.AF_INET
        self._ids = UniqueIds(
            address=socket.inet_pton(family, local_address.partition("%")[0]),
            pid=os.getpid(),
            discriminator=random.getrandbits(32),
            zone=datetime.now().astimezone().tzinfo or UTC,
        )

    def make(self, message: Message, *, extra: Mapping[str, str], sys_flag: int) -> Outgoing:
        """The message as it goes out, not compressed yet. ``extra`` are properties of the client's own."""
        body = message.body
        if len(body) > self._max_message_bytes:
            raise InvalidArgument(
                "body",
                body[:16],
                f"it has {len(body)} bytes, and max_message_bytes is {self._max_message_bytes}",
            )
        now_ms = self._clock.now_ms()
        message_id = self._ids.next_id(now_ms)
        return Outgoing(
            topic=message.topic,
            message_id=message_id,
            body=body,
            properties=property_text(message, message_id, extra),
            born_timestamp_ms=now_ms,
            sharding_key=message.sharding_key,
            sys_flag=sys_flag,
            flag=message.flag,
        )

    def is_to_compress(self, outgoing: Outgoing) -> bool:
        """Whether it is worth a try. Brokers do not take compressed batches."""
        return len(outgoing.body) >= self._compress_from_bytes and not outgoing.is_batch

    def compress(self, outgoing: Outgoing) -> Outgoing:
        """The same with its body compressed, unless that makes it no smaller. Any thread may do it."""
        body = compress_body(outgoing.body, self._compressed_flag)
        if len(body) >= len(outgoing.body):
            return outgoing
        sys_flag = outgoing.sys_flag | self._compressed_flag
        return msgspec.structs.replace(outgoing, body=body, sys_flag=sys_flag)

    def make_batch(self, messages: Sequence[Message], *, extra: Mapping[str, str]) -> Outgoing:
        """Checked messages as one body. Each has an id of its own, and the batch none that would hide them.

        RocketMQ 5's client gives the batch one, which brokers append to every message, and of two ids
        consumers take the later one: all messages of a batch then have the same.
        """
        now_ms = self._clock.now_ms()
        ids = [self._ids.next_id(now_ms) for _ in messages]
        body = encode_batch(
            (message.flag, message.body, property_text(message, message_id, extra).encode())
            for message, message_id in zip(messages, ids, strict=True)
        )
        if len(body) > self._max_message_bytes:
            raise InvalidArgument(
                "messages",
                f"{len(messages)} messages",
                f"together they have {len(body)} bytes, and max_message_bytes is {self._max_message_bytes}; "
                "send fewer at a time",
            )
        return Outgoing(
            topic=messages[0].topic,
            message_id=",".join(ids),
            body=body,
            properties=_WAITING,
            born_timestamp_ms=now_ms,
            sharding_key=messages[0].sharding_key,
            is_batch=True,
        )


def property_text(message: Message, message_id: str, extra: Mapping[str, str]) -> str:
    """The property string. A Message has been checked, so that no text in it can break the string."""
    text = f"{_ID_OPENING}{message_id}{VALUE_END}"
    if message.tags is not None:
        text = f"{text}{TAGS}{NAME_END}{message.tags}{VALUE_END}"
    if message.keys:
        text = f"{text}{KEYS}{NAME_END}{KEY_SEPARATOR.join(message.keys)}{VALUE_END}"
    if message.sharding_key is not None:
        text = f"{text}{SHARDING_KEY}{NAME_END}{message.sharding_key}{VALUE_END}"
    if message.delay_level is not None:
        text = f"{text}{DELAY}{NAME_END}{message.delay_level}{VALUE_END}"
    elif message.delay_s:
        text = f"{text}{TIMER_DELAY_MS}{NAME_END}{round(message.delay_s * 1000)}{VALUE_END}"
    elif message.deliver_at is not None:
        deliver_ms = round(message.deliver_at.timestamp() * 1000)
        text = f"{text}{TIMER_DELIVER_MS}{NAME_END}{deliver_ms}{VALUE_END}"
    # Of two equal names the later one counts: what the program says itself goes before the context.
    for properties in (current_context(), message.properties, extra):
        for name, value in properties.items():
            text = f"{text}{name}{NAME_END}{value}{VALUE_END}"
    # Characters take up to four bytes each; few strings are so long that they have to be counted.
    if len(text) * 4 > MAX_PROPERTIES_BYTES and len(text.encode()) > MAX_PROPERTIES_BYTES:
        raise InvalidArgument(
            "properties",
            f"{len(text.encode())} bytes",
            f"with tags and keys they may have {MAX_PROPERTIES_BYTES} bytes",
        )
    return text


def _compressed_flag(compression: object) -> int:
    if compression is None:
        return 0
    names = [kind.name.lower() for kind in Compression]
    if compression not in names:
        raise InvalidArgument("compression", compression, f"use one of {', '.join(names)}, or None")
    flag = int(SysFlag.COMPRESSED | Compression[str(compression).upper()])
    try:
        compress_body(b"", flag)
    except LocalProtocolError as error:
        raise InvalidArgument("compression", compression, str(error)) from error
    return flag


def check_batch(messages: Any) -> None:
    """Refuse what can not be one batch: that needs one topic, one queue and no delay."""
    if not isinstance(messages, list | tuple) or not messages:
        raise InvalidArgument("messages", cast("Any", messages), "give a list of at least one Message")
    for message in cast("Sequence[Any]", messages):
        if not isinstance(message, Message):
            raise InvalidArgument("messages", message, "give a list of Messages")
    first, *others = cast("Sequence[Message]", messages)
    if first.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        raise InvalidArgument("messages", first.topic, "brokers take no batches for such topics")
    for message in (first, *others):
        if message.topic != first.topic:
            raise InvalidArgument(
                "messages", message.topic, f"a batch goes to one topic, and the first is for {first.topic}"
            )
        if message.sharding_key != first.sharding_key:
            raise InvalidArgument(
                "messages", message.sharding_key, "a batch goes to one queue: give all the same sharding_key"
            )
        if message.delay_level is not None or message.delay_s is not None or message.deliver_at is not None:
            raise InvalidArgument("messages", message, "messages of a batch can not be delayed")
