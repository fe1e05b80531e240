"""The commit log: one sequence of bytes, appended to by one writer, read by anyone.

    log_start ......... flushed_to ......... log_end
    first byte kept     durable up to here   one past the last byte written

Always ``log_start <= flushed_to <= log_end``. A record never crosses a file: where the next one
does not fit, a blank fills the file and the record begins the next.
"""

import errno
import mmap
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tanist.clock import Clock
from tanist.errors import (
    FlushFailed,
    LocalProtocolError,
    NotWritable,
    OffsetOutOfRange,
    RemoteProtocolError,
    StoreBusy,
)
from tanist.model.message import Appended, Message, is_queued
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.protocol.crc import crc32
from tanist.protocol.layout import LaidOut, lay_out, lay_out_batch
from tanist.protocol.queue_entry import ENTRY_BYTES
from tanist.protocol.record import BLANK_BYTES, check_record, encode_blank
from tanist.store.segment import WARM_BYTES, WRITE_BYTES, Segment
from tanist.store.segments import Segments

_BESIDE_BODY_BYTES = 64 << 10
_WINDOW_BYTES = 64 << 10
"""Whoever writes records itself gets room for as much at least, but at the end of a file."""
_LOW_BYTES = WARM_BYTES * 3 // 4
"""With fewer bytes of pages before the log's end more are made, when there is time."""
_NEAR_BYTES = 4 << 20
"""How much before what is not durable yet stays in our memory: most consumers read there."""


class Window(NamedTuple):
    """A mapped file of the log, and up to which log offset records may be written there now."""

    mapped: mmap.mmap
    start: int
    room_to: int


