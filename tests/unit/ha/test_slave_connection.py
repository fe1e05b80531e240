"""The shell around a master's end, with a transport in memory."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import pytest

from tanist.errors import LocalProtocolError, OffsetOutOfRange
from tanist.ha import slave_connection
from tanist.ha.actions import CloseKind, CloseLink, StartTransfer
from tanist.ha.crcs import Crcs
from tanist.ha.master_end import MasterEnd
from tanist.ha.notes import MAX_WAITING_BYTES
from tanist.ha.replicas import Replica
from tanist.ha.sending import LogSource, Sending
from tanist.ha.slave_connection import SlaveConnection
from tanist.ha.tables import TableFeed
from tanist.protocol.ha_link import MAX_NOTE_BYTES, encode_note, encode_table_change
from tests.support.conditions import turns, until
from tests.support.fake_transport import FakeTransport
from tests.support.links import Bytes, MasterSide, SlaveSide, epochs_of
from tests.support.virtual_time import run_virtually, virtually_until

_LOG = b"0123456789" * 100


class _Log:
    """A log that counts how often it is read."""

    def __init__(self) -> None:
        self.data = _LOG
        self.read_count = 0
        self.fault: Exception | None = None

    @property
    def log_end(self) -> int:
        return len(self.data)

    def read_ahead(self, log_offset: int, max_bytes: int) -> memoryview:
        self.read_count += 1
        if self.fault is not None:
            raise self.fault
        return memoryview(self.data)[log_offset : log_offset + max_bytes]


class _Keeper:
    """Lets everybody in."""

    def __init__(self, log: _Log) -> None:
        self.side = MasterSide(Bytes(log.data))
        self.closed: list[CloseKind] = []
        self.fault: Exception | None = None
        self.acked_to = 0
        self.heard: list[bytes] = []
        self.newer_epoch: int | None = None

    def on_open(self, connection: SlaveConnection) -> float:
        if self.fault is not None:
            raise self.fault
        return 3.0

    def choose_end(self, connection: SlaveConnection, first: bytes) -> MasterEnd | CloseLink:
        self.heard.append(first)
        return self.side.link

    def on_joined(self, connection: SlaveConnection, start: StartTransfer) -> Replica:
        return Replica(
            "127.0.0.1:40112",
            self.side.link.dialect,
            start.broker_id,
            True,
            start.requested_to,
            start.start_offset,
            start.ack_kind,
            0,
        )

    def on_acked(self, connection: SlaveConnection, acked_to: int) -> None:
        self.acked_to = acked_to

    def on_newer_epoch(self, epoch: int) -> None:
        self.newer_epoch = epoch

    def on_closed(self, connection: SlaveConnection, kind: CloseKind, reason: str) -> None:
        self.closed.append(kind)


class _Feed:
    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault
        self.changes: list[bytes] = []
        self.is_closed = False
        self.held_count = 0

    def take(self) -> bytes | None:
        if self._fault is not None:
            raise self._fault
        return self.changes.pop(0) if self.changes else None

    def on_held(self) -> None:
        self.held_count += 1

    def close(self) -> None:
        self.is_closed = True


class _Master:
    """One connection, and the slave that it talks to."""

    def __init__(
        self,
        make_feed: Callable[[Callable[[], None]], TableFeed] | None = None,
        *,
        bytes_per_second: int = 0,
    ) -> None:
        self.log = _Log()
        self.keeper = _Keeper(self.log)
        source: LogSource = self.log
        sending = Sending(source, Crcs(), make_feed, bytes_per_second)
        self.connection = SlaveConnection(self.keeper, sending)
        self.transport = FakeTransport()
        self.slave = SlaveSide(Bytes())

    def talk(self) -> None:
        """Let both talk until neither has anything to say."""
        self.connection.connection_made(self.transport)
        said = self.slave.begin()
        while said:
            self.connection.data_received(said)
            heard = bytes(self.transport.written)
            self.transport.written.clear()
            said = self.slave.hear(heard) if heard else b""

    def end(self) -> None:
        self.connection.connection_lost(None)


def test_a_slave_is_sent_the_log_and_believed() -> None:
    async def run() -> None:
        master = _Master()
        master.talk()
        assert master.slave.log.data == _LOG
        assert master.keeper.acked_to == len(_LOG)
        master.end()
        assert master.keeper.closed == [CloseKind.LOST]

    asyncio.run(run())


@pytest.mark.parametrize("is_growing", [True, False])
def test_a_slave_that_catches_up_rests_only_while_messages_come_in(
    monkeypatch: pytest.MonkeyPatch, *, is_growing: bool
) -> None:
    monkeypatch.setattr(slave_connection, "_TURN_BYTES", 1)
    monkeypatch.setattr(slave_connection, "_REST_TURNS", 1e12)
    monkeypatch.setattr(slave_connection, "_MAX_REST_S", 3600.0)
    monkeypatch.setattr(slave_connection, "_BUSY_BYTES_A_SECOND", 0)

    async def run() -> None:
        master = _Master()
        master.log.data = _LOG * 2000
        master.talk()
        for _ in range(50):
            if is_growing:
                master.log.data += b"more"
            await asyncio.sleep(0.001)
            master.connection.push()
        is_all_sent = master.keeper.side.link.sent_to == master.log.log_end
        assert is_all_sent is not is_growing
        master.end()

    asyncio.run(run())


@pytest.mark.parametrize("beside", ["nothing", "changes of tables", "notes"])
def test_what_leaves_in_a_second_is_bounded_with_all_that_is_not_the_log(beside: str) -> None:
    """The log grows by a byte a millisecond: each on its own would be mostly header, ten times the bound."""
    seconds, bound = 5, 5_000

    async def run() -> tuple[int, int]:
        feed = _Feed()
        wakes: list[Callable[[], None]] = []
        master = _Master(lambda wake: (wakes.append(wake), feed)[1], bytes_per_second=bound)
        master.talk()
        sent_before = master.keeper.side.link.sent_to
        for count in range(seconds * 1000):
            master.log.data += b"x"
            master.connection.push()
            if count % 100 == 0 and beside == "changes of tables":
                feed.changes.append(bytes(200))
                wakes[0]()
            elif count % 100 == 0 and beside == "notes":
                master.connection.send_note(bytes(200))
            await asyncio.sleep(0.001)
        written = len(master.transport.written)
        of_log = master.keeper.side.link.sent_to - sent_before
        master.end()
        return written, of_log

    written, of_log = run_virtually(run())
    # A tenth of a second is there in the beginning, and one frame may go below.
    assert written <= bound * (seconds + 0.1) + 1000
    # Yet the log gets what the rest leaves it.
    assert written >= bound * (seconds - 0.5)
    assert of_log >= 0.9 * seconds * 1000


def test_a_link_that_is_closed_takes_nothing_more_from_the_log() -> None:
    async def run() -> None:
        master = _Master()
        master.talk()
        master.connection.close(CloseKind.REPLACED, "by another")
        read_count = master.log.read_count
        master.log.data += b"more"
        master.connection.push()
        assert master.log.read_count == read_count
        assert master.transport.written == b""
        master.end()

    asyncio.run(run())


def test_a_slave_that_is_too_slow_for_retention_is_refused_with_the_way_out() -> None:
    async def run() -> None:
        master = _Master()
        master.log.fault = OffsetOutOfRange("log offset", 0, 500, 1000)
        master.talk()
        assert master.transport.is_closing()
        master.end()
        assert master.keeper.closed == [CloseKind.REFUSED]

    asyncio.run(run())


@pytest.mark.parametrize("where", ["log", "tables"])
def test_a_mistake_of_ours_ends_the_link_and_does_not_reach_who_pushes(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        feed = _Feed(RuntimeError("a mistake"))
        master = _Master((lambda _wake: feed) if where == "tables" else None)
        if where == "log":
            master.log.fault = RuntimeError("a mistake")
        master.talk()
        assert master.transport.is_closing()
        master.end()
        assert feed.is_closed is (where == "tables")

    asyncio.run(run())
    assert "link to a slave failed" in caplog.text


@pytest.mark.behaviour("S1-37")
def test_a_connection_that_can_not_be_built_is_told_of_and_closed(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        master = _Master()
        master.keeper.fault = MemoryError("no room for it")
        master.connection.connection_made(master.transport)
        assert master.transport.is_closing()
        master.end()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert "link to a slave failed" in caplog.text
    assert "no room for it" in caplog.text


def test_a_note_comes_after_the_changes_of_the_tables_that_were_there_before_it() -> None:
    async def run() -> None:
        feed = _Feed()
        master = _Master(lambda _wake: feed)
        master.talk()
        feed.changes = [b"a change", b"another"]
        master.connection.send_note(b"a note")
        assert master.transport.written == (
            encode_table_change(b"a change") + encode_table_change(b"another") + encode_note(b"a note")
        )
        master.end()

    asyncio.run(run())


def test_a_change_of_a_table_leaves_at_once_and_very_many_leave_together() -> None:
    async def run() -> None:
        feed = _Feed()
        wakes: list[Callable[[], None]] = []
        master = _Master(lambda wake: (wakes.append(wake), feed)[1])
        master.talk()
        heard: list[bytes] = []

        def change(number: int) -> bytes:
            return bytes([number]) * (16 << 10)

        for number in range(20):
            feed.changes.append(change(number))
            wakes[0]()
            heard.append(bytes(master.transport.written))
            master.transport.written.clear()
        at_once = [encode_table_change(change(number)) for number in range(3)]
        assert heard[:3] == at_once
        assert heard[10:] == [b""] * 10
        await until(lambda: not feed.changes)
        sent = b"".join(heard) + bytes(master.transport.written)
        assert sent == b"".join(encode_table_change(change(number)) for number in range(20))
        master.end()

    asyncio.run(run())


@pytest.mark.parametrize("size_bytes", [100, 16 << 10])
def test_no_change_of_a_table_waits_for_longer_than_two_hundred_milliseconds(size_bytes: int) -> None:
    """However many there are: for two seconds one each millisecond, few or many times what leaves at once."""

    async def run() -> float:
        loop, feed = asyncio.get_running_loop(), _Feed()
        wakes: list[Callable[[], None]] = []
        master = _Master(lambda wake: (wakes.append(wake), feed)[1])
        master.talk()
        made_s: deque[float] = deque()
        oldest_s = 0.0
        for _ in range(2_000):
            is_awake = bool(feed.changes)
            feed.changes.append(bytes(size_bytes))
            made_s.append(loop.time())
            if not is_awake:
                wakes[0]()
            while len(made_s) > len(feed.changes):
                oldest_s = max(oldest_s, loop.time() - made_s.popleft())
            await asyncio.sleep(0.001)
        oldest_s = max(oldest_s, await virtually_until(lambda: not feed.changes))
        master.end()
        return oldest_s

    assert run_virtually(run()) <= 0.2


def test_notes_wait_while_the_slave_takes_nothing_and_go_before_more_of_the_log() -> None:
    async def run() -> None:
        feed = _Feed()
        master = _Master(lambda _wake: feed)
        master.talk()
        master.connection.pause_writing()
        master.log.data += b"more"
        feed.changes = [b"a change"]
        master.connection.push()
        for note in (b"one", b"two"):
            master.connection.send_note(note)
        assert master.transport.written == b""
        master.connection.resume_writing()
        begun = encode_table_change(b"a change") + encode_note(b"one") + encode_note(b"two")
        assert master.transport.written.startswith(begun)
        master.slave.hear(bytes(master.transport.written))
        assert master.slave.notes == [b"one", b"two"]
        assert master.slave.log.data == _LOG + b"more"
        master.end()

    asyncio.run(run())


@pytest.mark.parametrize("waits_at", ["the system", "the pause"])
def test_a_slave_that_leaves_too_much_unread_is_left_rather_than_a_note_left_out(waits_at: str) -> None:
    async def run() -> None:
        master = _Master()
        master.talk()
        note = bytes(MAX_NOTE_BYTES)
        if waits_at == "the system":
            master.transport.waiting_bytes = MAX_WAITING_BYTES - len(note)
        else:
            master.connection.pause_writing()
            for _ in range(MAX_WAITING_BYTES // len(note) - 1):
                master.connection.send_note(note)
        master.connection.send_note(note)
        assert not master.connection.is_closing
        master.transport.waiting_bytes += 1
        master.connection.send_note(note)
        assert master.connection.is_closing
        master.connection.send_note(b"too late")
        master.end()
        assert master.keeper.closed == [CloseKind.LOST]

    asyncio.run(run())


def test_notes_that_were_taken_count_no_more() -> None:
    async def run() -> None:
        master = _Master()
        master.talk()
        for _ in range(2 * MAX_WAITING_BYTES // MAX_NOTE_BYTES):
            master.connection.send_note(bytes(MAX_NOTE_BYTES))
        assert not master.connection.is_closing
        master.end()

    asyncio.run(run())


def test_who_makes_a_note_that_can_not_be_sent_is_told_at_once_and_the_link_goes_on() -> None:
    async def run() -> None:
        master = _Master()
        master.talk()
        master.connection.pause_writing()
        with pytest.raises(LocalProtocolError, match="a note of 0 bytes"):
            master.connection.send_note(b"")
        master.connection.resume_writing()
        master.connection.send_note(b"fine")
        assert master.transport.written == encode_note(b"fine")
        master.end()

    asyncio.run(run())


def test_before_a_slave_has_said_who_it_is_and_after_it_has_gone_no_note_is_sent() -> None:
    async def run() -> None:
        master = _Master()
        master.connection.connection_made(master.transport)
        master.connection.send_note(b"too early")
        assert master.transport.written == b""
        master.end()
        master.connection.send_note(b"too late")
        assert master.transport.written == b""

    asyncio.run(run())


def test_who_is_held_is_heard_later_and_read_no_further_until_then() -> None:
    async def run() -> None:
        master = _Master()
        master.connection.connection_made(master.transport)
        master.connection.hold(asyncio.get_running_loop().time() + 0.05)
        # The event loop of uvloop reads once, whatever it was told when the connection was made.
        master.connection.data_received(said := master.slave.begin())
        assert master.keeper.heard == []
        assert master.transport.is_paused
        await until(lambda: master.keeper.heard == [said])
        assert not master.transport.is_paused
        assert master.transport.written != b""
        master.end()

    asyncio.run(run())


def test_a_hold_whose_time_is_over_holds_nobody() -> None:
    async def run() -> None:
        master = _Master()
        master.connection.connection_made(master.transport)
        master.connection.hold(asyncio.get_running_loop().time() - 1)
        master.connection.data_received(said := master.slave.begin())
        assert master.keeper.heard == [said]
        master.end()

    asyncio.run(run())


def _named_master(*, confirmed_to: int = 0) -> _Master:
    """A master that a controller has named, and a slave that was told of it."""
    master = _Master()
    master.keeper.side = MasterSide(Bytes(_LOG), epoch=1, epochs=epochs_of((1, 0)), confirmed_to=confirmed_to)
    master.slave = SlaveSide(Bytes(), epoch=1)
    return master


def test_a_slave_is_told_at_once_what_was_confirmed_and_then_no_more_than_so_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slave_connection, "_CONFIRMED_EVERY_S", 3600.0)

    async def run() -> None:
        master = _named_master()
        master.talk()
        assert master.slave.confirmed == [0]
        for confirmed_to in (300, 500, 700):
            master.keeper.side.confirmed_to = confirmed_to
            master.connection.confirm_soon()
        await until(lambda: len(master.transport.written) > 0)
        master.slave.hear(bytes(master.transport.written))
        assert master.slave.confirmed == [0, 700]
        master.transport.written.clear()
        master.keeper.side.confirmed_to = 900
        master.connection.confirm_soon()
        await turns(5)
        assert master.transport.written == b""
        # What is sent in any case tells it too.
        master.log.data += b"more"
        master.connection.push()
        master.slave.hear(bytes(master.transport.written))
        assert master.slave.confirmed[-1] == 900
        master.end()

    asyncio.run(run())


def test_a_slave_that_was_told_nothing_new_is_sent_nothing() -> None:
    async def run() -> None:
        master = _named_master(confirmed_to=len(_LOG))
        master.talk()
        assert master.slave.confirmed[-1] == len(_LOG)
        master.connection.confirm_soon()
        await turns(5)
        assert master.transport.written == b""
        assert master.connection._confirming is None
        master.end()

    asyncio.run(run())


def test_who_keeps_the_connections_hears_of_a_newer_epoch() -> None:
    async def run() -> None:
        master = _named_master()
        master.slave = SlaveSide(Bytes(), epoch=7)
        master.talk()
        assert master.keeper.newer_epoch == 7
        assert not master.connection.is_proven
        assert master.transport.is_closing()
        master.end()
        assert master.keeper.closed == [CloseKind.REFUSED]

    asyncio.run(run())


def test_a_slave_counts_as_proven_while_it_cuts_its_log() -> None:
    async def run() -> None:
        master = _named_master()
        master.connection.connection_made(master.transport)
        said = master.slave.begin()
        for is_proven in (False, True):
            master.connection.data_received(said)
            assert master.connection.is_proven is is_proven
            said = master.slave.hear(bytes(master.transport.written))
            master.transport.written.clear()
        assert master.connection.replica is None
        master.end()

    asyncio.run(run())
