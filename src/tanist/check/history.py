"""What a history is made of: one JSON object a line, each with the time at which its process wrote it.

    {"type": "began", "at_us": 17, "process": "p-0", "value": "p-0/1"}
    {"type": "ended", "at_us": 42, "process": "p-0", "value": "p-0/1", "outcome": "ok",
     "queue": "orders@broker-a:0", "offset": 0}          (on one line)

A process does one thing at a time: a program that sends on four lanes is four processes. It writes ``began``
before a message leaves it, so that a process that is killed leaves no message nobody has heard of. All
times of a history come from clocks that agree, as the clocks of one machine do.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from tanist.errors import MQError
from tanist.protocol.java_json import BAD_JSON


class HistoryError(MQError):
    """A file is no history; the text says where and why."""


class Outcome(StrEnum):
    """What a producer knows of its message."""

    OK = "ok"
    """It was acknowledged, at a place."""
    REFUSED = "refused"
    """It was refused: it must not be stored anywhere."""
    UNKNOWN = "unknown"
    """Nobody knows: it may be stored any number of times, or not at all."""


class _Event(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    at_us: int


class Began(_Event, frozen=True):
    """A message is about to be sent. No two messages of a history have the same value."""

    process: str
    value: str


class Ended(_Event, frozen=True):
    """The end of a send: where it was acknowledged, if it was, and how often it left."""

    process: str
    value: str
    outcome: Outcome
    queue: str = ""
    offset: int = -1
    tries: int = 1


class Assigned(_Event, frozen=True):
    """A queue became a consumer's, or its reading begins anew at another place."""

    process: str
    group: str
    queue: str


class Read(_Event, frozen=True):
    """A message was handed to a consumer."""

    process: str
    group: str
    queue: str
    offset: int
    value: str


class Acked(_Event, frozen=True):
    """A broker has confirmed that the group has consumed all below ``up_to``."""

    process: str
    group: str
    queue: str
    up_to: int


class Asked(_Event, frozen=True):
    """A broker that may be read was asked, from ``began_us`` on, where a queue ends."""

    process: str
    queue: str
    began_us: int
    end: int


class Fault(_Event, frozen=True):
    """Something was broken, or was mended again. While it is broken, what is in flight may come twice."""

    name: str
    is_over: bool = False
    forgets_us: int = 0
    """Offsets that were confirmed so short a time before it may be gone, with the broker that knew them."""


class Waited(_Event, frozen=True):
    """At the end: a group was given time to read all there is."""

    group: str


class Log(_Event, frozen=True):
    """At the end: a replica holds ``[first, end)`` of a queue. One replica is the master."""

    replica: str
    queue: str
    first: int
    end: int
    is_master: bool = False


class Held(_Event, frozen=True):
    """At the end: a replica holds this message there."""

    replica: str
    queue: str
    offset: int
    value: str


class Summed(_Event, frozen=True):
    """At the end: the bytes ``[first, end)`` of a replica's log have this checksum.

    ``queue`` is the log, written as a queue that no topic can have.
    """

    replica: str
    queue: str
    first: int
    end: int
    crc: int


Event = Began | Ended | Assigned | Read | Acked | Asked | Fault | Waited | Log | Held | Summed

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """The line of one event."""
    return _encoder.encode(event) + b"\n"


def decode_event(line: bytes) -> Event:
    """The event of one line. Raises msgspec's error if it is none."""
    return _decoder.decode(line)


def read_history(path: Path) -> Iterator[Event]:
    """The events of one file, as they were written.

    The last line of a process that was killed may be cut off.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode_event(line)
            except BAD_JSON as error:
                raise HistoryError(
                    f"{path}, line {number}: {error}; give files of one JSON event a line"
                ) from None


def order_of(event: Event) -> tuple[int, bool]:
    """By time; what concerns all queues comes behind what else has the same, however a history is cut."""
    return event.at_us, isinstance(event, Fault | Waited)


def merge_histories(paths: Sequence[Path]) -> Iterable[Event]:
    """The events of all files by their time. Each file is in the order of its times already."""
    return heapq.merge(*(read_history(path) for path in paths), key=order_of)
