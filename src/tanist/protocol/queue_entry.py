"""One entry of a consume queue: where a message lies in the log, its size, and the hash of its tag."""

import struct
from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from typing import NamedTuple, TypeAlias

ENTRY_BYTES = 20

FILLER_SIZE = 0x7FFFFFFF
"""The size that marks a filler: an entry that stands for no message."""

# log_offset, size_bytes, tags_code
_ENTRY = struct.Struct(">qiq")
# The log offset alone, as it stands there.
_PACKED_OFFSET = struct.Struct(">8s12x")
_SIZES_AT_ONCE = 128
# The size alone, of one entry and of many.
_SIZE = struct.Struct(">8xi8x")
_SIZES = struct.Struct(">" + "8xi8x" * _SIZES_AT_ONCE)
_MOST_IN_RUN = 128


EntryFields: TypeAlias = tuple[int, int, int]
"""What a QueueEntry has, in its order; a QueueEntry is one too."""


class QueueEntry(NamedTuple):
    """``tags_code`` is the Java hash of the tag, or the due time in the topic of delayed messages."""

    log_offset: int
    size_bytes: int
    tags_code: int

    @property
    def is_filler(self) -> bool:
        return self.size_bytes == FILLER_SIZE

    @property
    def is_written(self) -> bool:
        """False for the zeros behind the last entry of a queue (and for what no queue can hold)."""
        return self.log_offset >= 0 and self.size_bytes > 0


FILLER = _ENTRY.pack(0, FILLER_SIZE, 0)
"""What RocketMQ writes before the first message of a queue that began later."""


def encode_entry(log_offset: int, size_bytes: int, tags_code: int) -> bytes:
    return _ENTRY.pack(log_offset, size_bytes, tags_code)


def log_offsets_of(entries: bytes) -> Iterator[bytes]:
    """Where the messages of these entries lie, as eight bytes each."""
    return map(itemgetter(0), _PACKED_OFFSET.iter_unpack(entries))


def decode_entries(data: bytes | bytearray | memoryview) -> list[QueueEntry]:
    """All whole entries of ``data``; a cut one at the end is left out."""
    return list(map(QueueEntry._make, unpack_entries(data)))


def unpack_entries(data: bytes | bytearray | memoryview) -> list[EntryFields]:
    """The same as plain tuples, in a fourth of the time."""
    whole = len(data) // ENTRY_BYTES * ENTRY_BYTES
    return list(_ENTRY.iter_unpack(memoryview(data)[:whole]))


def find_run(data: bytes | bytearray | memoryview) -> tuple[int, int] | None:
    """The part of the log that the messages of whole entries make up together, as its start and size.

    None if something lies between them, if one is a filler, or if they are too many to look at once.
    """
    count = len(data) // ENTRY_BYTES
    if not 0 < count <= _MOST_IN_RUN:
        return None
    fields = _run_layout(count).unpack_from(data)
    start, last, last_bytes = fields[0], fields[-2], fields[-1]
    # A filler has the greatest size there is, so no sum that holds one can fit.
    size_bytes = sum(fields[1:-2], last_bytes)
    is_run = size_bytes == last + last_bytes - start and size_bytes < FILLER_SIZE
    return (start, size_bytes) if is_run else None


@cache
def _run_layout(count: int) -> struct.Struct:
    """The log offset of the first of so many entries, the sizes of all but the last, and its own two."""
    if count == 1:
        return struct.Struct(">qi8x")
    return struct.Struct(">qi8x" + "8xi8x" * (count - 2) + "qi8x")


def total_size_bytes(data: bytes | bytearray | memoryview) -> int:
    """What the messages of whole entries take together. Many entries, so no object for each."""
    many = len(data) // _SIZES.size * _SIZES.size
    total = 0
    for chunk in (*_SIZES.iter_unpack(memoryview(data)[:many]), *_SIZE.iter_unpack(memoryview(data)[many:])):
        size = sum(chunk)
        total += size if size < FILLER_SIZE else sum(one for one in chunk if one != FILLER_SIZE)
    return total
