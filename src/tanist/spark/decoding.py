"""Many records at once, from the bytes of the log to columns. Pure: a buffer in, a batch out.

One record after another is only stepped over, by its size (``walk``). All else is asked of thousands at once:
a field of all records is one gather, since a view of the buffer with a step of one byte has it at any place.
What is checked is what ``protocol.record`` checks; where something is wrong, its words say what. Steps,
gathers and checksums are taken in C (``_native``) where that could be built.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from tanist.model.message import SysFlag
from tanist.protocol.record import (
    BLANK_BYTES,
    CRC_MASK,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES_BYTES,
    MAX_TOPIC_BYTES,
    MAX_TOPIC_BYTES_V1,
    MIN_RECORD_BYTES,
)
from tanist.spark import arrow
from tanist.spark.arrow import Booleans, Bytes, Integers

try:
    from tanist.spark import _native as native
except ImportError:
    native = None

# size, magic
_HEAD = struct.Struct(">ii")
_INT: npt.DTypeLike = ">i4"
_LONG: npt.DTypeLike = ">i8"
_SHORT: npt.DTypeLike = ">u2"

# Where the fields of a record lie, counted from its start; behind the first host it depends on the hosts.
SIZE_AT = 0
MAGIC_AT = 4
BODY_CRC_AT = 8
QUEUE_ID_AT = 12
FLAG_AT = 16
QUEUE_OFFSET_AT = 20
LOG_OFFSET_AT = 28
SYS_FLAG_AT = 36
BORN_TIMESTAMP_AT = 40
BORN_HOST_AT = 48
_V4_BYTES = 8
_V6_MORE_BYTES = 12


class Stop(Enum):
    """Why a walk ended."""

    LIMIT = auto()
    """The next record begins at or behind where the walk should end."""
    CUT = auto()
    """The next record is not in the buffer as a whole."""
    BLANK = auto()
    """A blank fills the rest of the file."""
    NO_RECORD = auto()
    """Something else than a record stands here."""


@dataclass(frozen=True, slots=True)
class Walked:
    """The records passed, and where and why the walk ended."""

    starts: Integers
    position: int
    stop: Stop


def walk(raw: Bytes, position: int, limit: int) -> Walked:
    """Step from record to record: over those that begin before ``limit`` and are whole in the buffer."""
    if native is not None:
        found, position, stop = native.walk(raw, position, limit)
        return Walked(np.frombuffer(found, np.int64), position, Stop(stop))
    view, unpack, end = raw.data, _HEAD.unpack_from, len(raw)
    starts: list[int] = []
    last_head = min(limit, end - BLANK_BYTES + 1)
    stop = Stop.LIMIT
    while position < last_head:
        size, magic = unpack(view, position)
        if size < MIN_RECORD_BYTES or (magic not in (MAGIC_V1, MAGIC_V2)):
            stop = Stop.BLANK if magic == MAGIC_BLANK and size >= BLANK_BYTES else Stop.NO_RECORD
            break
        if position + size > end:
            stop = Stop.CUT
            break
        starts.append(position)
        position += size
    else:
        if position < limit:
            stop = Stop.CUT
    return Walked(np.array(starts, np.int64), position, stop)


@dataclass(frozen=True, slots=True)
class Located:
    """Records of which every part is known to lie where it should; in the order of the buffer."""

    raw: Bytes
    log_offsets: Integers
    starts: Integers
    ends: Integers
    store_host_at: Integers
    body_starts: Integers
    body_ends: Integers
    topic_starts: Integers
    topic_ends: Integers

    def __len__(self) -> int:
        return len(self.starts)

    def field(self, place: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """One of the fields that every record has at the same place."""
        return gather(self.raw, self.starts + place, kind)

    @property
    def queue_ids(self) -> npt.NDArray[Any]:
        return self.field(QUEUE_ID_AT, _INT)

    @property
    def queue_offsets(self) -> npt.NDArray[Any]:
        return self.field(QUEUE_OFFSET_AT, _LONG)

    @property
    def sys_flags(self) -> npt.NDArray[Any]:
        return self.field(SYS_FLAG_AT, _INT)

    @property
    def store_timestamps(self) -> npt.NDArray[Any]:
        return gather(self.raw, self.store_host_at - 8, _LONG)

    @property
    def sizes(self) -> Integers:
        return self.ends - self.starts

    def take(self, rows: Integers | Booleans | slice) -> "Located":
        """Some of the records."""
        return Located(
            self.raw,
            self.log_offsets[rows],
            self.starts[rows],
            self.ends[rows],
            self.store_host_at[rows],
            self.body_starts[rows],
            self.body_ends[rows],
            self.topic_starts[rows],
            self.topic_ends[rows],
        )


def gather(raw: Bytes, positions: Integers, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """The numbers that stand at these places of a buffer, aligned or not, in the machine's byte order."""
    dtype = np.dtype(kind)
    own = dtype.newbyteorder("=")
    if native is not None:
        return np.frombuffer(native.numbers(raw, np.ascontiguousarray(positions), dtype.itemsize), own)
    view = np.ndarray((max(len(raw) - dtype.itemsize + 1, 0),), dtype, buffer=raw, strides=(1,))
    return view[positions].astype(own)


