"""A slave's end of a link on a store of its own, with a track or without one."""

import asyncio
import socket
from pathlib import Path
from typing import Any

from tanist.ha.master_connection import MasterConnection, Received
from tanist.ha.record_walk import RecordWalk
from tanist.ha.slave_link import SlaveLink, SlaveLog
from tanist.ha.track import Track, make_track
from tanist.protocol.ha_link import AckKind
from tests.support.fake_transport import FakeTransport
from tests.support.links import KEYS, Bytes, MasterSide, epochs_of
from tests.support.messages import SMALL, open_store

FILE_BYTES = SMALL.mapped_file_size_commit_log


class _Transport(FakeTransport):
    """May have a socket, on which others send past it."""

    def __init__(self, near: socket.socket | None) -> None:
        super().__init__()
        self._near = near

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._near if name == "socket" else super().get_extra_info(name, default)


class FollowingSlave:
    """It is let in by a master whose log is empty; what that sends then is for the test to say."""

    def __init__(
        self,
        root: Path,
        *,
        has_track: bool,
        epoch: int = 0,
        ack_kind: AckKind = AckKind.RECEIVED,
        has_socket: bool = False,
    ) -> None:
        self.store = open_store(root)
        self.taken_bytes: list[int] = []
        self.appended_bytes: list[int] = []
        self.told: list[object] = []
        link = SlaveLink(
            KEYS,
            broker_id=1,
            nonce=b"s" * 16,
            log=SlaveLog(
                self.store.incarnation,
                0,
                0,
                FILE_BYTES,
                self.store.log.crc_before,
                walk_to_end=lambda: RecordWalk(0, file_bytes=FILE_BYTES),
            ),
            ack_kind=ack_kind,
            now_s=asyncio.get_running_loop().time(),
            heartbeat_s=5.0,
            silence_s=60.0,
            epoch=epoch,
        )
        self.track: Track | None = make_track(self.store.log, self.taken_bytes.append) if has_track else None
        received = Received(
            append=self._append,
            follow_log=lambda _incarnation: None,
            tell_epochs=lambda _told: None,
            apply_table=self._apply,
            begin_epoch=lambda epoch, start: self.told.append(("epoch", epoch, start)),
            confirm_to=lambda log_offset: self.told.append(("confirmed", log_offset)),
            when_flushed=lambda _end, _done: None,
            on_read=lambda _size_bytes, master_log_end: self.told.append(("master", master_log_end)),
            on_written=lambda: None,
            track=self.track,
        )
        self.link = link
        self._near, self._far = socket.socketpair()
        self._far.setblocking(False)
        self.transport = _Transport(self._near if has_socket else None)
        self.connection = MasterConnection(link, received)
        self.connection.connection_made(self.transport)
        master = MasterSide(
            Bytes(), file_bytes=FILE_BYTES, epoch=epoch, epochs=epochs_of(*[(epoch, 0)] * bool(epoch))
        )
        while said := self.said_past() or bytes(self.transport.written):
            self.transport.written.clear()
            self.hear(master.hear(said))
        self.told.clear()

    def said_past(self) -> bytes:
        """What was sent since past the transport."""
        try:
            return self._far.recv(1 << 16)
        except BlockingIOError:
            return b""

    def hear(self, data: bytes) -> None:
        """Have this come in one read, or in as many as the buffer takes."""
        while data and not self.connection.closed.done():
            room = self.connection.get_buffer(-1)
            piece, data = data[: len(room)], data[len(room) :]
            room[: len(piece)] = piece
            self.connection.buffer_updated(len(piece))

    def end(self) -> None:
        self.connection.connection_lost(None)
        self.store.close()
        self._near.close()
        self._far.close()

    def outcome(self) -> dict[str, object]:
        """All that can be seen of it from outside."""
        log = self.store.log
        closed = self.connection.closed
        return {
            "log": self._log_bytes(),
            "raw_to": log.raw_to,
            "sent": bytes(self.transport.written),
            "told": self.told,
            "closed": closed.result() if closed.done() else None,
            "acked_to": self.link.acked_to,
            "size": sum(self.taken_bytes) + sum(self.appended_bytes),
        }

    def _log_bytes(self) -> bytes:
        log, at, found = self.store.log, 0, b""
        while at < log.log_end:
            piece = bytes(log.read_ahead(at, log.log_end - at))
            found, at = found + piece, at + len(piece)
        return found

    def _append(self, log_offset: int, body: memoryview) -> int:
        self.appended_bytes.append(len(body))
        return self.store.append_raw(log_offset, body)

    def _apply(self, change: bytes) -> int:
        self.told.append(("table", change))
        return 0
