"""What clients tell of a message's life, in the text that RocketMQ's tools and consoles read. Pure.

Fields end with 0x01, records with 0x02, as ``TraceDataEncoder`` of RocketMQ writes them. What is not there
is the word ``null``: RocketMQ's reader drops empty fields at the end of a record and then misses them.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from typing import TypeAlias

import msgspec

from tanist.errors import RemoteProtocolError

_NULL = "null"
_BOOLS = ("false", "true")


class TraceKind(IntEnum):
    """What kind of message was sent, by RocketMQ's numbers. ``COMMIT`` is the end of a transaction."""

    NORMAL = 0
    HALF = 1
    COMMIT = 2
    DELAY = 3


class ConsumeResult(IntEnum):
    """How a message was consumed, by RocketMQ's numbers."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    FAILED = 4


class EndState(StrEnum):
    """How a transaction ended. RocketMQ spells the last one so."""

    COMMIT = "COMMIT_MESSAGE"
    ROLLBACK = "ROLLBACK_MESSAGE"
    UNKNOWN = "UNKNOW"


class _Trace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    timestamp_ms: int
    group: str
    message_id: str
    keys: str | None = None
    """Separated by blanks, as a message carries them."""


class SendTrace(_Trace, frozen=True, kw_only=True, gc=False):
    """A message was sent, which began at ``timestamp_ms``."""

    region: str
    topic: str
    tags: str | None
    store_host: str | None
    body_bytes: int
    cost_ms: int
    kind: TraceKind
    offset_id: str
    is_ok: bool


class BeforeTrace(_Trace, frozen=True, kw_only=True, gc=False):
    """A message is about to be consumed. Its end has the same ``request_id``."""

    region: str
    request_id: str
    retry_count: int


class AfterTrace(_Trace, frozen=True, kw_only=True, gc=False):
    """A message was consumed, well or not."""

    request_id: str
    cost_ms: int
    is_ok: bool
    result: ConsumeResult


class EndTrace(_Trace, frozen=True, kw_only=True, gc=False):
    """A producer ended a transaction, by itself or because it was asked."""

    region: str
    topic: str
    tags: str | None
    store_host: str | None
    transaction_id: str | None
    state: EndState
    is_from_check: bool


Trace: TypeAlias = SendTrace | BeforeTrace | AfterTrace | EndTrace


def encode_trace(trace: Trace) -> str:
    """The record of one trace, its end included."""
    match trace:
        case SendTrace():
            return _encode_send(trace)
        case BeforeTrace():
            return _encode_before(trace)
        case AfterTrace():
            return _encode_after(trace)
        case EndTrace():
            return _encode_end(trace)


def decode_traces(text: str) -> list[Trace]:
    """The traces in the body of a message. Kinds that are not written here are left out.

    Raises RemoteProtocolError for a record that lacks fields or has others in their place.
    """
    traces: list[Trace] = []
    for record in filter(None, text.split("\x02")):
        name, *fields = record.split("\x01")
        if (decode := _DECODERS.get(name)) is not None:
            try:
                traces.append(decode(fields))
            except (IndexError, ValueError) as error:
                raise RemoteProtocolError(f"{record[:200]!r} is no trace of the kind {name}") from error
    return traces


def _encode_send(trace: SendTrace) -> str:
    return (
        f"Pub\x01{trace.timestamp_ms}\x01{trace.region}\x01{trace.group}\x01{trace.topic}\x01"
        f"{trace.message_id}\x01{trace.tags or _NULL}\x01{trace.keys or _NULL}\x01"
        f"{trace.store_host or _NULL}\x01{trace.body_bytes}\x01{trace.cost_ms}\x01{trace.kind:d}\x01"
        f"{trace.offset_id}\x01{_BOOLS[trace.is_ok]}\x02"
    )


def _encode_before(trace: BeforeTrace) -> str:
    return (
        f"SubBefore\x01{trace.timestamp_ms}\x01{trace.region}\x01{trace.group}\x01{trace.request_id}\x01"
        f"{trace.message_id}\x01{trace.retry_count}\x01{trace.keys or _NULL}\x02"
    )


def _encode_after(trace: AfterTrace) -> str:
    return (
        f"SubAfter\x01{trace.request_id}\x01{trace.message_id}\x01{trace.cost_ms}\x01"
        f"{_BOOLS[trace.is_ok]}\x01{trace.keys or _NULL}\x01{trace.result:d}\x01{trace.timestamp_ms}\x01"
        f"{trace.group}\x02"
    )


def _encode_end(trace: EndTrace) -> str:
    return (
        f"EndTransaction\x01{trace.timestamp_ms}\x01{trace.region}\x01{trace.group}\x01{trace.topic}\x01"
        f"{trace.message_id}\x01{trace.tags or _NULL}\x01{trace.keys or _NULL}\x01"
        f"{trace.store_host or _NULL}\x01{TraceKind.COMMIT:d}\x01{trace.transaction_id or _NULL}\x01"
        f"{trace.state.value}\x01{_BOOLS[trace.is_from_check]}\x02"
    )


def _decode_send(fields: Sequence[str]) -> SendTrace:
    return SendTrace(
        timestamp_ms=int(fields[0]),
        region=fields[1],
        group=fields[2],
        topic=fields[3],
        message_id=fields[4],
        tags=_or_none(fields[5]),
        keys=_or_none(fields[6]),
        store_host=_or_none(fields[7]),
        body_bytes=int(fields[8]),
        cost_ms=int(fields[9]),
        kind=TraceKind(int(fields[10])),
        offset_id=fields[11],
        is_ok=_bool(fields[12]),
    )


def _decode_before(fields: Sequence[str]) -> BeforeTrace:
    return BeforeTrace(
        timestamp_ms=int(fields[0]),
        region=fields[1],
        group=fields[2],
        request_id=fields[3],
        message_id=fields[4],
        retry_count=int(fields[5]),
        keys=_or_none(fields[6]),
    )


def _decode_after(fields: Sequence[str]) -> AfterTrace:
    return AfterTrace(
        request_id=fields[0],
        message_id=fields[1],
        cost_ms=int(fields[2]),
        is_ok=_bool(fields[3]),
        keys=_or_none(fields[4]),
        result=ConsumeResult(int(fields[5])),
        timestamp_ms=int(fields[6]),
        group=fields[7],
    )


def _decode_end(fields: Sequence[str]) -> EndTrace:
    return EndTrace(
        timestamp_ms=int(fields[0]),
        region=fields[1],
        group=fields[2],
        topic=fields[3],
        message_id=fields[4],
        tags=_or_none(fields[5]),
        keys=_or_none(fields[6]),
        store_host=_or_none(fields[7]),
        transaction_id=_or_none(fields[9]),
        state=EndState(fields[10]),
        is_from_check=_bool(fields[11]),
    )


def _or_none(field: str) -> str | None:
    return None if field == _NULL else field


def _bool(field: str) -> bool:
    return bool(_BOOLS.index(field))


_DECODERS: dict[str, Callable[[Sequence[str]], Trace]] = {
    "Pub": _decode_send,
    "SubBefore": _decode_before,
    "SubAfter": _decode_after,
    "EndTransaction": _decode_end,
}
