"""A slave finds its master through the name server, follows it to another place, and both are measured."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tanist.admin.asking import asking
from tanist.admin.replication import cluster_brokers, ha_status
from tanist.broker import Broker, BrokerSettings
from tanist.broker.settings import BrokerRole
from tanist.ha.settings import HaSettings
from tanist.model.topics import TopicConfig
from tanist.nameserver import NameServer, NameServerSettings
from tanist.protocol.response_errors import NotMaster
from tanist.store import StoreSettings
from tests.support.requests import TOPIC, send_request

SMALL = StoreSettings(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=20 * 1000,
    max_hash_slot_num=1000,
    max_index_num=4000,
)
CLUSTER = "pairs"


@asynccontextmanager
async def name_server(folder: Path) -> AsyncGenerator[str]:
    server = NameServer(NameServerSettings(listen_port=0, kv_config_path=f"{folder}/kv.json"))
    async with server.serving():
        yield server.address


@asynccontextmanager
async def replica(folder: Path, names: str, broker_id: int) -> AsyncGenerator[Broker]:
    settings = BrokerSettings(
        broker_cluster_name=CLUSTER,
        broker_name="broker-a",
        broker_id=broker_id,
        broker_role=BrokerRole.SLAVE if broker_id else BrokerRole.ASYNC_MASTER,
        namesrv_addr=names,
        listen_port=0,
        store_path_root_dir=str(folder / f"replica-{broker_id}"),
    )
    topics = [] if broker_id else [TopicConfig(topic_name=TOPIC)]
    ha = HaSettings(ha_secret="a secret of both, long and random")
    broker = Broker(settings, SMALL, ha=ha, topics=topics)
    async with broker.serving():
        yield broker


async def in_step(master: str, slave: str, *, timeout_s: float = 30) -> int:
    """Wait until the slave holds all of the master's log; where that ends."""
    async with asking() as wire, asyncio.timeout(timeout_s):
        while True:
            log_end = (await ha_status(wire, master)).log_end
            client = (await ha_status(wire, slave)).client
            if (client.lag_bytes, client.log_end) == (0, log_end):
                return log_end
            await asyncio.sleep(0.02)


def figures(registry: CollectorRegistry) -> dict[str, float]:
    return {sample.name: sample.value for family in registry.collect() for sample in family.samples}


def test_a_slave_that_starts_first_finds_its_master_and_finds_it_again_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with name_server(tmp_path) as names, replica(tmp_path, names, 1) as slave:
            ends: list[int] = []
            for _ in range(2):
                async with replica(tmp_path, names, 0) as master, asking() as wire:
                    await wire.ask(master.address, send_request())
                    ends.append(await in_step(master.address, slave.address))
                    addresses = await cluster_brokers(wire, names, CLUSTER)
                    assert addresses == [master.address, slave.address]
                    assert figures(master.metrics)["tanist_ha_slaves"] == 1
                    assert figures(master.metrics)["tanist_ha_slave_lag_bytes"] == 0
                    assert figures(slave.metrics)["tanist_ha_following"] == 1
                    with pytest.raises(NotMaster, match=f"its master at {master.address}") as refusal:
                        await wire.ask(slave.address, send_request())
                    assert refusal.value.master_address == master.address
                assert figures(master.metrics) == {}
            assert 0 < ends[0] < ends[1]

    asyncio.run(scenario())
