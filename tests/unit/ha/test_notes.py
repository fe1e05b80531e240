"""Notes through the shells of both ends, over sockets: who hears of which link, and what a fault ends."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.errors import RemoteProtocolError
from tanist.ha.acceptor import Acceptor
from tanist.ha.actions import CloseKind
from tanist.ha.dialect_choice import DialectChoice
from tanist.ha.follower import Follower
from tanist.ha.notes import NoteLine
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tanist.protocol.ha_link import MAX_NOTE_BYTES
from tests.support.conditions import turns, until
from tests.support.ha_ends import following, make_follower, serving_log
from tests.support.heard_notes import Heard, HeardByMaster, HeardBySlave
from tests.support.messages import make_message, open_store

_LARGEST = bytes(range(256)) * (MAX_NOTE_BYTES // 256)
_BAD_FORM = RemoteProtocolError("a note without its seq")
_CLASSIC = HaSettings(ha_compatibility=HaCompatibility.CLASSIC, ha_allowed_addresses="127.0.0.1")


@dataclass(frozen=True, slots=True)
class _Pair:
    """A master's port, a slave that may follow it, and who hears them."""

    address: str
    acceptor: Acceptor
    follower: Follower
    master: HeardByMaster
    slave: HeardBySlave

    async def linked(self, count: int = 1) -> None:
        """Wait until so many links have begun."""
        await until(lambda: [len(heard.sends) for heard in (self.master, self.slave)] == [count, count])

    def check_paired(self, *events: str) -> None:
        """Of their links both heard the beginning and the end, and this of the one."""
        for heard in (self.master, self.slave):
            pairs = [event for event in heard.events if event != "note"]
            assert pairs == ["begin", "end"] * (len(pairs) // 2)
            assert not events or heard.events == [*events]


@asynccontextmanager
async def _pair(root: Path, settings: HaSettings | None = None) -> AsyncGenerator[_Pair]:
    master, slave = HeardByMaster(), HeardBySlave()
    with open_store(root / "m") as log, open_store(root / "s") as store:
        log.append(make_message())
        async with serving_log(log, settings, notes=master) as (address, acceptor):
            follower = make_follower(store, settings, notes=slave)
            follower.use_master(address)
            yield _Pair(address, acceptor, follower, master, slave)


def test_both_ends_hear_each_other_while_their_link_lasts(tmp_path: Path) -> None:
    async def run() -> None:
        async with _pair(tmp_path) as pair:
            async with following(pair.follower):
                await pair.linked()
                (replica,) = pair.acceptor._master.replicas
                assert pair.master.replicas == [replica]
                for heard, other in ((pair.master, pair.slave), (pair.slave, pair.master)):
                    for note in (b"one", b"two"):
                        heard.sends[0](note)
                    await until(lambda other=other: other.notes == [b"one", b"two"])
            await until(lambda: pair.master.replicas == [])
            pair.check_paired("begin", "note", "note", "end")
            pair.master.sends[0](b"too late")
            pair.slave.sends[0](b"too late")

    asyncio.run(run())


def test_the_largest_notes_come_through_whole_and_many_at_a_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with _pair(tmp_path) as pair, following(pair.follower):
            await pair.linked()
            for heard, other in ((pair.master, pair.slave), (pair.slave, pair.master)):
                for _ in range(8):
                    heard.sends[0](_LARGEST)
                await until(lambda other=other: len(other.notes) == 8)
                assert set(other.notes) == {_LARGEST}
            assert pair.follower.is_transferring

    asyncio.run(run())


def test_a_slave_that_calls_anew_has_left_before_it_joins(tmp_path: Path) -> None:
    async def run() -> None:
        async with _pair(tmp_path) as pair:
            with open_store(tmp_path / "other") as store:
                twin = make_follower(store)
                twin.use_master(pair.address)
                async with following(pair.follower):
                    await pair.linked()
                    async with following(twin):
                        await until(lambda: len(pair.master.sends) > 1)
                        assert pair.master.events[:3] == ["begin", "end", "begin"]
            await until(lambda: pair.master.replicas == [])
            pair.check_paired()

    asyncio.run(run())


def test_when_the_master_stops_both_have_heard_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with _pair(tmp_path) as pair, following(pair.follower):
            await pair.linked()
            await pair.acceptor.close()
            assert pair.master.events == ["begin", "end"]
            await until(lambda: pair.slave.events == ["begin", "end"])

    asyncio.run(run())


def test_when_a_slave_stops_or_turns_elsewhere_it_has_heard_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with _pair(tmp_path) as pair:
            async with following(pair.follower):
                await pair.linked()
                pair.follower.use_master("127.0.0.1:9")
                await until(lambda: pair.slave.events == ["begin", "end"])
                pair.follower.use_master(pair.address)
                await pair.linked(2)
            assert pair.slave.events == ["begin", "end", "begin", "end"]

    asyncio.run(run())


def test_of_a_slave_that_is_refused_nobody_hears(tmp_path: Path) -> None:
    async def run() -> None:
        async with _pair(tmp_path) as pair:
            with open_store(tmp_path / "other") as store:
                store.append(make_message(5))
                store.append(make_message(5))
                refused = make_follower(store, notes=pair.slave)
                refused.use_master(pair.address)
                async with following(refused):
                    await until(lambda: refused.status.is_refused)
            assert pair.master.events == pair.slave.events == []

    asyncio.run(run())


@pytest.mark.parametrize("side", ["master", "slave"])
def test_a_note_of_bad_form_ends_the_link_with_the_reason(tmp_path: Path, side: str) -> None:
    async def run() -> None:
        async with _pair(tmp_path) as pair:
            async with following(pair.follower):
                await pair.linked()
                hears, tells = (pair.master, pair.slave) if side == "master" else (pair.slave, pair.master)
                hears.faults["note"] = _BAD_FORM
                for _ in range(3):
                    tells.sends[0](b"x")
                await pair.linked(2)
                # What came with it is not heard.
                assert hears.notes == [b"x"]
                if side == "master":
                    (refused,) = pair.acceptor._master.replicas.refused
                    assert refused.reason == f"{CloseKind.BAD_FRAME.value}: {_BAD_FORM}"
            await until(lambda: pair.master.replicas == [])
            pair.check_paired()

    asyncio.run(run())


@pytest.mark.parametrize("event", ["begin", "note", "end"])
@pytest.mark.parametrize("side", ["master", "slave"])
def test_whoever_fails_at_a_note_ends_that_link_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, side: str, event: str
) -> None:
    def fail(heard: Heard) -> None:
        heard.faults[event] = RuntimeError("a mistake")

    async def run() -> None:
        async with _pair(tmp_path) as pair:
            hears, tells = (pair.master, pair.slave) if side == "master" else (pair.slave, pair.master)
            if event == "begin":
                fail(hears)
            async with following(pair.follower):
                await pair.linked()
                if event != "begin":
                    fail(hears)
                if event == "note":
                    tells.sends[0](b"x")
                elif event == "end":
                    (connection,) = pair.acceptor._connections
                    connection.close(CloseKind.LOST, "by a test")
                await pair.linked(2)
                tells.sends[1](b"again")
                await until(lambda: hears.notes[-1:] == [b"again"])
            await until(lambda: pair.master.replicas == [])
            pair.check_paired()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert "who hears the notes of a link failed" in caplog.text
    assert "a mistake" in caplog.text


