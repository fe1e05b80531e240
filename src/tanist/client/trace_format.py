"""What clients tell of a message's life, in the text that RocketMQ's tools and consoles read. Pure.

Fields end with 0x01, records with 0x02, as ``TraceDataEncoder`` of RocketMQ writes them. What is not there
is the word ``null``: RocketMQ's reader drops empty fields at the end of a record and then misses them.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from typing import TypeAlias

import msgspec

from tanist.errors import RemoteProtocolError

FIELD_END = "\x01"
RECORD_END = "\x02"

_NULL = "null"


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
            fields = _send_fields(trace)
        case BeforeTrace():
            fields = _before_fields(trace)
        case AfterTrace():
            fields = _after_fields(trace)
        case EndTrace():
            fields = _end_fields(trace)
    return FIELD_END.join([_text(field) for field in fields]) + RECORD_END


def decode_traces(text: str) -> list[Trace]:
    """The traces in the body of a message. Kinds that are not written here are left out.

    Raises RemoteProtocolError for a record that lacks fields or has others in their place.
    """
    traces: list[Trace] = []
    for record in filter(None, text.split(RECORD_END)):
        name, *fields = record.split(FIELD_END)
        if (decode := _DECODERS.get(name)) is not None:
            try:
                traces.append(decode(fields))
            except (IndexError, ValueError) as error:
                raise RemoteProtocolError(f"{record[:200]!r} is no trace of the kind {name}") from error
    return traces


def _text(field: object) -> str:
    if isinstance(field, str):
        return field
    if field is None:
        return _NULL
    if isinstance(field, bool):
        return "true" if field else "false"
    return str(field)


def _send_fields(trace: SendTrace) -> tuple[object, ...]:
    return (
        *("Pub", trace.timestamp_ms, trace.region, trace.group, trace.topic, trace.message_id),
        *(trace.tags, trace.keys, trace.store_host, trace.body_bytes, trace.cost_ms, int(trace.kind)),
        *(trace.offset_id, trace.is_ok),
    )


def _before_fields(trace: BeforeTrace) -> tuple[object, ...]:
    return (
        *("SubBefore", trace.timestamp_ms, trace.region, trace.group, trace.request_id),
        *(trace.message_id, trace.retry_count, trace.keys),
    )


def _after_fields(trace: AfterTrace) -> tuple[object, ...]:
    return (
        *("SubAfter", trace.request_id, trace.message_id, trace.cost_ms, trace.is_ok, trace.keys),
        *(int(trace.result), trace.timestamp_ms, trace.group),
    )


def _end_fields(trace: EndTrace) -> tuple[object, ...]:
    return (
        *("EndTransaction", trace.timestamp_ms, trace.region, trace.group, trace.topic, trace.message_id),
        *(trace.tags, trace.keys, trace.store_host, int(TraceKind.COMMIT), trace.transaction_id),
        *(trace.state.value, trace.is_from_check),
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
    if field not in ("true", "false"):
        raise ValueError(field)
    return field == "true"


_DECODERS: dict[str, Callable[[Sequence[str]], Trace]] = {
    "Pub": _decode_send,
    "SubBefore": _decode_before,
    "SubAfter": _decode_after,
    "EndTransaction": _decode_end,
}
