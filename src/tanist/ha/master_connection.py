"""The shell around a slave's end of one link: the socket, the timer, and the buffer that bytes come into.

Whole frames are taken from the buffer as they lie; what is left of the next moves to the front. So a byte is
copied once, from the buffer into the log, and not before its frame was checked. A read fills a small part of
the buffer, always the same one while frames are of the usual size: what was just received is then still in
the processor's cache when it is checked and written, and need not come from memory twice.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tanist.errors import MQError
from tanist.ha.actions import (
    AppendLog,
    ApplyTable,
    BeginEpoch,
    CloseKind,
    CloseLink,
    ConfirmTo,
    FollowLog,
    SendBytes,
    SlaveAction,
    TakeNote,
    TellEpochs,
    TruncateTo,
)
from tanist.ha.notes import MAX_WAITING_BYTES, NoteLine, SlaveNotes
from tanist.ha.slave_end import SlaveEnd
from tanist.ha.slave_link import SlaveLink
from tanist.ha.track import Track
from tanist.ha.wire import HIGH_WATER_BYTES, Wire
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_link import ACK_BYTES, FRAME_BYTES, Ack, AckKind, encode_ack
from tanist.protocol.ha_stream import MAX_BODY_BYTES
from tanist.store.flush import FlushDone, FlushOutcome

_READ_BYTES = 2 * (FRAME_BYTES + 64)
"""What a read takes at most: two frames, heads included, as a master that has much to send sends them."""
_BUFFER_BYTES = MAX_BODY_BYTES + _READ_BYTES
_CLOSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Received:
    """What becomes of what a master sends."""

    append: Callable[[int, memoryview], int]
    follow_log: Callable[[bytes | None], None]
    tell_epochs: Callable[[TellEpochs], None]
    apply_table: Callable[[bytes], int] | None
    """What the master asks to be told of once it is done, or 0."""
    begin_epoch: Callable[[int, int], None]
    """An epoch, and where it begins."""
    confirm_to: Callable[[int], None]
    when_flushed: Callable[[int, FlushDone], None]
    """Tells when the log is on the disk up to an offset."""
    on_read: Callable[[int, int], None]
    """So many bytes came; the master's log ends there."""
    on_written: Callable[[], None]
    track: Track | None = None
    """Takes what needs no second look."""
    notes: SlaveNotes | None = None


