"""Reads a part of one file of the log from record to record, and says what is broken in it.

Where something stands that is no sound record, the next one is sought by its magic: it must say that it lies
where it does, and match its checksum. All between is one broken place. At the very end of the log there is no
next one: then the log ends there, unless the store was closed, or known to be flushed, behind that point.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tanist.errors import RemoteProtocolError
from tanist.protocol.record import BLANK_BYTES, MAGIC_BLANK, MAGIC_V1, check_record, peek_record
from tanist.spark.arrow import Bytes
from tanist.spark.decoding import Located, Stop, have_sound_bodies, locate, walk
from tanist.spark.making import Broken, unreadable_bodies

WINDOW_BYTES = 8 << 20
"""So much is read at once: enough to be fast, and little in each of many workers."""

_MAGIC_PREFIX = struct.pack(">i", MAGIC_V1)[:3]
"""What the magics of both record versions begin with."""

ReadAt = Callable[[int, int], Bytes]
"""Reads so many bytes of a file, from a position on; fewer where the file ends."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """The records of one file that begin in ``[start, end)``; one begins at ``start``."""

    path: str
    file_start: int
    file_end: int
    start: int
    end: int
    log_end: int
    """No record that ends behind this is read."""
    sound_to: int
    """What lies before this was on disk whole: if it can not be read now it is broken."""
    is_last: bool
    """Whether nothing of the log is known to lie behind this."""

    @property
    def about_bytes(self) -> int:
        """What is read of the log."""
        return self.end - self.start

    @property
    def readable_to(self) -> int:
        return min(self.file_end, self.log_end)


def walk_range(read: ReadAt, span: FileRange, *, checks_bodies: bool) -> Iterator[Located | Broken]:
    """The records of a range, thousands at a time, and what is broken between them."""
    position, window_bytes = span.start, WINDOW_BYTES
    end = min(span.end, span.readable_to)
    while position < end:
        size = min(window_bytes, span.readable_to - position)
        raw = read(position - span.file_start, size)
        walked = walk(raw, 0, min(end - position, len(raw)))
        located, is_sound = locate(raw, walked.starts, walked.starts + position)
        is_last_window = len(raw) < size or size == span.readable_to - position
        first_bad = len(located) if is_sound.all() else int(np.argmin(is_sound))
        yield from checked(located.take(slice(0, first_bad)), checks_bodies=checks_bodies)
        if first_bad == len(located):
            window_bytes = WINDOW_BYTES if len(located) else 2 * window_bytes
            position += walked.position
            is_cut = walked.stop is Stop.CUT and not is_last_window
            if is_cut or (walked.stop is Stop.LIMIT and len(raw) == size):
                # A record that was cut is read again from its start, and more of it if it was the first.
                continue
        else:
            position += int(walked.starts[first_bad])
        window_bytes = WINDOW_BYTES
        if _is_blank(read, span, position) or _crosses(read, span, position):
            return
        following, is_empty = _look_behind(read, span, position)
        if following is None and span.is_last and (is_empty or position >= span.sound_to):
            return
        behind = end if following is None else following
        yield Broken(position, behind - position, _reason(read, span, position))
        position = behind


def checked(located: Located, *, checks_bodies: bool) -> Iterator[Located | Broken]:
    """The records, but those whose body is not what was written are broken."""
    if not checks_bodies or not len(located):
        if len(located):
            yield located
        return
    wrong = dict.fromkeys(
        np.flatnonzero(~have_sound_bodies(located)).tolist(), "the body does not match its checksum"
    )
    if len(wrong) < len(located):
        wrong = unreadable_bodies(located) | wrong
    if not wrong:
        yield located
        return
    keep = np.ones(len(located), np.bool_)
    for row, reason in sorted(wrong.items()):
        keep[row] = False
        yield Broken(int(located.log_offsets[row]), int(located.sizes[row]), reason)
    if keep.any():
        yield located.take(keep)


def _is_blank(read: ReadAt, span: FileRange, log_offset: int) -> bool:
    """Whether a blank fills the file from here on."""
    head = read(log_offset - span.file_start, BLANK_BYTES)
    if len(head) < BLANK_BYTES:
        return False
    size, magic = peek_record(head.data, 0)
    return magic == MAGIC_BLANK and size == span.file_end - log_offset


def _crosses(read: ReadAt, span: FileRange, log_offset: int) -> bool:
    """Whether a sound record stands here that ends behind the end that was set for us."""
    following = _record_at(read, span, log_offset) if span.log_end < span.file_end else None
    return following is not None and following > span.log_end


def _record_at(read: ReadAt, span: FileRange, log_offset: int) -> int | None:
    """Where the sound record ends that begins here; None if there is none."""
    position = log_offset - span.file_start
    head = read(position, BLANK_BYTES)
    if len(head) < BLANK_BYTES:
        return None
    size, magic = peek_record(head.data, 0)
    if magic == MAGIC_BLANK or not 0 < size <= span.file_end - log_offset:
        return None
    try:
        check_record(read(position, size).data, 0, log_offset=log_offset, is_flushed=True)
    except RemoteProtocolError:
        return None
    return log_offset + size


def _look_behind(read: ReadAt, span: FileRange, bad: int) -> tuple[int | None, bool]:
    """The first sound record of the range behind a bad place, found by its magic; and whether all from that
    place on is zeros, as it is behind the end of a log.
    """
    end = min(span.end, span.readable_to)
    is_empty = not read(bad - span.file_start, 1).any()
    for position in range(bad + 1, end, WINDOW_BYTES):
        # The magic stands four bytes in, and may lie across the end of what is read at once.
        raw = read(position - span.file_start, min(WINDOW_BYTES, end - position) + BLANK_BYTES)
        if not raw.any():
            continue
        is_empty = False
        data = raw.tobytes()
        found = data.find(_MAGIC_PREFIX, 4)
        while found >= 0:
            start = position + found - 4
            if start < end and _record_at(read, span, start) is not None:
                return start, False
            found = data.find(_MAGIC_PREFIX, found + 1)
    return None, is_empty


def _reason(read: ReadAt, span: FileRange, log_offset: int) -> str:
    """What is wrong with what stands here."""
    position = log_offset - span.file_start
    raw = read(position, min(WINDOW_BYTES, span.file_end - log_offset)).data
    try:
        check_record(raw, 0, log_offset=log_offset, is_flushed=True)
    except RemoteProtocolError as error:
        return str(error)
    return "no record may begin here"
