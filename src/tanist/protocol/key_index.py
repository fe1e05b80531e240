"""The key index file: a header, hash slots, and chained entries.

A slot holds the number of the newest entry of its chain, an entry the number of the one before it;
0 ends a chain, so entry 0 is never used and the count starts at 1. Only hashes are kept: whoever
looks a key up reads the message and compares.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from tanist.errors import RemoteProtocolError
from tanist.model.java_hash import java_hash
from tanist.protocol.compiled import native

HEADER_BYTES = 40
SLOT_BYTES = 4
INDEX_ENTRY_BYTES = 20
MAX_SECONDS = 0x7FFFFFFF

_SHARED_CHARS = 20
"""How far unique ids of one client are the same: its address, process and class loader."""

# begin_timestamp_ms, end_timestamp_ms, begin_log_offset, end_log_offset, used_slot_count, entry_count
_HEADER = struct.Struct(">qqqqii")
SLOT = struct.Struct(">i")
# key_hash, log_offset, seconds, previous
INDEX_ENTRY = struct.Struct(">iqii")
_unpack_slot, _pack_slot, _pack_entry = SLOT.unpack_from, SLOT.pack_into, INDEX_ENTRY.pack_into


Keyed: TypeAlias = tuple[int, int, int]
"""One key of one message: the key's hash, the message's log offset and its store time."""


class IndexHeader(NamedTuple):
    """What one index file covers. ``entry_count`` counts the unused entry 0."""

    begin_timestamp_ms: int = 0
    end_timestamp_ms: int = 0
    begin_log_offset: int = 0
    end_log_offset: int = 0
    used_slot_count: int = 0
    entry_count: int = 1


class IndexEntry(NamedTuple):
    """``seconds`` counts from the header's begin timestamp, ``previous`` is the chain's next older entry."""

    key_hash: int
    log_offset: int
    seconds: int
    previous: int


def encode_index_header(header: IndexHeader) -> bytes:
    return _HEADER.pack(*header)


def decode_index_header(data: bytes | memoryview) -> IndexHeader:
    """Raises RemoteProtocolError for what no index file can begin with."""
    if len(data) < HEADER_BYTES:
        raise RemoteProtocolError(f"an index header has {HEADER_BYTES} bytes, not {len(data)}")
    header = IndexHeader._make(_HEADER.unpack_from(data, 0))
    # A file that was made and never written is all zeros; it counts as empty.
    if header.entry_count == 0:
        header = header._replace(entry_count=1)
    if min(header) < 0:
        raise RemoteProtocolError(f"an index header with negative fields: {header}")
    return header


def put_keys(
    file: memoryview | bytearray,
    keyed: list[Keyed],
    *,
    slot_count: int,
    first: int,
    begin_timestamp_ms: int,
) -> int:
    """Store keys as the entries of a file from number ``first`` on, each before the others of its slot.

    How many slots were empty until now. There is room for all, and the header is left to the caller.
    """
    if native is not None:
        used = native.put_keys(file, keyed, slot_count, first, begin_timestamp_ms)
        if used is not None:
            return used
    return _put_keys(file, keyed, slot_count, first, begin_timestamp_ms)


def _put_keys(
    file: memoryview | bytearray, keyed: Sequence[Keyed], slot_count: int, first: int, begin_timestamp_ms: int
) -> int:
    used = 0
    position = HEADER_BYTES + slot_count * SLOT_BYTES + first * INDEX_ENTRY_BYTES
    for number, (hashed, log_offset, store_timestamp_ms) in enumerate(keyed, first):
        seconds = (store_timestamp_ms - begin_timestamp_ms) // 1000
        if not 0 <= seconds <= MAX_SECONDS:
            seconds = 0 if seconds < 0 else MAX_SECONDS
        slot = HEADER_BYTES + hashed % slot_count * SLOT_BYTES
        (previous,) = _unpack_slot(file, slot)
        used += previous == 0
        _pack_entry(file, position, hashed, log_offset, seconds, previous)
        _pack_slot(file, slot, number)
        position += INDEX_ENTRY_BYTES
    return used


def key_hash(topic: str, key: str) -> int:
    """The hash under which a key of a topic is kept: never negative."""
    # The unique ids of one client begin alike, and hashing is most of what indexing a message costs.
    value = abs(java_hash(key[_SHARED_CHARS:], before=_head_hash(topic, key[:_SHARED_CHARS])))
    return 0 if value > 0x7FFFFFFF else value


@lru_cache(maxsize=8192)
def _head_hash(topic: str, head: str) -> int:
    return java_hash(f"{topic}#{head}")