def locate(raw: Bytes, starts: Integers, log_offsets: Integers) -> tuple[Located, Booleans]:
    """Where the parts of the records lie, and which of them are sound.

    ``raw`` holds all of each record, as far as its size tells; ``log_offsets`` is where each must say it
    lies. Of records that are not sound nothing is true but their start.
    """
    ends = starts + gather(raw, starts + SIZE_AT, _INT)
    is_sound = gather(raw, starts + LOG_OFFSET_AT, _LONG) == log_offsets
    store_host_at, body_at = _host_places(raw, starts)
    is_sound &= body_at + 7 <= ends
    body_starts = np.where(is_sound, body_at, starts + BORN_HOST_AT) + 4
    body_ends = body_starts + gather(raw, body_starts - 4, _INT)
    is_sound &= (body_starts <= body_ends) & (body_ends <= ends - 3)
    body_ends = np.where(is_sound, body_ends, body_starts)
    is_short = gather(raw, starts + MAGIC_AT, _INT) == MAGIC_V1
    topic_bytes = raw[body_ends].astype(np.int64)
    if is_short.all():
        topic_starts = body_ends + 1
        is_sound &= topic_bytes <= MAX_TOPIC_BYTES_V1
    else:
        topic_bytes = np.where(is_short, topic_bytes, gather(raw, body_ends, _SHORT).astype(np.int64))
        topic_starts = body_ends + np.where(is_short, 1, 2)
        is_sound &= topic_bytes <= np.where(is_short, MAX_TOPIC_BYTES_V1, MAX_TOPIC_BYTES)
    topic_ends = topic_starts + topic_bytes
    is_sound &= topic_ends <= ends - 2
    topic_ends = np.where(is_sound, topic_ends, body_ends)
    properties_bytes = gather(raw, topic_ends, _SHORT).astype(np.int64)
    is_sound &= (topic_ends + 2 + properties_bytes == ends) & (properties_bytes <= MAX_PROPERTIES_BYTES)
    located = Located(
        raw, log_offsets, starts, ends, store_host_at, body_starts, body_ends, topic_starts, topic_ends
    )
    rows = np.flatnonzero(is_sound)
    is_sound[rows] = arrow.are_text(raw, topic_starts[rows], topic_ends[rows])
    return located, is_sound


def _host_places(raw: Bytes, starts: Integers) -> tuple[Integers, Integers]:
    """Where the store host begins, and where the length of the body stands."""
    flags = raw[starts + SYS_FLAG_AT + 3]
    store_host_at = starts + (BORN_HOST_AT + _V4_BYTES + 8)
    # Behind the store host: reconsume times and the prepared transaction's offset.
    body_at = store_host_at + (_V4_BYTES + 4 + 8)
    v6_bits = int(SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6)
    if (flags & v6_bits).any():
        born_more = np.where(flags & int(SysFlag.BORN_HOST_V6), _V6_MORE_BYTES, 0)
        store_more = np.where(flags & int(SysFlag.STORE_HOST_V6), _V6_MORE_BYTES, 0)
        store_host_at = store_host_at + born_more
        body_at = body_at + born_more + store_more
    return store_host_at, body_at


def have_sound_bodies(located: Located) -> Booleans:
    """Which of the records have a body that matches its checksum."""
    return checksums(located.raw, located.body_starts, located.body_ends) == located.field(BODY_CRC_AT, _INT)


def checksums(raw: Bytes, starts: Integers, ends: Integers) -> npt.NDArray[np.uint32]:
    """The checksums of the pieces ``[start, end)`` of a buffer, as records have them of their bodies."""
    found = None
    if native is not None:
        found = native.body_checksums(raw, np.ascontiguousarray(starts), np.ascontiguousarray(ends))
    if found is not None:
        return np.frombuffer(found, np.uint32)
    view, crc32 = raw.data, zlib.crc32
    bounds: Iterable[tuple[int, int]] = zip(starts.tolist(), ends.tolist(), strict=True)
    return np.array([crc32(view[start:end]) for start, end in bounds], np.uint32) & np.uint32(CRC_MASK)