class CommitLog:
    """Appends, reads, flushes and cuts the log. Offsets of queues are handed out here, one by one."""

    def __init__(
        self,
        segments: Segments,
        *,
        store_host: bytes,
        max_body_bytes: int,
        clock: Clock,
        is_warming: bool = False,
    ) -> None:
        """``max_body_bytes`` bounds what a packed batch makes; it is for intake to bound single messages.

        ``is_warming`` makes appends cheaper (see Segment.warm) and flushes dearer: pages that were made
        together go to the disk together. So it is for those who flush now and then and not every message;
        for these pages are made one by one (see Segment.make_pages_alone).
        """
        self._segments = segments
        self._store_host = store_host
        # As much as RocketMQ allows beside the body.
        self._lay_out_batch = partial(lay_out_batch, max_bytes=max_body_bytes + _BESIDE_BODY_BYTES)
        self._clock = clock
        self._is_warming = is_warming
        self.cut_count = 0
        """How often the log was cut: what was measured before a cut does not hold behind it."""
        self.log_end = LogOffset(segments.start)
        self.flushed_to = LogOffset(segments.start)
        self.next_queue_offsets: dict[tuple[str, int], int] = {}
        self.refusal: str | None = None
        """Why nothing is written now, or None."""
        self.busy: str | None = None
        """Why the disk is too busy for more, or None."""
        self.flush_failure: str | None = None
        """Why the log can not be made durable any more, or None."""
        self.raw_to = -1
        """Where the last bytes end that came from a master; -1 if none did since the log was opened."""
        # A flush on another thread must not meet a file that is being cut or closed.
        self._files_lock = threading.Lock()

    @property
    def segments(self) -> Segments:
        return self._segments

    @property
    def log_start(self) -> LogOffset:
        return LogOffset(self._segments.start)

    def resume(self, log_end: int) -> None:
        """Go on from where recovery found the end; ``cut`` sees to it that all before is on disk."""
        self.log_end = LogOffset(log_end)
        self.raw_to = -1
        if len(self._segments) and log_end < self._segments.end:
            segment = self._segments.at(log_end)
            segment.allocate()
            if not self._is_warming:
                segment.make_pages_alone(log_end - segment.start)

    # Writing

    def append(self, message: Message) -> Appended:
        """Append one message. Readers see it at once; it is durable when ``flushed_to`` reaches its end."""
        return self._append(message, lay_out)

    def append_laid(self, queue: tuple[str, int], place: Appended, records: bytes) -> bool:
        """Append what was laid out for this place: the log's end, and the next offset of its queue.

        False, and nothing is done, if it does not fit into this file or nothing is taken now.
        """
        assert place.log_offset == self.log_end
        is_taking = self.refusal is None and self.busy is None
        if not is_taking or len(records) > self._room_bytes():
            return False
        self._put_laid(queue, place, records)
        return True

    def window(self) -> Window | None:
        """Where the next records lie, for who writes them itself and sets ``log_end`` and the next offsets.

        It holds until the log is cut. None if there is no file yet.
        """
        if not len(self._segments):
            return None
        segment = self._segments[-1]
        position, room_to = self.log_end - segment.start, segment.end - BLANK_BYTES
        if self._is_warming:
            if position + _WINDOW_BYTES > segment.warm_to:
                segment.warm(position)
            room_to = min(room_to, segment.start + segment.warm_to)
        return Window(segment.mapped, segment.start, room_to)

    def warm_ahead(self) -> None:
        """Make pages for what is stored next, so that whoever stores it need not. For when nobody waits."""
        if self._is_warming and len(self._segments):
            segment = self._segments[-1]
            position = self.log_end - segment.start
            if position <= segment.warm_to < min(position + _LOW_BYTES, segment.size_bytes):
                segment.warm(position)

    def append_packed(self, batch: Message) -> Appended:
        """Append the messages that a batch has in its body: in one file, one behind the other, or nowhere."""
        return self._append(batch, self._lay_out_batch)

    def append_raw(self, log_offset: int, data: bytes | memoryview) -> LogOffset:
        """Append what a master sent, exactly at our end; the new end.

        An empty log begins at whichever file the master begins with.
        """
        if self.refusal is not None:
            raise NotWritable(self.refusal)
        size = self._segments.size_bytes
        if not len(self._segments) and log_offset % size == 0:
            # The file first: if the disk is full the log is as empty as before.
            self._begin_file(log_offset)
            self.log_end = self.flushed_to = LogOffset(log_offset)
        if log_offset != self.log_end:
            raise OffsetOutOfRange("raw bytes at log offset", log_offset, self.log_end, self.log_end)
        rest = memoryview(data)
        while rest:
            if self.log_end == self._segments.end:
                self._begin_file(self.log_end)
            segment = self._segments[-1]
            piece = rest[: segment.end - self.log_end]
            position = self.log_end - segment.start
            self._warm(segment, position, len(piece))
            segment.put_raw(position, piece)
            self.raw_to = self.log_end = LogOffset(self.log_end + len(piece))
            rest = rest[len(piece) :]
        return self.log_end

    # Reading

    def read(self, log_offset: int, size_bytes: int) -> memoryview:
        """Exactly these bytes, as a view. They lie in one file, as every record does."""
        segment = self._segments.at(log_offset)
        end = log_offset + size_bytes
        if end > self.log_end or end > segment.end:
            raise OffsetOutOfRange("log offset", end, self.log_start, self.log_end)
        return segment.view[log_offset - segment.start : end - segment.start]

    def read_ahead(self, log_offset: int, max_bytes: int) -> memoryview:
        """What is written from an offset on, at most ``max_bytes`` and at most to the end of that file."""
        if not self.log_start <= log_offset < self.log_end:
            raise OffsetOutOfRange("log offset", log_offset, self.log_start, self.log_end)
        segment = self._segments.at(log_offset)
        end = min(log_offset + max_bytes, self.log_end, segment.end)
        return segment.view[log_offset - segment.start : end - segment.start]

    def crc_before(self, log_offset: int, size_bytes: int) -> int:
        """The CRC-32 of the bytes right before an offset: it shows whether two replicas hold the same."""
        position = log_offset - size_bytes
        if not self.log_start <= position <= log_offset <= self.log_end:
            asked = f"a checksum of {size_bytes} bytes before log offset"
            raise OffsetOutOfRange(asked, log_offset, self.log_start, self.log_end)
        crc = 0
        while position < log_offset:
            piece = self.read_ahead(position, log_offset - position)
            crc = crc32(piece, crc)
            position += len(piece)
        return crc

    def is_record_start(self, log_offset: int) -> bool:
        """Whether a sound record or a blank begins here, or the log ends here."""
        if log_offset == self.log_end:
            return True
        if not self.log_start <= log_offset < self.log_end:
            return False
        segment = self._segments.at(log_offset)
        try:
            check_record(segment.view, log_offset - segment.start, log_offset=log_offset, is_flushed=True)
        except RemoteProtocolError:
            return False
        return True

    # Keeping and cutting

    @property
    def ends_with_record(self) -> bool:
        """Whether a record is known to end at the log's end: what a master sent may stop within one."""
        return self.raw_to != self.log_end

    def needs_next_file(self) -> bool:
        """Whether the last file is half full, and the next one is not prepared."""
        room_bytes = self._segments.end - self.log_end
        return self._segments.may_prepare and room_bytes < self._segments.size_bytes // 2

    def flush(self) -> LogOffset:
        """Make all that is written now durable. May run on another thread than the writer's."""
        with self._files_lock:
            target = self.log_end
            self._sync(target)
            self.flushed_to = target
            return self.flushed_to

    def release(self) -> None:
        """Take what is durable out of our memory, but for the newest part. May run on any thread.

        The system's cache holds the log in any case, and lends it back as soon as somebody reads. Without
        this a process seems to use as much memory as it has ever written and read.
        """
        with self._files_lock:
            end = self.flushed_to - _NEAR_BYTES
            for segment in self._segments.between(self.log_start, end):
                segment.release(0, end - segment.start)

    def cut(self, log_offset: int, *, is_zero_behind: bool = False) -> int:
        """Forget everything from an offset on: delete later files, zero the rest of this one, durably.

        Returns how many bytes were not zero. The zeros matter: bytes that are only forgotten are
        found again, as sound records, at the next start (RocketMQ brings cut messages back so).
        Where they are known to be there, ``is_zero_behind`` saves looking.
        """
        with self._files_lock:
            self.cut_count += 1
            self._segments.drop_from(log_offset if log_offset > self.log_start else log_offset + 1)
            self.flushed_to = LogOffset(min(self.flushed_to, log_offset))
            cleared = 0
            if len(self._segments) and log_offset < self._segments.end and not is_zero_behind:
                segment = self._segments.at(log_offset)
                cleared = segment.zero_from(log_offset - segment.start)
            # The zeros behind the cut count too, hence one more byte.
            self._sync(log_offset + 1)
            self.flushed_to = LogOffset(log_offset)
            self.resume(log_offset)
            return cleared

    def take_first_segment(self) -> Segment:
        """Forget the oldest file, which the caller discards. The last one always stays."""
        assert len(self._segments) > 1
        assert self._segments[0].end <= self.flushed_to
        with self._files_lock:
            return self._segments.take_first()

    def close(self) -> None:
        with self._files_lock:
            self._segments.close()

    # Inside

    def _sync(self, end: int) -> None:
        """Sync the files from ``flushed_to`` to ``end``, and never again once that has failed.

        The kernel may have dropped the bytes it could not write, and would call the next attempt a
        success. So the log takes no more writes, and says why.
        """
        if self.flush_failure is not None:
            raise FlushFailed(self.flush_failure)
        try:
            for segment in self._segments.between(self.flushed_to, end):
                segment.sync(self.flushed_to - segment.start, end - segment.start)
                if segment.is_deleted:
                    # A broker of Java that is started on our store deletes files before it sees the lock.
                    raise FileNotFoundError(errno.ENOENT, "somebody deleted it", str(segment.path))
        except OSError as error:
            self.flush_failure = (
                f"the disk failed to flush the log: {error}; check it, then restart the broker"
            )
            self.refusal = self.flush_failure
            raise FlushFailed(self.flush_failure) from error

    def _check_takes(self) -> None:
        """Refuse while nothing can be written.

        How large a message may be is for whoever takes it in to say: what was taken once can always be
        moved, also if less is taken now. The log itself needs only that it fits into a file.
        """
        if self.refusal is not None:
            raise NotWritable(self.refusal)
        if self.busy is not None:
            raise StoreBusy(self.busy)

    def _append(self, message: Message, lay: Callable[..., LaidOut]) -> Appended:
        self._check_takes()
        queue = (message.topic, message.queue_id)
        queue_offset = QueueOffset(self.next_queue_offsets.get(queue, 0))
        if not is_queued(message.sys_flag):
            queue_offset = QueueOffset(0)
        now_ms = self._clock.now_ms()
        records, entries, keyed = self._laid_out(message, queue_offset, now_ms, lay)
        appended = Appended(self.log_end, queue_offset, len(records), now_ms, entries, keyed)
        self._put_laid(queue, appended, records)
        return appended

    def _put_laid(self, queue: tuple[str, int], place: Appended, records: bytes) -> None:
        self._put(records)
        if place.entries:
            self.next_queue_offsets[queue] = place.queue_offset + len(place.entries) // ENTRY_BYTES

    def _laid_out(
        self, message: Message, queue_offset: int, now_ms: int, lay: Callable[..., LaidOut]
    ) -> LaidOut:
        """The message laid out for where it goes: here, or at the start of the next file."""
        while True:
            laid = lay(
                message,
                queue_offset=queue_offset,
                log_offset=self.log_end,
                store_timestamp_ms=now_ms,
                store_host=self._store_host,
            )
            if len(laid.records) <= self._room_bytes():
                return laid
            self._roll(len(laid.records))

    def _room_bytes(self) -> int:
        """How many bytes of records the last file still takes: it must keep room for its blank."""
        return self._segments.end - self.log_end - BLANK_BYTES

    def _roll(self, needed_bytes: int) -> None:
        """Begin the next file. It is made first: if the disk is full nothing has changed."""
        size = self._segments.size_bytes
        if needed_bytes + BLANK_BYTES > size:
            raise LocalProtocolError(
                f"{needed_bytes} bytes do not fit into one file of {size}; send less at once"
            )
        tail = self._segments[-1] if len(self._segments) else None
        fresh = self._begin_file(self._segments.end if tail is not None else self.log_end)
        if tail is not None and self.log_end < tail.end:
            tail.put(self.log_end - tail.start, encode_blank(tail.end - self.log_end))
        self.log_end = LogOffset(fresh.start)

    def _begin_file(self, start: int) -> Segment:
        tail = self._segments[-1] if len(self._segments) else None
        fresh = self._segments.add(start)
        if not self._is_warming:
            fresh.make_pages_alone(0)
            if tail is not None:
                tail.read_ahead()
        return fresh

    def _put(self, data: bytes) -> None:
        segment = self._segments[-1]
        position = self.log_end - segment.start
        self._warm(segment, position, len(data))
        segment.put(position, data)
        self.log_end = LogOffset(self.log_end + len(data))

    def _warm(self, segment: Segment, position: int, size_bytes: int) -> None:
        """Have the pages that so much is stored into next; what is written as a whole needs none."""
        if self._is_warming and size_bytes < WRITE_BYTES and position + size_bytes > segment.warm_to:
            segment.warm(position)
