"""Messages as programs see them: what they send, what they get, and what a broker said about a send."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

import msgspec

from tanist.client.checks import check_number, check_topic, check_whole_number
from tanist.client.errors import InvalidArgument
from tanist.model.integers import INT32_MAX
from tanist.model.offsets import QueueOffset
from tanist.model.property_names import RESERVED
from tanist.model.route import MessageQueue
from tanist.protocol.headers.send import DEFAULT_REGION

MAX_DELAY_LEVEL = 18
MAX_DELAY_S = 3 * 24 * 3600.0
"""The most that RocketMQ's brokers take, and Tanist's too, unless they are told otherwise."""

_FORBIDDEN = frozenset("\0\1\2").union(map(chr, range(0xD800, 0xE000)))
"""What separates properties, what marks a loss in the log, and halves of characters, which UTF-8 has not."""
_NO_PROPERTIES: Mapping[str, str] = {}


class _Content(msgspec.Struct, frozen=True):
    topic: str
    body: bytes


class Message(_Content, frozen=True, kw_only=True):
    """A message to send. Whatever is wrong with it is told when it is made.

    ``tags`` is what consumers choose by; ``keys`` are what it is found by later. Messages with the same
    ``sharding_key`` keep their order. At most one of ``delay_level`` (1 to 18), ``delay_s`` and
    ``deliver_at`` makes the broker hold it back.

    >>> Message("OrderTopic", b"paid", tags="paid", keys=["o-17"]).keys
    ['o-17']
    >>> Message("Order Topic", b"paid")
    Traceback (most recent call last):
    tanist.client.errors.InvalidArgument: topic='Order Topic' is not allowed: topic 'Order Topic' has ...
    """

    tags: str | None = None
    keys: Sequence[str] = ()
    sharding_key: str | None = None
    delay_level: int | None = None
    delay_s: float | None = None
    deliver_at: datetime | None = None
    properties: Mapping[str, str] = _NO_PROPERTIES
    flag: int = 0

    def __post_init__(self) -> None:
        check_topic(self.topic)
        _check_body(self.body)
        if self.tags is not None:
            _check_text("tags", self.tags)
        if self.keys != ():
            _check_keys(self.keys)
        if self.sharding_key is not None:
            _check_text("sharding_key", self.sharding_key)
        if self.properties is not _NO_PROPERTIES:
            _check_properties(self.properties)
        if self.flag != 0:
            check_whole_number("flag", self.flag, least=-INT32_MAX - 1, most=INT32_MAX)
        if self.delay_level is not None or self.delay_s is not None or self.deliver_at is not None:
            _check_delay(self)


class SendStatus(StrEnum):
    """How safe a broker says a stored message is. Only ``OK`` is what its settings promise."""

    OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class Receipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the broker said about a send: where the message lies, and how safe it is there.

    ``message_id`` is the id its producer gave it and ``offset_id`` says where it lies: operator tools
    find it by either.
    """

    message_id: str
    offset_id: str
    queue: MessageQueue
    queue_offset: QueueOffset
    status: SendStatus = SendStatus.OK
    transaction_id: str | None = None
    region: str = DEFAULT_REGION
    is_traced: bool = True
    """Whether the broker wants to have traces of it, should the producer trace at all."""


def _check_body(body: object) -> None:
    if not isinstance(body, bytes):
        raise InvalidArgument("body", body, "give bytes; text is encoded first, such as text.encode()")
    if not body:
        raise InvalidArgument("body", b"", "brokers take no empty message; give at least one byte")


def _check_text(argument: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgument(argument, text, "give a str that is not blank, or leave it out")
    if not text.isprintable():
        raise InvalidArgument(argument, text, "it must not hold control characters")


def _check_keys(keys: Any) -> None:
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise InvalidArgument("keys", keys, "give a list of str, such as keys=['o-17']")
    for key in cast("Sequence[Any]", keys):
        _check_text("keys", key)
        if len(str(key).split()) != 1:
            raise InvalidArgument("keys", key, "a key is one word, because blanks separate keys")


def _check_properties(properties: Any) -> None:
    if not isinstance(properties, Mapping):
        raise InvalidArgument("properties", properties, "give a mapping of str to str")
    for name, value in cast("Mapping[Any, Any]", properties).items():
        for text in (name, value):
            if not isinstance(text, str) or not text or not _FORBIDDEN.isdisjoint(text):
                raise InvalidArgument(
                    f"properties[{name!r}]",
                    value,
                    "names and values are str, not empty, without the characters 0, 1 and 2 and surrogates",
                )
        if name in RESERVED:
            raise InvalidArgument(
                f"properties[{name!r}]", value, "clients and brokers use this name themselves"
            )


def _check_delay(message: Message) -> None:
    given = [name for name in ("delay_level", "delay_s", "deliver_at") if getattr(message, name) is not None]
    if len(given) > 1:
        raise InvalidArgument(given[1], getattr(message, given[1]), f"{given[0]} is given already")
    if message.delay_level is not None:
        check_whole_number("delay_level", message.delay_level, least=1, most=MAX_DELAY_LEVEL)
    if message.delay_s is not None:
        check_number("delay_s", message.delay_s, least=0, most=MAX_DELAY_S)
    if message.deliver_at is not None and (
        not isinstance(message.deliver_at, datetime) or message.deliver_at.tzinfo is None  # pyright: ignore[reportUnnecessaryIsInstance]
    ):
        raise InvalidArgument("deliver_at", message.deliver_at, "give a datetime with a time zone")
