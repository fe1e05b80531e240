"""Where a group is to go, as an operator says it. Pure: a text into a value, nothing is looked up.

``earliest``, ``latest`` or ``now``, a time (ISO, milliseconds, or as ``mqadmin`` writes it), ``-2h`` for so
long ago, ``lag=100`` to leave so many, ``offset=7`` in every queue or ``broker-a:0=7`` in one,
``group=other`` to go where that stands, ``message=ID``, ``key=KEY``, ``plan=FILE``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import TypeAlias

from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.times import check_not_ahead, is_span, read_span_ms, read_time_ms
from tanist.model.integers import INT64_MAX

_QUEUE_OFFSET = re.compile(r"(?P<broker>[^:=]+):(?P<queue>\d{1,9})=(?P<offset>-?\d+)")
_NAMED = re.compile(r"(?P<kind>lag|offset|group|message|key|plan)=(?P<value>.+)")
_WAYS = (
    "earliest, latest, now, a time (2026-11-18T09:00, or milliseconds), -2h, lag=N, offset=N, "
    "BROKER:QUEUE=N, group=GROUP, message=ID, key=KEY or plan=FILE"
)

_MAX_SHOWN_CHARS = 80

QueueName: TypeAlias = tuple[str, int]
"""A queue of the topic: the broker's name and the queue's id."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """To the first message that is kept."""


@dataclass(frozen=True, slots=True)
class Latest:
    """Behind the last message that there is when it is planned."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """To the first message that was stored at this time or later."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class LeaveLag:
    """So that this many are left to consume in each queue."""

    count: int


@dataclass(frozen=True, slots=True)
class AtOffset:
    """To the same offset in every queue."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """To an offset of its own in each queue; other queues stay as they are."""

    offsets: Mapping[QueueName, int]


@dataclass(frozen=True, slots=True)
class LikeGroup:
    """To where another group stands."""

    group: str


@dataclass(frozen=True, slots=True)
class AtMessage:
    """To a message in its own queue, and to the time at which it was stored in all others."""

    message_id: str


@dataclass(frozen=True, slots=True)
class AtKey:
    """As with a message: the oldest that has this key."""

    key: str


@dataclass(frozen=True, slots=True)
class LikePlan:
    """To the targets of a plan that was saved."""

    path: Path


Target: TypeAlias = (
    Earliest | Latest | AtTime | LeaveLag | AtOffset | AtOffsets | LikeGroup | AtMessage | AtKey | LikePlan
)


def read_target(texts: Sequence[str], *, now_ms: int, zone: tzinfo) -> Target:
    """The target that one text stands for, or several that each name a queue. Raises ResetRefused.

    >>> read_target(["-2h"], now_ms=10_000_000, zone=UTC)
    AtTime(at_ms=2800000)
    """
    queues = [match for text in texts if (match := _QUEUE_OFFSET.fullmatch(text))]
    if queues and len(queues) == len(texts):
        offsets = {(match["broker"], int(match["queue"])): _offset(match["offset"]) for match in queues}
        if len(offsets) < len(queues):
            raise ResetRefused("a queue is named twice; give each queue one offset")
        return AtOffsets(offsets)
    if len(texts) != 1:
        raise ResetRefused(f"give one target, or one BROKER:QUEUE=N for each queue: {_WAYS}")
    return _read_one(texts[0], now_ms=now_ms, zone=zone)


def _read_one(text: str, *, now_ms: int, zone: tzinfo) -> Target:
    if text == "earliest":
        return Earliest()
    if text in ("latest", "now"):
        return Latest()
    if is_span(text):
        return AtTime(max(0, now_ms - read_span_ms(text)))
    if (named := _NAMED.fullmatch(text)) is not None:
        return _read_named(named["kind"], named["value"])
    if text.startswith("-") and text[1:].isdecimal():
        raise ResetRefused(
            f"{_cut(text)} is negative; an offset or a time is 0 or more, and a span has a unit: -2h"
        )
    at_ms = read_time_ms(text, zone)
    if at_ms is None:
        raise ResetRefused(f"{_cut(text)!r} is no target; use {_WAYS}")
    check_not_ahead(at_ms, now_ms, text)
    return AtTime(at_ms)


def _read_named(kind: str, value: str) -> Target:
    match kind:
        case "lag":
            return LeaveLag(_offset(value, what="lag"))
        case "offset":
            return AtOffset(_offset(value))
        case "group":
            return LikeGroup(value)
        case "message":
            return AtMessage(value)
        case "key":
            return AtKey(value)
        case _:
            return LikePlan(Path(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"


def _offset(text: str, *, what: str = "offset") -> int:
    if re.fullmatch(r"-?\d{1,19}", text) is None or not 0 <= int(text) <= INT64_MAX:
        raise ResetRefused(f"{what} {_cut(text)} can not be; use a whole number from 0 on")
    return int(text)
