import asyncio
import socket
from collections.abc import Callable

import pytest

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import CloseKind, CloseLink
from tanist.ha.classic_slave import ClassicSlaveLink
from tanist.ha.master_connection import MasterConnection, Received
from tanist.ha.notes import MAX_WAITING_BYTES, SlaveNotes
from tanist.ha.record_walk import RecordWalk
from tanist.ha.slave_link import SlaveLink, SlaveLog
from tanist.ha.wire import HIGH_WATER_BYTES
from tanist.protocol.ha_classic import encode_report
from tanist.protocol.ha_hello import NO_INCARNATION
from tanist.protocol.ha_link import AckKind, encode_note
from tanist.store.flush import FlushDone, FlushOutcome
from tests.support.conditions import until
from tests.support.fake_transport import FakeTransport
from tests.support.heard_notes import HeardBySlave
from tests.support.links import FILE_BYTES, INCARNATION, KEYS, Bytes, MasterSide, epochs_of

_LOG_END = 8192
_SMALL_BYTES = 4096
_BYTES = bytes(range(250)) * 4


def _make_connection() -> MasterConnection:
    """A slave's end that reports all the time."""
    link = ClassicSlaveLink(
        log_end=_LOG_END,
        walk=RecordWalk(_LOG_END, file_bytes=4096),
        file_bytes=4096,
        ack_kind=AckKind.RECEIVED,
        now_s=asyncio.get_running_loop().time(),
        heartbeat_s=0.0,
        silence_s=60.0,
    )
    received = Received(
        append=lambda _log_offset, _body: 0,
        follow_log=lambda _incarnation: None,
        tell_epochs=lambda _told: None,
        apply_table=None,
        begin_epoch=lambda _epoch, _start: None,
        confirm_to=lambda _log_offset: None,
        when_flushed=lambda _log_offset, _done: None,
        on_read=lambda _size_bytes, _master_log_end: None,
        on_written=lambda: None,
    )
    return MasterConnection(link, received)


