"""The tables beside the log, as they travel on Tanist's link: one change a frame, in MessagePack.

A change is of one table, and comes in pieces so that none is large:

    whole table   is_whole, the pieces from is_first to is_last have all entries there are
    delta         the pieces have what changed, and of what is gone the names

What a piece says counts once the last one is there, all of it at once. ``log_end`` is where the master's
log ended then: who applies offsets before it has the log up to there believes that messages were consumed
or delivered which it does not have. A piece may ask, by a number: whoever has taken it over, and so all that
came before it, says so (TABLES_HELD of ``ha_link``).
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Annotated, Any

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.integers import INT64_MAX, Int32, QueueOffset64
from tanist.model.topics import TopicConfig

PIECE_BYTES = 256 << 10
"""How large a piece becomes before the next one begins: some milliseconds of work for who makes it."""
MAX_ENTRY_BYTES = 1 << 20
"""No table has an entry as large."""


class TableKind(IntEnum):
    """Which table a change is of."""

    TOPICS = 1
    OFFSETS = 2
    DELAYS = 3
    GROUPS = 4
    DELETIONS = 5
    RESETS = 6


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    """The base of everything on this page: fields in their order, without names."""


class TopicEntry(_Packed, frozen=True):
    """One topic. The mapping is of RocketMQ's static topics, and carried along."""

    config: TopicConfig
    mapping: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.config.topic_name


class GroupEntry(_Packed, frozen=True):
    """One consumer group, and what it is forbidden by topic."""

    config: SubscriptionGroupConfig
    forbidden: dict[str, Int32] | None = None

    @property
    def name(self) -> str:
        return self.config.group_name


class OffsetEntry(_Packed, frozen=True):
    """Where one group stands in queues of one topic; a change may have several of one name."""

    name: str
    """``topic@group``."""
    queues: dict[Int32, QueueOffset64]
    pulled: dict[Int32, Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]] = {}
    """Where its pulls have ended at the master, in those queues where that is beyond its offset."""


class DelayEntry(_Packed, frozen=True):
    """Up to where one delay level is delivered."""

    level: Int32
    offset: QueueOffset64

    @property
    def name(self) -> str:
        return str(self.level)


class DeletionEntry(_Packed, frozen=True):
    """Where in the log a topic was deleted: what it had before is gone."""

    name: str
    log_offset: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]


class ResetEntry(_Packed, frozen=True):
    """One order to move a group, as the broker keeps it on its disk."""

    name: str
    """Its id."""
    order: bytes


Entry = TopicEntry | GroupEntry | OffsetEntry | DelayEntry | DeletionEntry | ResetEntry


class TablePiece(_Packed, frozen=True, kw_only=True):
    """One piece of a change. Its entries are read with ``decode_entries``."""

    kind: TableKind
    is_whole: bool
    is_first: bool
    is_last: bool
    log_end: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
    version: DataVersion
    entries: list[msgspec.Raw] = []
    question: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)] = 0
    """What is to be told once it is taken over; 0: nothing. Older slaves do not know it, and tell nothing."""


_ENCODER = msgspec.msgpack.Encoder()
_PIECES = msgspec.msgpack.Decoder(TablePiece)
_ENTRIES: dict[TableKind, msgspec.msgpack.Decoder[Entry | str]] = {
    TableKind.TOPICS: msgspec.msgpack.Decoder(TopicEntry | str),
    TableKind.OFFSETS: msgspec.msgpack.Decoder(OffsetEntry | str),
    TableKind.DELAYS: msgspec.msgpack.Decoder(DelayEntry | str),
    TableKind.GROUPS: msgspec.msgpack.Decoder(GroupEntry | str),
    TableKind.DELETIONS: msgspec.msgpack.Decoder(DeletionEntry | str),
    TableKind.RESETS: msgspec.msgpack.Decoder(ResetEntry | str),
}


def encode_entry(entry: Entry | str) -> msgspec.Raw:
    """An entry as it stands in a piece, or the name of one that is gone."""
    return msgspec.Raw(_ENCODER.encode(entry))


def encode_piece(piece: TablePiece) -> bytes:
    return _ENCODER.encode(piece)


def decode_piece(data: bytes | memoryview) -> TablePiece:
    """Raises RemoteProtocolError if ``data`` is none."""
    try:
        return _PIECES.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"a change of a table can not be read: {error}") from error


def decode_entries(piece: TablePiece) -> list[Entry | str]:
    """The entries of a piece, which are of its table, and the names of what is gone.

    Raises RemoteProtocolError if one is neither.
    """
    decode = _ENTRIES[piece.kind].decode
    try:
        return [decode(entry) for entry in piece.entries]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"an entry of {piece.kind.name} can not be read: {error}") from error


def batches(
    entries: Iterable[msgspec.Raw], *, batch_bytes: int = PIECE_BYTES
) -> Iterator[tuple[list[msgspec.Raw], bool]]:
    """The entries in batches of about this size, at least one batch, each with whether it is the last."""
    batch: list[msgspec.Raw] = []
    size_bytes = 0
    for entry in entries:
        if size_bytes >= batch_bytes:
            yield batch, False
            batch, size_bytes = [], 0
        batch.append(entry)
        size_bytes += len(entry)
    yield batch, True