def test_who_fails_when_a_link_begins_hears_at_once_that_it_has_ended() -> None:
    heard, closed = HeardBySlave(), list[tuple[CloseKind, str]]()

    def close(kind: CloseKind, reason: str) -> None:
        closed.append((kind, reason))
        line.on_close()

    line = NoteLine("10.0.0.7:10912", heard.on_linked, heard.on_note, heard.on_unlinked, close)
    line.on_note(b"too early")
    heard.faults["begin"] = _BAD_FORM
    line.on_open(lambda _note: None)
    assert heard.events == ["begin", "end"]
    assert closed == [(CloseKind.BAD_FRAME, str(_BAD_FORM))]
    line.on_note(b"too late")
    line.on_close()
    assert heard.events == ["begin", "end"]


def test_nobody_hears_of_links_in_rocketmqs_dialects(tmp_path: Path) -> None:
    async def run() -> None:
        async with _pair(tmp_path, _CLASSIC) as pair:
            pair.follower._choice = DialectChoice(Dialect.CLASSIC)
            pair.follower._choice.on_silence(pair.address, Dialect.TANIST, asyncio.get_running_loop().time())
            async with following(pair.follower):
                await until(lambda: pair.follower.is_transferring)
                await until(lambda: len(pair.acceptor._master.replicas) == 1)
                assert pair.follower.status.dialect is Dialect.CLASSIC
                (connection,) = pair.acceptor._connections
                connection.send_note(b"x")
                await turns()
                assert pair.follower.is_transferring
            assert pair.master.events == pair.slave.events == []

    asyncio.run(run())
