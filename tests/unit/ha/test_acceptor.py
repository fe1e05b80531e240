"""A master's port, over sockets."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import pytest

from tanist.ha import acceptor as acceptor_module
from tanist.ha.acceptor import Acceptor
from tanist.ha.actions import CloseKind
from tanist.ha.settings import HaSettings
from tanist.ha.slave_connection import SlaveConnection
from tests.support.conditions import until
from tests.support.ha_ends import following, make_follower, serving_log, taken_count
from tests.support.links import Bytes, SlaveSide
from tests.support.messages import make_message, open_store


@pytest.mark.behaviour("S1-37")
def test_the_port_goes_on_when_a_connection_could_not_be_built(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_one = Acceptor.on_open
    failures = [MemoryError("no room for it")]

    def on_open(self: Acceptor, connection: SlaveConnection) -> float:
        if failures:
            raise failures.pop()
        return open_one(self, connection)

    monkeypatch.setattr(Acceptor, "on_open", on_open)

    async def run() -> None:
        with open_store(tmp_path / "m") as log, open_store(tmp_path / "s") as store:
            log.append(make_message())
            async with serving_log(log) as (address, _):
                host, port = address.split(":")
                reader, writer = await asyncio.open_connection(host, int(port))
                async with asyncio.timeout(10):
                    with suppress(ConnectionResetError):
                        assert await reader.read() == b""
                writer.close()
                follower = make_follower(store)
                follower.use_master(address)
                async with following(follower):
                    await until(lambda: store.log.log_end == log.log.log_end)

    asyncio.run(run())
    assert "no room for it" in caplog.text


@pytest.mark.behaviour("S1-123")
def test_what_happens_to_a_slave_is_told_in_the_masters_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """From the start of the port to its end, by way of a slave that falls silent."""
    peers: list[str] = []

    async def run() -> None:
        with open_store(tmp_path / "m") as log, open_store(tmp_path / "s") as store:
            log.append(make_message())
            # The slave's heartbeats come every 5 s.
            settings = HaSettings(ha_send_heartbeat_interval=100, ha_housekeeping_interval=200)
            async with serving_log(log, settings) as (address, acceptor):
                follower = make_follower(store)
                follower.use_master(address)
                async with following(follower):
                    await until(lambda: len(acceptor._master.replicas) == 1)
                    peers.extend(replica.peer for replica in acceptor._master.replicas)
                    await until(lambda: "expired" in caplog.text)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    (peer,) = peers
    told = iter(record.getMessage() for record in caplog.records if record.name == "tanist.ha.acceptor")
    for line in (
        "ha service started host=127.0.0.1 port=",
        f"HAService receive new connection, {peer}",
        f"slave[{peer}] request offset 0",
        f"master transfer data from 0 to slave[{peer}], and slave request 0 id=1 dialect=tanist",
        f"ha housekeeping, found this connection[{peer}] expired, nothing came for ",
        f"slave left peer={peer} id=1 ",
        "ha service ended",
    ):
        # In this order, whatever else is told in between.
        assert any(one.startswith(line) for one in told), line


def test_two_slaves_with_one_id_take_turns_less_and_less_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        with (
            open_store(tmp_path / "m") as log,
            open_store(tmp_path / "a") as one,
            open_store(tmp_path / "b") as other,
        ):
            log.append(make_message())
            async with serving_log(log) as (address, acceptor):
                followers = [make_follower(one), make_follower(other)]
                for follower in followers:
                    follower.use_master(address)
                async with following(followers[0]), following(followers[1]):
                    await until(lambda: taken_count(caplog) == 8)
                    assert len(acceptor._master.replicas) == 1
                    assert max(follower._backoff._step_s for follower in followers) >= 0.2

    with caplog.at_level(logging.INFO):
        asyncio.run(run())


def test_slaves_that_never_get_done_with_cutting_keep_no_other_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor_module, "MAX_CUTTING", 2)

    async def begin(address: str) -> asyncio.StreamWriter:
        """Prove to be a slave, and then do nothing."""
        slave = SlaveSide(Bytes(), epoch=1, file_bytes=4096)
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(slave.begin())
        while not (said := slave.hear(await reader.read(1000))):
            pass
        writer.write(said)
        assert await reader.read(1000)
        return writer

    async def run() -> None:
        with open_store(tmp_path) as store:
            store.begin_epoch(1)
            async with serving_log(store, epoch=1) as (address, acceptor):
                writers = [await begin(address) for _ in range(5)]
                refused = acceptor._master.replicas.refused_counts
                await until(lambda: refused[CloseKind.TOO_SLOW.value] == 2)
                for writer in writers:
                    writer.close()
                    with suppress(OSError):
                        await writer.wait_closed()

    asyncio.run(run())
