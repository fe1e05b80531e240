"""Brokers of Apache RocketMQ under its controller, and Tanist's ends of the link between them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tanist.ha.acceptor import Acceptor
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tanist.model.epochs import Epoch
from tanist.store import MessageStore, StoreSettings
from tanist.store.epoch_file import FILE_NAME, decode_epochs
from tests.support import partners
from tests.support.ha_ends import following, make_follower, serving_log
from tests.support.messages import make_message, open_store
from tests.support.replicated_log import ends_equal, send_messages
from tests.support.rocketmq.cluster import Broker, RocketMQ
from tests.support.rocketmq.controlled import (
    SWIFT_CONTROLLER,
    SWIFT_REPLICA,
    Controller,
    start_controller,
    start_replica,
)
from tests.support.rocketmq.played_master import played_master
from tests.support.tanist_cluster import NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

_FILE_BYTES = 1 << 20
_STORE = StoreSettings(mapped_file_size_commit_log=_FILE_BYTES)
_SETTINGS = HaSettings(ha_compatibility=HaCompatibility.AUTOSWITCH, ha_allowed_addresses="127.0.0.1")
_REPLICA = {
    **SWIFT_REPLICA,
    "mappedFileSizeCommitLog": _FILE_BYTES,
    # A slave says where its log ends so long after it has connected.
    "haSendHeartbeatInterval": 500,
    "waitTimeMillsInSendQueue": 60_000,
}
_MESSAGES = 8_000
_REIGNS = 1_500
"""More than RocketMQ's own master can tell."""
_WAIT_S = 60.0
_LOOK_S = 0.2


@pytest.fixture(scope="module")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    home = tmp_path_factory.mktemp("autoswitch")
    with NameServerProcess(home / "names") as names:
        try:
            rocketmq = RocketMQ(home / "rocketmq", name_server=names.address)
        except partners.PartnerMissing as lack:
            partners.do_without(lack)
        with rocketmq:
            yield rocketmq


@pytest.fixture(scope="module")
def controller(rocketmq: RocketMQ) -> Controller:
    return start_controller(rocketmq, properties=SWIFT_CONTROLLER)


async def _until(is_so: Callable[[], bool]) -> None:
    """Wait without taking the time of those who are waited for."""
    async with asyncio.timeout(_WAIT_S):
        while not is_so():  # noqa: ASYNC110  What another process does is known only by asking.
            await asyncio.sleep(_LOOK_S)


def _epochs_of(store_dir: Path) -> tuple[Epoch, ...]:
    return decode_epochs((store_dir / FILE_NAME).read_bytes()).epochs


def _log_files(store_dir: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted((store_dir / "commitlog").iterdir()))


def _reign(store: MessageStore, epochs: range, *, body_bytes: int = 100) -> None:
    """Let each of these epochs write one message, and some one that is larger than a frame."""
    for epoch in epochs:
        store.begin_epoch(epoch)
        store.append(make_message(epoch, body_bytes=70_000 if epoch % 100 == 0 else body_bytes))


def test_a_slave_of_tanist_follows_a_master_of_rocketmq_through_its_epochs(
    rocketmq: RocketMQ, controller: Controller, tmp_path: Path
) -> None:
    master = start_replica(rocketmq, controller.address, name="broker-b", properties=_REPLICA)

    async def run() -> None:
        with open_store(tmp_path / "slave", _STORE) as store:
            follower = make_follower(store, _SETTINGS, broker_id=2)
            follower.use_master(f"127.0.0.1:{master.ha_port}")

            async def send(first: int) -> None:
                await asyncio.to_thread(send_messages, master.address, _MESSAGES, first=first)
                await _until(lambda: ends_equal(master.store_dir, tmp_path / "slave"))

            async with following(follower):
                await _until(lambda: follower.is_transferring)
                assert follower.status.dialect is Dialect.AUTOSWITCH
                # While its log has no file its heartbeats tell none.
                read_ms = follower.status.last_read_ms
                await _until(lambda: follower.status.last_read_ms > read_ms)
                assert follower.is_transferring, follower.status
                await send(0)
                master.kill()
                ports = {"listenPort": master.port, "haListenPort": master.ha_port}
                await asyncio.to_thread(
                    start_replica,
                    rocketmq,
                    controller.address,
                    name="broker-b",
                    store_dir=master.store_dir,
                    properties={**_REPLICA, **ports},
                )
                await send(_MESSAGES)
                assert len(store.epochs.epochs) == 2
                assert store.epochs.epochs == _epochs_of(master.store_dir)

    asyncio.run(run())


@pytest.mark.behaviour("S2-33", "S2-41")
def test_a_slave_of_rocketmq_follows_a_master_of_tanist_learns_its_epochs_and_cuts_what_is_not_its(
    rocketmq: RocketMQ, controller: Controller, tmp_path: Path
) -> None:
    async def follow(store: MessageStore, acceptor: Acceptor, slave: Broker) -> None:
        log_end = store.log.log_end
        await _until(lambda: [each.acked_to for each in acceptor._master.replicas] == [log_end])
        # It leaves behind its end what it has cut.
        assert _log_files(slave.store_dir)[:log_end] == _log_files(tmp_path / names[store])[:log_end]
        assert _epochs_of(slave.store_dir) == store.epochs.epochs

    async def run() -> None:
        # The master of epoch 1 is replaced before it has written anything.
        first.begin_epoch(1)
        _reign(other, range(2, _REIGNS - 200))
        _reign(other, range(_REIGNS, _REIGNS + 10), body_bytes=300)
        async with serving_log(first, _SETTINGS) as (address, acceptor):
            with played_master(controller.address, rocketmq.name_server, name="broker-a", ha_address=address):
                slave = await asyncio.to_thread(
                    start_replica, rocketmq, controller.address, properties=_REPLICA
                )
                await _until(lambda: len(acceptor._master.replicas) == 1)
                (replica,) = acceptor._master.replicas
                assert (replica.dialect, replica.broker_id) == (Dialect.AUTOSWITCH, 2)
                _reign(first, range(2, _REIGNS - 100))
                acceptor.on_appended()
                await follow(first, acceptor, slave)
                await acceptor.close()
                port = int(address.split(":")[1])
                async with serving_log(other, _SETTINGS, port=port) as (_, other_acceptor):
                    await follow(other, other_acceptor, slave)

    with open_store(tmp_path / "master", _STORE) as first, open_store(tmp_path / "other", _STORE) as other:
        names = {first: "master", other: "other"}
        asyncio.run(run())