@pytest.mark.behaviour("S1-83", "S1-88")
def test_a_master_that_takes_no_reports_is_left_and_gets_no_half_of_one_and_then_another() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BYTES)
            client = socket.create_connection(listener.getsockname())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SMALL_BYTES)
            master, _ = listener.accept()
        with master:
            loop = asyncio.get_running_loop()
            transport, connection = await loop.create_connection(_make_connection, sock=client)
            transport.set_write_buffer_limits(high=0)
            async with asyncio.timeout(30):
                closing = await connection.closed
            assert closing == CloseLink(CloseKind.LOST, f"HAClient, reportSlaveMaxOffset error, {_LOG_END}")
            transport.abort()
            master.setblocking(False)
            await asyncio.sleep(0)
            read = b""
            while True:
                try:
                    piece = master.recv(1 << 16)
                except (BlockingIOError, ConnectionResetError):
                    break
                if not piece:
                    break
                read += piece
        report = encode_report(_LOG_END)
        assert read == (report * (len(read) // 8 + 1))[: len(read)]

    asyncio.run(run())


class _Slave:
    """A slave's end on a transport in memory, and the master that it talks to."""

    def __init__(
        self,
        master: MasterSide,
        when_flushed: Callable[[int, FlushDone], None],
        *,
        heartbeat_s: float = 5.0,
        notes: SlaveNotes | None = None,
    ) -> None:
        self.master = master
        self.log = bytearray()
        link = SlaveLink(
            KEYS,
            broker_id=1,
            nonce=b"s" * 16,
            log=SlaveLog(NO_INCARNATION, 0, 0, FILE_BYTES, lambda _log_offset, _size_bytes: 0),
            ack_kind=AckKind.FLUSHED,
            now_s=asyncio.get_running_loop().time(),
            heartbeat_s=heartbeat_s,
            silence_s=60.0,
        )
        self.connection = MasterConnection(
            link,
            Received(
                append=self._append,
                follow_log=lambda _incarnation: None,
                tell_epochs=lambda _told: None,
                apply_table=None,
                begin_epoch=lambda _epoch, _start: None,
                confirm_to=lambda _log_offset: None,
                when_flushed=when_flushed,
                on_read=lambda _size_bytes, _master_log_end: None,
                on_written=lambda: None,
                notes=notes,
            ),
        )
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def talk(self) -> None:
        """Let both talk until neither has anything to say."""
        while self.transport.written:
            said = bytes(self.transport.written)
            self.transport.written.clear()
            self.hear(self.master.hear(said))

    def hear(self, data: bytes) -> None:
        if data:
            self.connection.get_buffer(-1)[: len(data)] = data
            self.connection.buffer_updated(len(data))

    def _append(self, log_offset: int, body: memoryview) -> int:
        self.log += body
        return log_offset + len(body)


class _Flushes:
    """Flushes that end when a test says so; then what is asked for is flushed already."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, FlushDone]] = []
        self.is_over = False

    def when_flushed(self, end: int, done: FlushDone) -> None:
        self.asked.append((end, done))
        if self.is_over:
            done(FlushOutcome.FLUSHED)

    def end(self) -> None:
        self.is_over = True
        self.asked[0][1](FlushOutcome.FLUSHED)


def test_a_flush_that_ends_after_its_link_has_nobody_to_tell() -> None:
    async def run() -> None:
        flushes = _Flushes()
        slave = _Slave(MasterSide(Bytes(b"x" * 100)), flushes.when_flushed)
        slave.talk()
        assert slave.log == b"x" * 100
        slave.connection.connection_lost(None)
        flushes.end()
        assert len(flushes.asked) == 1
        assert slave.transport.written == b""

    asyncio.run(run())


def test_what_an_empty_slave_does_not_get_is_not_waited_for_on_its_disk() -> None:
    async def run() -> None:
        flushes = _Flushes()
        slave = _Slave(MasterSide(Bytes(b"", start=2 * FILE_BYTES)), flushes.when_flushed)
        slave.talk()
        assert flushes.asked == []
        slave.connection.connection_lost(None)

    asyncio.run(run())


def test_heartbeats_begin_with_the_transfer_and_not_when_the_hello_would_have_been_too_slow() -> None:
    async def run() -> None:
        slave = _Slave(MasterSide(Bytes()), _Flushes().when_flushed, heartbeat_s=0.01)
        slave.talk()
        await until(lambda: len(slave.transport.written) > 0, timeout_s=2.0)
        slave.connection.connection_lost(None)

    asyncio.run(run())


# Notes


def test_a_master_may_leave_more_notes_unread_than_acks() -> None:
    async def run() -> None:
        slave = _Slave(MasterSide(Bytes()), _Flushes().when_flushed)
        assert slave.transport.high_water_bytes == HIGH_WATER_BYTES + MAX_WAITING_BYTES
        slave.connection.connection_lost(None)
        classic = _make_connection()
        transport = FakeTransport()
        classic.connection_made(transport)
        assert transport.high_water_bytes == HIGH_WATER_BYTES
        classic.send_note(b"for nobody")
        assert encode_note(b"for nobody") not in transport.written
        classic.connection_lost(None)

    asyncio.run(run())


def test_a_slave_notes_nothing_before_its_master_lets_it_in_and_after_it_has_left() -> None:
    async def run() -> None:
        slave = _Slave(MasterSide(Bytes()), _Flushes().when_flushed)
        slave.connection.send_note(b"too early")
        assert encode_note(b"too early") not in slave.transport.written
        slave.talk()
        slave.connection.send_note(b"in time")
        assert slave.transport.written == encode_note(b"in time")
        slave.connection.pause_writing()
        slave.connection.send_note(b"too late")
        assert slave.transport.written == encode_note(b"in time")
        assert slave.connection.closed.result().kind is CloseKind.LOST
        slave.connection.connection_lost(None)

    asyncio.run(run())


def test_what_comes_behind_a_note_of_bad_form_is_not_appended() -> None:
    async def run() -> None:
        heard = HeardBySlave()
        heard.faults["note"] = RemoteProtocolError("a note without its seq")
        slave = _Slave(MasterSide(Bytes(b"x" * 100)), _Flushes().when_flushed, notes=heard)
        slave.talk()
        slave.master.log.data += b"more"
        slave.hear(encode_note(b"bad") + slave.master.push())
        assert slave.log == b"x" * 100
        assert slave.connection.closed.result() == CloseLink(CloseKind.BAD_FRAME, "a note without its seq")
        assert heard.events == ["begin", "note", "end"]
        slave.connection.connection_lost(None)
        assert heard.events == ["begin", "note", "end"]

    asyncio.run(run())


# Cutting, where a controller names the master


class _OldMaster:
    """A slave that was master before; and the master that it calls now."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []
        self.master = MasterSide(Bytes(_BYTES), epoch=3, epochs=epochs_of((1, 0), (3, 600)))
        log = Bytes(_BYTES[:600] + b"lost")
        self.connection = MasterConnection(
            SlaveLink(
                KEYS,
                broker_id=1,
                nonce=b"s" * 16,
                log=SlaveLog(INCARNATION, 0, 604, FILE_BYTES, log.crc_before, epochs_of((1, 0), (2, 600))),
                ack_kind=AckKind.RECEIVED,
                now_s=asyncio.get_running_loop().time(),
                heartbeat_s=5.0,
                silence_s=60.0,
                epoch=3,
            ),
            Received(
                append=self._append,
                follow_log=lambda _incarnation: self.done.append(("follow", 0)),
                tell_epochs=lambda _told: None,
                apply_table=None,
                begin_epoch=lambda _epoch, start: self.done.append(("epoch", start)),
                confirm_to=lambda log_offset: self.done.append(("confirm", log_offset)),
                when_flushed=lambda _end, _done: None,
                on_read=lambda _size_bytes, _master_log_end: None,
                on_written=lambda: None,
            ),
        )
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def talk(self) -> None:
        while self.transport.written:
            said = bytes(self.transport.written)
            self.transport.written.clear()
            if heard := self.master.hear(said):
                self.connection.get_buffer(-1)[: len(heard)] = heard
                self.connection.buffer_updated(len(heard))

    def _append(self, log_offset: int, body: memoryview) -> int:
        self.done.append(("append", log_offset))
        return log_offset + len(body)


def test_the_log_is_cut_before_it_is_shown_again_and_the_epoch_stands_before_its_bytes() -> None:
    async def run() -> None:
        slave = _OldMaster()
        slave.talk()
        assert slave.connection.cut_asked.result() == 600
        assert slave.done == []
        slave.connection.on_truncated()
        slave.talk()
        assert slave.done[:4] == [
            ("follow", 0),
            ("confirm", 0),
            ("epoch", 600),
            ("append", 600),
        ]
        assert slave.master.acked[-1] == len(_BYTES)
        slave.connection.connection_lost(None)

    asyncio.run(run())


def test_a_link_that_ended_while_the_log_was_cut_is_over() -> None:
    async def run() -> None:
        slave = _OldMaster()
        slave.talk()
        slave.connection.close(CloseKind.STOPPED, "the master is elsewhere")
        slave.connection.on_truncated()
        slave.talk()
        assert slave.done == []
        assert slave.master.started is None
        slave.connection.connection_lost(None)

    asyncio.run(run())
