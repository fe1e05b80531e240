"""Follows the records in a stream of log bytes, to see that they are what can follow in this log. Pure.

A record says how large it is and where it lies. Bytes of another log, or of one whose files have another
size, show there before they are appended; checksums are for whoever reads the records.
"""

import struct
from typing import Final, Protocol

from tanist.errors import RemoteProtocolError
from tanist.protocol.ha_stream import gather
from tanist.protocol.record import BLANK_BYTES, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, MIN_RECORD_BYTES
from tanist.protocol.record_heads import RECORD_HEAD, pass_records

# size, magic
_BLANK: Final = struct.Struct(">ii")


class Log(Protocol):
    """What a walk over a log needs of it."""

    @property
    def log_end(self) -> int: ...

    def read_ahead(self, log_offset: int, max_bytes: int, /) -> memoryview: ...


def walk_to_end(log: Log, log_offset: int, *, file_bytes: int) -> "RecordWalk":
    """Walk over a log from where a record begins to its end, which may be within one.

    Raises RemoteProtocolError if that is no log.
    """
    walk = RecordWalk(log_offset, file_bytes=file_bytes)
    while log_offset < log.log_end:
        piece = log.read_ahead(log_offset, log.log_end - log_offset)
        walk.feed(piece)
        log_offset += len(piece)
    return walk


class RecordWalk:
    """Walks from a place where a record begins."""

    def __init__(self, log_offset: int, *, file_bytes: int) -> None:
        self._file_bytes = file_bytes
        self._record_start = log_offset
        self._head = bytearray()
        self._left = 0
        """What is still to come of the record whose head was seen."""

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes. Raises RemoteProtocolError if they can not stand there."""
        view = memoryview(data)
        while view:
            if self._left:
                passed = min(self._left, len(view))
                self._left -= passed
                view = view[passed:]
            elif not self._head and (passed := self._pass_whole_records(view)):
                view = view[passed:]
            else:
                view = self._take_head(view)

    def _pass_whole_records(self, view: memoryview) -> int:
        """Pass what is plainly records, the last of them perhaps in part; how many bytes that are."""
        start = self._record_start
        last_end = start - start % self._file_bytes + self._file_bytes - BLANK_BYTES
        position = pass_records(view, start, last_end)
        self._record_start += position
        self._left = max(0, position - len(view))
        return min(position, len(view))

    def _take_head(self, view: memoryview) -> memoryview:
        view = gather(self._head, view, _BLANK.size)
        if len(self._head) < _BLANK.size:
            return view
        size_bytes, magic = _BLANK.unpack_from(self._head)
        file_end = self._record_start - self._record_start % self._file_bytes + self._file_bytes
        if magic == MAGIC_BLANK:
            if self._record_start + size_bytes != file_end:
                raise self._fault(
                    f"a blank of {size_bytes} bytes where {file_end - self._record_start} are left"
                )
            return self._pass_head(size_bytes, view)
        if magic not in (MAGIC_V1, MAGIC_V2):
            raise self._fault(f"no record begins with {self._head.hex()}")
        view = gather(self._head, view, RECORD_HEAD.size)
        if len(self._head) < RECORD_HEAD.size:
            return view
        _, _, log_offset = RECORD_HEAD.unpack_from(self._head)
        if log_offset != self._record_start:
            raise self._fault(f"a record that says it lies at {log_offset}")
        if not MIN_RECORD_BYTES <= size_bytes <= file_end - BLANK_BYTES - self._record_start:
            raise self._fault(f"a record of {size_bytes} bytes in a file that ends at {file_end}")
        return self._pass_head(size_bytes, view)

    def _pass_head(self, size_bytes: int, view: memoryview) -> memoryview:
        self._record_start += size_bytes
        self._left = size_bytes - len(self._head)
        self._head.clear()
        return view

    def _fault(self, found: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"at log offset {self._record_start} comes {found}: it is another log than ours, or its files "
            f"have another size than mappedFileSizeCommitLog={self._file_bytes}"
        )
