"""Brokers of Apache RocketMQ under its controller, and Tanist's ends of the link between them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tanist.ha.acceptor import Acceptor
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tanist.model.epochs import Epoch, EpochHistory
from tanist.protocol import ResponseCode
from tanist.store import MessageStore, StoreSettings
from tanist.store.epoch_file import FILE_NAME, decode_epochs
from tests.support import partners
from tests.support.controllers import ControllerView
from tests.support.ha_ends import following, make_follower, serving_log
from tests.support.messages import make_message, open_store
from tests.support.replicated_log import ends_equal, send_messages
from tests.support.requests import send_request
from tests.support.rocketmq.cluster import Broker, RocketMQ
from tests.support.rocketmq.controlled import (
    SWIFT_CONTROLLER,
    SWIFT_REPLICA,
    Controller,
    start_controller,
    start_replica,
)
from tests.support.rocketmq.played_replica import PlayedReplica
from tests.support.tanist_cluster import NameServerProcess
from tests.support.wire import Wire

pytestmark = [pytest.mark.partner("java", "maven"), pytest.mark.takes(35)]

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
_REIGNS = 1_300
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


def _takes_messages(address: str) -> bool:
    """Whether a broker knows already that it is master."""
    with Wire(address) as wire:
        return wire.ask(send_request(b"are you master?")).code == ResponseCode.SUCCESS


def _reign(store: MessageStore, epochs: range, *, body_bytes: int = 100) -> None:
    """Let each of these epochs write one message, and some one that is larger than a frame."""
    history = EpochHistory(store.epochs.epochs)
    for epoch in epochs:
        history.begin(epoch, store.log.log_end)
        store.append(make_message(epoch, body_bytes=70_000 if epoch % 100 == 0 else body_bytes))
    # To have each of them on the disk before the next would take a quarter of a minute.
    store._epochs.history = history


def test_a_log_is_followed_from_rocketmq_to_tanist_and_back_through_the_elections_of_its_controller(
    rocketmq: RocketMQ, controller: Controller, tmp_path: Path
) -> None:
    name, slave_dir = "broker-b", tmp_path / "own"
    first = start_replica(rocketmq, controller.address, name=name, properties=_REPLICA)
    ports = {"listenPort": first.port, "haListenPort": first.ha_port}

    async def follow_rocketmq(store: MessageStore, number: int) -> None:
        """As slave: all that is sent to its broker comes."""
        follower = make_follower(store, _SETTINGS, broker_id=own.broker_id)
        follower.use_master(f"127.0.0.1:{first.ha_port}")
        async with following(follower):
            await _until(lambda: follower.is_transferring)
            assert follower.status.dialect is Dialect.AUTOSWITCH
            # While its log has no file its heartbeats tell none.
            read_ms = follower.status.last_read_ms
            await _until(lambda: follower.status.last_read_ms > read_ms)
            assert follower.is_transferring, follower.status
            await _until(lambda: _takes_messages(first.address))
            await asyncio.to_thread(send_messages, first.address, _MESSAGES, first=number)
            await _until(lambda: store.log.log_end > 0 and ends_equal(first.store_dir, slave_dir))
            if number == 0:
                await asyncio.to_thread(view.wait_for_set, name, size=2)
                first.kill()

    async def be_followed(store: MessageStore, epoch: int) -> None:
        """As master: its broker, started again, becomes a slave."""
        store.begin_epoch(epoch)
        store.dispatch()
        for number in range(100):
            store.append(make_message(number, body_bytes=1000))
        async with serving_log(store, _SETTINGS, epoch=epoch) as (address, acceptor):
            own.tell_place(address)
            await asyncio.to_thread(
                start_replica,
                rocketmq,
                controller.address,
                name=name,
                store_dir=first.store_dir,
                properties={**_REPLICA, **ports},
            )
            log_end = store.log.log_end
            await _until(lambda: [each.acked_to for each in acceptor._master.replicas] == [log_end])
            assert ends_equal(first.store_dir, slave_dir)
            own.take_into_set(1)
            own.die()
            await asyncio.to_thread(view.wait_for_epoch, name, beyond=epoch)

    async def run() -> None:
        with open_store(slave_dir, _STORE) as store:
            await follow_rocketmq(store, 0)
            elected = await asyncio.to_thread(view.wait_for_epoch, name, beyond=1)
            assert elected.master_broker_id == own.broker_id
            await be_followed(store, elected.master_epoch)
            await follow_rocketmq(store, _MESSAGES)
            assert len(store.epochs.epochs) == 3
            assert store.epochs.epochs == _epochs_of(first.store_dir)

    with (
        ControllerView(controller.address) as view,
        PlayedReplica(controller.address, rocketmq.name_server, name=name) as own,
    ):
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
            with PlayedReplica(controller.address, rocketmq.name_server, name="broker-a") as own:
                own.offer()
                own.tell_place(address)
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
