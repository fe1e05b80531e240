"""The shell around a master's end of one link: the socket, the timer, and the log on its way out."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from tanist.errors import OffsetOutOfRange
from tanist.ha.actions import (
    CloseKind,
    CloseLink,
    MasterAction,
    NewerEpoch,
    SendBytes,
    StartTransfer,
    TakeAck,
    TakeNote,
    TakeTablesHeld,
    TrustPeer,
)
from tanist.ha.admission import deleted_before
from tanist.ha.master_end import MasterEnd
from tanist.ha.master_link import MasterLink
from tanist.ha.notes import MAX_WAITING_BYTES, NoteLine
from tanist.ha.replicas import Replica
from tanist.ha.sending import LogSource, Sending
from tanist.ha.tables import TableFeed
from tanist.ha.throttle import Throttle
from tanist.ha.wire import Wire
from tanist.protocol.ha_link import encode_table_change

_log = logging.getLogger(__name__)

_TURN_BYTES = 512 << 10
"""So much of the log leaves in one turn of the event loop at most: others want their turn."""
_REST_TURNS = 10
"""For so many turns' time a slave that catches up rests while many messages come in: its master has to take
them, and on a machine with few cores the slave's own work would be taken from producers too."""
_BUSY_BYTES_A_SECOND = 2 << 20
"""Of new messages. A master that takes fewer has time for both."""
_MAX_REST_S = 0.05
_TABLES_BYTES_A_SECOND = 512 << 10
"""Changes of the tables leave at once, before whoever made one is answered: what nobody but the master knows
is lost with it. Where they are more than this, some thousand commits, they wait for each other."""
_TABLES_EVERY_S = 0.02
"""So long at most."""
_CONFIRMED_EVERY_S = 0.05
"""A slave with nothing else to read is told so often at most how much of its log is confirmed."""
_CLOSE_S = 1.0
"""So long a peer has to take the last word."""


class Keeper(Protocol):
    """Who keeps the connections: the acceptor."""

    def on_open(self, connection: "SlaveConnection") -> float:
        """Take note of a peer; how many seconds it may say nothing."""
        ...

    def choose_end(self, connection: "SlaveConnection", first: bytes) -> MasterEnd | CloseLink:
        """What is to be spoken with a peer whose first bytes these are."""
        ...

    def on_joined(self, connection: "SlaveConnection", start: StartTransfer) -> Replica: ...

    def on_acked(self, connection: "SlaveConnection", acked_to: int) -> None: ...

    def on_newer_epoch(self, epoch: int) -> None: ...

    def on_closed(self, connection: "SlaveConnection", kind: CloseKind, reason: str) -> None: ...