class MasterConnection(asyncio.BufferedProtocol):
    """The connection to a master. ``closed`` tells why it ended."""

    _wire: Wire

    def __init__(self, link: SlaveEnd, received: Received) -> None:
        self._link = link
        self._received = received
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[CloseLink] = self._loop.create_future()
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = self._end = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: CloseLink | None = None
        self._is_flushing = False
        self._plain_epoch: int | None = None
        """Of what may be taken without a look of the link."""
        self._notes: NoteLine | None = None
        self.cut_asked: asyncio.Future[int] = self._loop.create_future()
        """Where our log has to be cut before the link goes on. Who has cut it calls ``on_truncated``."""
        self.has_heard_nothing = True
        """Whether the master has not said a byte."""

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        room_bytes = MAX_WAITING_BYTES if isinstance(self._link, SlaveLink) else 0
        self._wire = Wire(transport, high_water_bytes=HIGH_WATER_BYTES + room_bytes)
        self._set_timer()
        self._carry_out(self._link.on_connected())

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer[self._end : self._end + _READ_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        self.has_heard_nothing = False
        self._end += nbytes
        if self._closing is not None:
            self._start = self._end = 0
            return
        self._take_plain()
        if self._start < self._end:
            self._read()
        # First of all: the master's producers wait for it.
        self._ack()
        self._make_room()
        self._received.on_read(nbytes, self._link.master_log_end)

    def pause_writing(self) -> None:
        # Acks are tiny, and notes are bounded: who leaves so many of them unread takes none.
        self.close(CloseKind.LOST, f"HAClient, reportSlaveMaxOffset error, {self._link.acked_to}")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._link.on_lost()
        self._let_go()
        # Flushes that end later find that nothing is to be acked any more.
        self._closing = self._closing or CloseLink(
            CloseKind.LOST, str(exc) if exc else "the master closed it"
        )
        if not self.closed.done():
            self.closed.set_result(self._closing)
        if self._notes is not None:
            self._notes.on_close()

    # What the follower calls.

    def close(self, kind: CloseKind, reason: str) -> None:
        """End the link."""
        self._close(CloseLink(kind, reason))

    def on_truncated(self) -> None:
        """Our log is cut as ``cut_asked`` says."""
        if self._closing is None:
            self._carry_out(self._link.on_truncated())

    def send_note(self, note: bytes) -> None:
        """Send a note, if the link is there; it ends if the master reads none."""
        if isinstance(self._link, SlaveLink) and self._closing is None:
            self._carry_out(self._link.send_note(note, now_s=self._loop.time()))

    def drop(self, reason: str) -> None:
        """End the link at once: nobody will be there to see that the master has taken the last word."""
        self.close(CloseKind.STOPPED, reason)
        self._wire.abort()

    # Inside

    def _carry_out(self, actions: list[SlaveAction]) -> None:
        for action in actions:
            if not self._do(action):
                return

    def _do(self, action: SlaveAction) -> bool:
        """Whether what follows is to be done too: not if the link ends because this failed."""
        match action:
            case SendBytes(data):
                self._wire.send((data,))
                self._received.on_written()
            case AppendLog(log_offset, body):
                return self._append(log_offset, body)
            case ApplyTable(change):
                return self._apply(change)
            case TakeNote(note):
                return self._hear(note)
            case FollowLog(incarnation):
                return self._follow(incarnation)
            case TellEpochs():
                self._received.tell_epochs(action)
            case TruncateTo(log_offset):
                # To keep what is cut may take seconds, and the event loop has others to serve.
                if not self.cut_asked.done():
                    self.cut_asked.set_result(log_offset)
            case BeginEpoch(epoch, start):
                return self._begin_epoch(epoch, start)
            case ConfirmTo(confirmed_to):
                self._received.confirm_to(confirmed_to)
            case CloseLink():
                self._close(action)
        return True

    def _append(self, log_offset: int, body: memoryview) -> bool:
        """Whether the bytes are in our log. What is not is never acked, and nothing behind it is taken."""
        try:
            self._link.on_appended(self._received.append(log_offset, body))
        except (MQError, OSError) as error:
            self.close(CloseKind.STORE, f"{len(body)} bytes at {log_offset} are not appended: {error}")
            return False
        return True

    def _apply(self, change: bytes) -> bool:
        apply = self._received.apply_table
        if apply is None:
            return True
        asked = 0

        def act() -> None:
            nonlocal asked
            asked = apply(change)

        is_done = self._is_done(act, CloseKind.BAD_FRAME, "a change of the tables")
        if asked and isinstance(self._link, SlaveLink):
            self._carry_out(self._link.tell_tables_held(asked, now_s=self._loop.time()))
        return is_done

    def _follow(self, incarnation: bytes | None) -> bool:
        is_done = self._is_done(
            lambda: self._received.follow_log(incarnation), CloseKind.STORE, "the log can not be followed"
        )
        if is_done:
            # Heartbeats may be due sooner than the end of the hello was.
            self._set_timer()
            self._listen()
        return self._closing is None

    def _listen(self) -> None:
        """From now on the master's notes are heard, if it is one that makes notes."""
        notes = self._received.notes
        if notes is None or not isinstance(self._link, SlaveLink):
            return
        self._notes = NoteLine(
            peer=self._wire.peer,
            begin=notes.on_linked,
            hear=notes.on_note,
            end=notes.on_unlinked,
            close=self.close,
        )
        self._notes.on_open(self.send_note)

    def _hear(self, note: bytes) -> bool:
        if self._notes is not None:
            self._notes.on_note(note)
        return self._closing is None

    def _begin_epoch(self, epoch: int, start: int) -> bool:
        return self._is_done(
            lambda: self._received.begin_epoch(epoch, start),
            CloseKind.STORE,
            f"epoch {epoch} at {start} is not written down",
        )

    def _is_done(self, act: Callable[[], None], kind: CloseKind, what: str) -> bool:
        """Do something; if that fails the link ends."""
        try:
            act()
        except (MQError, OSError) as error:
            self.close(kind, f"{what}: {error}")
            return False
        return True

    def _take_plain(self) -> None:
        """Have what needs no second look appended, and acked at once if an ack promises no more than that."""
        link, received = self._link, self._received
        if self._plain_epoch is None or received.track is None or not isinstance(link, SlaveLink):
            return
        is_acked_now = link.ack_kind is AckKind.RECEIVED
        taken = received.track.take(
            self._buffer,
            self._start,
            self._end,
            epoch=self._plain_epoch,
            file_number=self._wire.free_file_number if is_acked_now else -1,
            ack_kind=link.ack_kind,
        )
        if taken is None:
            return
        self._start += taken.used_bytes
        if acked_bytes := taken.acked_bytes:
            received.on_written()
            if acked_bytes < ACK_BYTES:
                self._wire.send((encode_ack(Ack(link.ack_kind, LogOffset(taken.log_end)))[acked_bytes:],))
        self._carry_out(
            link.on_taken(
                taken.log_end, taken.confirmed_to, is_acked=acked_bytes > 0, now_s=self._loop.time()
            )
        )

    def _read(self) -> None:
        """Have the link look at all that came."""
        while self._start < self._end:
            was_transferring = self._link.is_transferring
            actions, used = self._link.on_bytes(
                self._buffer[self._start : self._end], now_s=self._loop.time()
            )
            self._start += used
            self._carry_out(actions)
            # What follows the verdict in one read is frames.
            if not used or was_transferring or self._closing is not None:
                break
        link = self._link
        self._plain_epoch = link.plain_epoch if isinstance(link, SlaveLink) else None

    def _ack(self) -> None:
        """Ack what is ours as far as acks promise: received, or on the disk, one flush after the other."""
        log_end = self._link.log_end
        if self._link.ack_kind is AckKind.RECEIVED:
            self._carry_out(self._link.on_held(log_end, now_s=self._loop.time()))
        elif not self._is_flushing and log_end > self._link.acked_to:
            self._is_flushing = True
            self._received.when_flushed(log_end, partial(self._on_flushed, log_end))

    def _on_flushed(self, flushed_to: int, outcome: FlushOutcome) -> None:
        self._is_flushing = False
        if outcome is FlushOutcome.FLUSHED:
            self._carry_out(self._link.on_held(flushed_to, now_s=self._loop.time()))
        elif outcome is not FlushOutcome.LATE:
            self.close(CloseKind.STORE, f"the log is not flushed up to {flushed_to}: {outcome.value}")
        if self._closing is None:
            self._ack()

    def _let_go(self) -> None:
        """Whoever ends a link may cut or close the log next."""
        if self._received.track is not None:
            self._received.track.close()

    def _make_room(self) -> None:
        if self._start:
            held_bytes = self._end - self._start
            self._buffer[:held_bytes] = self._buffer[self._start : self._end]
            self._start, self._end = 0, held_bytes

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        when_s = max(self._link.next_tick_s, self._loop.time() + 0.001)
        self._timer = self._loop.call_at(when_s, self._on_timer)

    def _on_timer(self) -> None:
        if self._closing is not None:
            self._wire.abort()
            return
        self._carry_out(self._link.on_tick(now_s=self._loop.time()))
        if self._closing is None:
            self._set_timer()

    def _close(self, closing: CloseLink) -> None:
        if self._closing is not None:
            return
        self._closing = closing
        self._let_go()
        if not self.closed.done():
            self.closed.set_result(closing)
        if self._notes is not None:
            self._notes.on_close()
        self._wire.close()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_CLOSE_S, self._on_timer)
