"""Follows the records in a stream of log bytes, to see that they are what can follow in this log. Pure.

A record says how large it is and where it lies. Bytes of another log, or of one whose files have another
size, show there before they are appended. The checksum of each body is checked too, so that what is damaged
at the master is not copied: the slave has the records up to there.
"""

import struct
from typing import Final, Protocol

from tanist.errors import RemoteProtocolError
from tanist.protocol.crc import crc32
from tanist.protocol.ha_stream import gather
from tanist.protocol.record import (
    BLANK_BYTES,
    CRC_MASK,
    FLAGGED_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    RECORD_HEAD,
    body_and_checksum,
    fixed_size,
)
from tanist.protocol.record_sums import pass_sound

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
        self._body_left = 0
        """What is still to come of its body."""
        self._body_crc = self._due_crc = 0
        """The sum of what came of it, and what that has to be at its end."""

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes. Raises RemoteProtocolError if they can not stand there."""
        view = memoryview(data)
        while view:
            if self._left:
                view = self._take_rest(view)
            elif not self._head and (passed := self._pass_sound_records(view)):
                view = view[passed:]
            else:
                view = self._take_head(view)

    @property
    def is_between_records(self) -> bool:
        """Whether a record or a blank begins next."""
        return not self._left and not self._head

    def skip_to(self, log_offset: int) -> None:
        """Somebody else has passed whole and sound records up to here."""
        assert self.is_between_records
        self._record_start = log_offset

    def _pass_sound_records(self, view: memoryview) -> int:
        """Pass what is plainly whole and sound records; how many bytes that are."""
        start = self._record_start
        last_end = start - start % self._file_bytes + self._file_bytes - BLANK_BYTES
        passed = pass_sound(view[: last_end - start], start)
        self._record_start += passed
        return passed

    def _take_rest(self, view: memoryview) -> memoryview:
        """Pass more of a record that did not come in one piece, or is of an unusual kind."""
        passed = min(self._left, len(view))
        if self._body_left:
            body = view[: min(self._body_left, passed)]
            self._body_crc = crc32(body, self._body_crc)
            self._body_left -= len(body)
            self._check_body()
        self._left -= passed
        return view[passed:]

    def _check_body(self) -> None:
        if not self._body_left and self._body_crc & CRC_MASK != self._due_crc:
            raise RemoteProtocolError(
                f"the record that ends at log offset {self._record_start} has a body that does not match its "
                "checksum: it is damaged in the master's log, and nothing behind it is copied; see the "
                "master's haStatus"
            )

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
        view = gather(self._head, view, FLAGGED_BYTES)
        if len(self._head) < FLAGGED_BYTES:
            return view
        fixed = fixed_size(self._head)
        view = gather(self._head, view, fixed)
        if len(self._head) < fixed:
            return view
        self._body_left, self._due_crc = body_and_checksum(self._head)
        if not 0 <= self._body_left <= size_bytes - fixed - 3:
            raise self._fault(f"a record of {size_bytes} bytes with a body of {self._body_left}")
        self._body_crc = 0
        view = self._pass_head(size_bytes, view)
        self._check_body()
        return view

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