class SlaveConnection(asyncio.Protocol):
    """One peer on the HA port."""

    wire: Wire
    opened_s: float
    """From then on it has its time to prove itself, whenever it begins."""

    def __init__(self, keeper: Keeper, sending: Sending) -> None:
        self._keeper = keeper
        self._sending = sending
        self._loop = asyncio.get_running_loop()
        self.end: MasterEnd | None = None
        """None before it has said anything."""
        self._throttle = Throttle(sending.bytes_per_second) if sending.bytes_per_second else None
        self._timer: asyncio.TimerHandle | None = None
        self._later: asyncio.Handle | None = None
        self._feed: TableFeed | None = None
        self._feeding: asyncio.TimerHandle | None = None
        self._feed_throttle = Throttle(_TABLES_BYTES_A_SECOND)
        self._notes: NoteLine | None = None
        self._unsent_notes: deque[MasterAction] = deque()
        self._unsent_bytes = 0
        self._held: asyncio.TimerHandle | None = None
        self._confirming: asyncio.TimerHandle | None = None
        self._confirmed_s = 0.0
        self._early = b""
        """What it said while it was not listened to: one read."""
        self._seen_end, self._seen_s = 0, 0.0
        self._is_paused = self._is_closed = False
        self._closing: CloseLink | None = None
        self.is_proven = False
        """Whether it has shown who it is."""
        self.replica: Replica | None = None
        self.first_bytes = b""
        """What it began with, to show if it is refused."""

    @property
    def is_closing(self) -> bool:
        return self._closing is not None

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.wire = Wire(transport)
        self.opened_s = self._loop.time()
        with self._ended_by_faults():
            silence_s = self._keeper.on_open(self)
            if self._closing is None:
                self._set_timer(self.opened_s + silence_s)

    def data_received(self, data: bytes) -> None:
        if self._closing is not None:
            return
        if self._held is not None:
            # Not before something came: uvloop begins to read when a connection is made, paused or not.
            self.wire.pause_reading()
            self._early += data
            return
        if len(self.first_bytes) < 16:
            self.first_bytes += data[:16]
        if self.end is None:
            chosen = self._keeper.choose_end(self, data)
            if isinstance(chosen, CloseLink):
                self._close(chosen)
                return
            self.end = chosen
            self._set_timer(chosen.next_tick_s)
        end, now_s = self.end, self._loop.time()
        if isinstance(end, MasterLink) and (acked_to := end.take_ack(data, now_s=now_s)) is not None:
            self._keeper.on_acked(self, acked_to)
        else:
            self._carry_out(end.on_bytes(data, now_s=now_s))

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._send_notes()
        self.push()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        for handle in (self._timer, self._later, self._feeding, self._held, self._confirming):
            if handle is not None:
                handle.cancel()
        if self._feed is not None:
            self._feed.close()
        if self._notes is not None:
            self._notes.on_close()
        meant = self.end.on_lost() if self.end is not None else None
        lost = CloseLink(CloseKind.LOST, str(exc) if exc else "the slave closed it")
        closing = self._closing or meant or lost
        self._keeper.on_closed(self, closing.kind, closing.reason)

    # What the master calls.

    def push(self) -> None:
        """Send what the log has and the slave was not sent, as far as it takes it now."""
        end = self.end
        if end is None or not end.is_transferring or self._later is not None:
            return
        try:
            self._send_rest(end, self._sending.log)
        except OffsetOutOfRange:
            self.close(CloseKind.REFUSED, deleted_before(end.sent_to).text)
        except Exception:
            self._on_fault()

    def confirm_soon(self) -> None:
        """More of the log is confirmed. Unless the slave learns it with what it is sent, it is told so."""
        if self._confirming is None and not self._is_closed:
            when_s = max(self._confirmed_s + _CONFIRMED_EVERY_S, self._loop.time())
            self._confirming = self._loop.call_at(when_s, self._confirm_now)

    def send_note(self, note: bytes) -> None:
        """Send a note before more of the log, if the link is there; it ends if the slave reads none."""
        if not isinstance(self.end, MasterLink) or self._closing is not None or self._is_closed:
            return
        self._unsent_notes += self.end.send_note(note, now_s=self._loop.time())
        self._unsent_bytes += len(note)
        waiting_bytes = self.wire.waiting_bytes + self._unsent_bytes
        if waiting_bytes > MAX_WAITING_BYTES:
            self.close(CloseKind.LOST, f"it leaves {waiting_bytes} bytes unread")
            return
        self._send_notes()

    def hold(self, until_s: float) -> None:
        """Listen to nothing that it says before this time."""
        if until_s > self._loop.time():
            self._held = self._loop.call_at(until_s, self._hear_early)

    def close(self, kind: CloseKind, reason: str) -> None:
        """End the link."""
        self._close(CloseLink(kind, reason))

    # Inside

    @property
    def _takes_more(self) -> bool:
        return not (self._is_paused or self._is_closed or self._closing)

    @contextmanager
    def _ended_by_faults(self) -> Generator[None]:
        """A mistake of ours ends this link, from which its slave recovers, and stops nobody else."""
        try:
            yield
        except Exception:
            self._on_fault()

    def _on_fault(self) -> None:
        _log.exception("link to a slave failed peer=%s", self.wire.peer)
        self.wire.abort()

    def _send_rest(self, end: MasterEnd, log: LogSource) -> None:
        turn_bytes, begun_s = 0, time.perf_counter()
        while end.sent_to < log.log_end and self._takes_more:
            if turn_bytes >= _TURN_BYTES:
                self._rest(log, begun_s, time.perf_counter())
                return
            if self._throttle is not None and (wait_s := self._throttle.wait_s(self._loop.time())):
                self._later = self._loop.call_later(wait_s, self._push_later)
                return
            turn_bytes += self._send_log(end, log)

    def _rest(self, log: LogSource, begun_s: float, now_s: float) -> None:
        """Let others have their turns, and while many messages come in most of the time."""
        grown_bytes, passed_s = log.log_end - self._seen_end, now_s - self._seen_s
        self._seen_end, self._seen_s = log.log_end, now_s
        is_busy = grown_bytes > _BUSY_BYTES_A_SECOND * passed_s
        rest_s = min((now_s - begun_s) * _REST_TURNS, _MAX_REST_S) if is_busy else 0.0
        self._later = self._loop.call_later(rest_s, self._push_later)

    def _send_log(self, end: MasterEnd, log: LogSource) -> int:
        log_offset = end.sent_to
        body = log.read_ahead(log_offset, end.max_body_bytes)
        header = end.header(log_offset, body, log_end=log.log_end, crcs=self._sending.crcs)
        # Before it is sent: an ack may come while the rest of it still waits.
        end.on_sent(log_offset + len(body), now_s=self._loop.time())
        return self._send((header, body))

    def _hear_early(self) -> None:
        self._held = None
        if self._early:
            early, self._early = self._early, b""
            self.wire.resume_reading()
            self.data_received(early)

    def _confirm_now(self) -> None:
        self._confirming = None
        self._confirmed_s = self._loop.time()
        if self.end is not None and self.end.is_transferring and self._takes_more:
            with self._ended_by_faults():
                log_end = self._sending.log.log_end
                self._carry_out(self.end.on_tick(log_end=log_end, now_s=self._confirmed_s))

    def _push_later(self) -> None:
        self._later = None
        self.push()

    def _send(self, pieces: tuple[bytes | memoryview, ...]) -> int:
        size_bytes = self.wire.send(pieces)
        if self.replica is not None:
            self.replica.rate.add(size_bytes, self._loop.time())
        if self._throttle is not None:
            self._throttle.sent(size_bytes)
        return size_bytes

    def _carry_out(self, actions: list[MasterAction]) -> None:
        for action in actions:
            match action:
                case SendBytes(data):
                    self._send((data,))
                case TakeAck(acked_to):
                    self._keeper.on_acked(self, acked_to)
                case TakeTablesHeld(number):
                    self._take_tables_held(number)
                case TakeNote(note):
                    if self._notes is not None:
                        self._notes.on_note(note)
                case StartTransfer():
                    self._start(action)
                case TrustPeer():
                    self.is_proven = True
                case NewerEpoch(epoch):
                    self._keeper.on_newer_epoch(epoch)
                case CloseLink():
                    self._close(action)

    def _start(self, start: StartTransfer) -> None:
        self.is_proven = True
        self.replica = self._keeper.on_joined(self, start)
        assert self.end is not None
        self._seen_end, self._seen_s = self._sending.log.log_end, time.perf_counter()
        self._set_timer(self.end.next_tick_s)
        if self._sending.make_feed is not None and self.end.dialect.has_tables:
            self._feed = self._sending.make_feed(self._feed_soon)
            self._feed_now()
        self._listen(self.replica)
        self.push()

    def _listen(self, replica: Replica) -> None:
        """From now on the slave's notes are heard, if it is one that makes notes."""
        notes = self._sending.notes
        if notes is None or not isinstance(self.end, MasterLink):
            return
        self._notes = NoteLine(
            peer=self.wire.peer,
            begin=partial(notes.on_joined, replica),
            hear=partial(notes.on_note, replica),
            end=partial(notes.on_left, replica),
            close=self.close,
        )
        self._notes.on_open(self.send_note)

    def _take_tables_held(self, number: int) -> None:
        if self.replica is not None and self._feed is not None:
            self.replica.tables_held = max(self.replica.tables_held, number)
            self._feed.on_held()

    def _send_notes(self) -> None:
        """Send the notes that wait, behind the changes of the tables that were there before them."""
        self._feed_now()
        while self._unsent_notes and self._takes_more:
            self._carry_out([self._unsent_notes.popleft()])
        if not self._unsent_notes:
            self._unsent_bytes = 0

    def _feed_soon(self) -> None:
        if self._feeding is not None or self._is_closed:
            return
        wait_s = self._feed_throttle.wait_s(self._loop.time())
        if wait_s:
            self._feeding = self._loop.call_later(min(wait_s, _TABLES_EVERY_S), self._feed_now)
        else:
            self._feed_now()

    def _feed_now(self) -> None:
        if self._feeding is not None:
            self._feeding.cancel()
            self._feeding = None
        fed_bytes = 0
        with self._ended_by_faults():
            while self._feed is not None and self._takes_more and (change := self._feed.take()) is not None:
                fed_bytes += self._send((encode_table_change(change),))
        # A whole table is not made up for: it comes once a link.
        self._feed_throttle.sent(min(fed_bytes, _TABLES_BYTES_A_SECOND // 10))

    def _set_timer(self, when_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when_s, self._on_timer)

    def _on_timer(self) -> None:
        """The end may have moved its time on: it does so with each read and write, and the timer does not."""
        now_s = self._loop.time()
        if self._closing is not None:
            self.wire.abort()
            return
        if self.end is None:
            self._close(CloseLink(CloseKind.TOO_SLOW, "it said nothing"))
            return
        self._carry_out(self.end.on_tick(log_end=self._sending.log.log_end, now_s=now_s))
        if self._closing is None:
            self._set_timer(max(self.end.next_tick_s, now_s + 0.001))

    def _close(self, closing: CloseLink) -> None:
        if self._closing is not None or self._is_closed:
            return
        self._closing = closing
        if self._notes is not None:
            self._notes.on_close()
        self.wire.close()
        self._set_timer(self._loop.time() + _CLOSE_S)
