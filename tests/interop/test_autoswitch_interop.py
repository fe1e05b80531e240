"""Brokers of Apache RocketMQ under its controller, and Tanist's ends of the link between them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tanist.store import StoreSettings
from tanist.store.epoch_file import FILE_NAME, decode_epochs
from tests.support import partners
from tests.support.conditions import until
from tests.support.ha_ends import following, make_follower
from tests.support.messages import open_store
from tests.support.replicated_log import ends_equal, send_messages
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.controlled import (
    SWIFT_CONTROLLER,
    SWIFT_REPLICA,
    Controller,
    start_controller,
    start_replica,
)
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
_WAIT_S = 60.0


@pytest.fixture
def rocketmq(own_names: NameServerProcess, tmp_path: Path) -> Iterator[RocketMQ]:
    try:
        rocketmq = RocketMQ(tmp_path / "rocketmq", name_server=own_names.address)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        yield rocketmq


@pytest.fixture
def controller(rocketmq: RocketMQ) -> Controller:
    return start_controller(rocketmq, properties=SWIFT_CONTROLLER)


def test_a_slave_of_tanist_follows_a_master_of_rocketmq_through_its_epochs(
    rocketmq: RocketMQ, controller: Controller, tmp_path: Path
) -> None:
    master = start_replica(rocketmq, controller.address, properties=_REPLICA)

    async def run() -> None:
        with open_store(tmp_path / "slave", _STORE) as store:
            follower = make_follower(store, _SETTINGS, broker_id=2)
            follower.use_master(f"127.0.0.1:{master.ha_port}")

            async def send(first: int) -> None:
                await asyncio.to_thread(send_messages, master.address, _MESSAGES, first=first)
                await until(lambda: ends_equal(master.store_dir, tmp_path / "slave"), timeout_s=_WAIT_S)

            async with following(follower):
                await until(lambda: follower.is_transferring, timeout_s=_WAIT_S)
                assert follower.status.dialect is Dialect.AUTOSWITCH
                # While its log has no file its heartbeats tell none.
                read_ms = follower.status.last_read_ms
                await until(lambda: follower.status.last_read_ms > read_ms, timeout_s=_WAIT_S)
                assert follower.is_transferring, follower.status
                await send(0)
                master.kill()
                ports = {"listenPort": master.port, "haListenPort": master.ha_port}
                await asyncio.to_thread(
                    start_replica,
                    rocketmq,
                    controller.address,
                    store_dir=master.store_dir,
                    properties={**_REPLICA, **ports},
                )
                await send(_MESSAGES)
                epochs = decode_epochs((master.store_dir / FILE_NAME).read_bytes()).epochs
                assert len(epochs) == 2
                assert store.epochs.epochs == epochs

    asyncio.run(run())
