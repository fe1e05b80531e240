"""A master's port and a slave that speak RocketMQ's auto-switch dialect, over sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tanist.ha.acceptor import Acceptor
from tanist.ha.dialect_choice import DialectChoice
from tanist.ha.follower import Follower
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tanist.protocol.ha_autoswitch import SlaveHandshake, encode_slave_handshake, encode_slave_report
from tanist.protocol.ha_hello import GREETING
from tanist.store import MessageStore
from tests.support.autoswitch import log_bytes, open_reigns
from tests.support.conditions import until
from tests.support.ha_ends import following, make_follower, serving_log
from tests.support.messages import make_message, open_store

_ALLOWED = {"ha_compatibility": HaCompatibility.AUTOSWITCH, "ha_allowed_addresses": "127.0.0.1"}
_REIGNS = ((1, 12), (2, 7))


def _settings(**changes: object) -> HaSettings:
    return HaSettings(**{**_ALLOWED, **changes})  # type: ignore[arg-type]


def _as_rocketmqs(store: MessageStore, address: str, settings: HaSettings) -> Follower:
    """A slave that takes the master for one of RocketMQ's, as if it had been silent before."""
    follower = make_follower(store, settings, broker_id=2)
    follower._choice = DialectChoice(Dialect.AUTOSWITCH)
    follower._choice.on_silence(address, Dialect.TANIST, asyncio.get_running_loop().time())
    follower.use_master(address)
    return follower


def _run_pair(
    tmp_path: Path,
    own: tuple[tuple[int, int], ...],
    look: Callable[[MessageStore, MessageStore, Acceptor, Follower], Awaitable[None]],
    *,
    master: HaSettings | None = None,
    slave: HaSettings | None = None,
) -> None:
    async def run() -> None:
        with open_reigns(tmp_path / "m", _REIGNS) as log, open_reigns(tmp_path / "s", own) as store:
            store.dispatch()
            async with serving_log(log, master or _settings()) as (address, acceptor):
                follower = _as_rocketmqs(store, address, slave or _settings())
                async with following(follower):
                    await look(log, store, acceptor, follower)

    asyncio.run(run())


def test_a_log_and_its_epochs_are_followed_and_what_is_acked_counts_for_its_broker_id(tmp_path: Path) -> None:
    async def look(log: MessageStore, store: MessageStore, acceptor: Acceptor, follower: Follower) -> None:
        await until(lambda: store.log.log_end == log.log.log_end)
        log.append(make_message(100))
        acceptor.on_appended()
        await until(lambda: store.log.log_end == log.log.log_end)
        assert log_bytes(store) == log_bytes(log)
        assert store.epochs.epochs == log.epochs.epochs
        assert follower.status.dialect is Dialect.AUTOSWITCH
        (replica,) = acceptor._master.replicas
        await until(lambda: replica.acked_to == log.log.log_end)
        assert (replica.dialect, replica.identity) == (Dialect.AUTOSWITCH, "id 2")
        assert not replica.counts

    _run_pair(tmp_path, (), look)


@pytest.mark.behaviour("S2-25", "S2-30")
def test_what_only_the_slave_has_is_cut_before_it_follows(tmp_path: Path) -> None:
    async def look(log: MessageStore, store: MessageStore, _acceptor: Acceptor, _follower: Follower) -> None:
        await until(lambda: store.epochs.epochs == log.epochs.epochs and store.log.log_end == log.log.log_end)
        assert log_bytes(store) == log_bytes(log)

    # The master of epoch 1 wrote three messages more there.
    _run_pair(tmp_path, ((1, 15),), look)


def test_from_an_address_that_counts_a_slave_counts_and_a_learner_does_not(tmp_path: Path) -> None:
    counted = _settings(ha_counted_addresses="127.0.0.1")

    async def look(_log: MessageStore, _store: MessageStore, acceptor: Acceptor, follower: Follower) -> None:
        await until(lambda: len(acceptor._master.replicas) == 1)
        (replica,) = acceptor._master.replicas
        is_learner = follower._slave.settings.async_learner
        assert (replica.counts, replica.is_learner) == (not is_learner, is_learner)

    for is_learner in (False, True):
        slave = _settings(async_learner=is_learner)
        _run_pair(tmp_path / str(is_learner), (), look, master=counted, slave=slave)


def test_a_peer_does_not_take_the_place_of_a_slave_that_has_proven_its_id(tmp_path: Path) -> None:
    async def run() -> None:
        with open_reigns(tmp_path / "m", _REIGNS) as log, open_store(tmp_path / "s") as store:
            async with serving_log(log, _settings()) as (address, acceptor):
                follower = make_follower(store, _settings(), broker_id=2)
                follower.use_master(address)
                async with following(follower):
                    await until(lambda: store.log.log_end == log.log.log_end)
                    for broker_id, is_taken in ((2, False), (0, False), (3, True)):
                        reader, writer = await asyncio.open_connection(*address.split(":"))
                        writer.write(encode_slave_handshake(SlaveHandshake(broker_id)))
                        async with asyncio.timeout(10):
                            assert bool(await reader.read(20)) == is_taken
                        writer.close()
                    (replica,) = acceptor._master.replicas
                    assert replica.dialect is Dialect.TANIST

    asyncio.run(run())


@pytest.mark.behaviour("S2-13", "S2-22", "S2-24", "S2-38", "S2-39")
def test_a_slave_goes_its_round_as_often_as_links_fail_until_it_is_stopped(tmp_path: Path) -> None:
    """Its master closes the first connection without a word, as one that does not know our hello may."""
    said: list[bytes] = []

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.append(await reader.read(16))
        writer.close()

    async def run() -> None:
        with open_store(tmp_path / "s") as store:
            server = await asyncio.start_server(play, "127.0.0.1", 0)
            host, port = server.sockets[0].getsockname()
            follower = make_follower(store, _settings(), broker_id=2)
            async with following(follower) as running:
                follower.use_master(f"{host}:{port}")
                await until(lambda: len(said) == 4)
                assert not running.done()
            assert running.done()
            server.close()
            await server.wait_closed()

    asyncio.run(run())
    handshake = encode_slave_handshake(SlaveHandshake(2))
    # A master that is silent in RocketMQ's dialect too may be Tanist's after all.
    assert said == [GREETING, handshake, GREETING, handshake]


def test_from_an_address_that_is_not_allowed_no_handshake_is_answered(tmp_path: Path) -> None:
    async def run() -> None:
        with open_reigns(tmp_path / "m", _REIGNS) as log:
            async with serving_log(log, _settings(ha_allowed_addresses="10.0.0.7")) as (address, acceptor):
                reader, writer = await asyncio.open_connection(*address.split(":"))
                writer.write(encode_slave_handshake(SlaveHandshake(2)) + encode_slave_report(0))
                async with asyncio.timeout(10):
                    assert await reader.read() == b""
                writer.close()
                assert "haAllowedAddresses" in acceptor._master.replicas.refused[-1].reason

    asyncio.run(run())
