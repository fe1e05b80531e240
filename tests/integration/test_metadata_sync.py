"""A slave's tables follow a master over real connections, asked for and pushed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tanist.broker import Broker, BrokerSettings, metadata_sync
from tanist.broker.settings import BrokerRole
from tanist.ha.settings import HaSettings
from tanist.nameserver import NameServer, NameServerSettings
from tanist.protocol import Command, RequestCode, encode_command
from tanist.protocol.codes import ResponseCode
from tanist.remoting import RemotingClient
from tanist.testing import EmbeddedBroker
from tests.support.broker_tables import open_groups, open_offsets, open_state, open_topics
from tests.support.conditions import until
from tests.support.following import Following
from tests.support.ha_pair import SECRET, running_master, running_slave
from tests.support.messages import SMALL
from tests.support.relay import Relay
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.site import wait_until
from tests.support.wire import Wire

TABLE_CODES = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_TIMER_CHECK_POINT,
    RequestCode.GET_TIMER_METRICS,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
)


def _tables(address: str) -> list[Any]:
    """All tables that a broker tells; None for topics if it has none yet."""
    with Wire(address) as wire:
        answers = [wire.ask(Command.request(code)) for code in TABLE_CODES[:4]]
    return [msgspec.json.decode(answer.body or b"null") for answer in answers]


@pytest.mark.behaviour("S1-18", "S1-27")
def test_a_slave_has_what_its_master_has_and_loses_what_the_master_deletes(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = RemotingClient()
        try:
            async with EmbeddedBroker(port=free_broker_port()) as master:
                slave = Following(open_state(tmp_path), client, master.address)
                await slave.make_entries("Orders", "Billing", offset=5)
                await slave.run_until_delivered()
                await slave.sync.run_once()
                await slave.check_all_equal()
                assert slave.state.offsets.find("Billing", "Orders", 1) == 5
                await slave.delete_group("Billing")
                assert await slave.delete_topic("Orders") == ResponseCode.SUCCESS
                await slave.sync.run_once()
                await slave.check_all_equal()
                assert slave.state.topics.find("Orders") is None
                assert slave.state.offsets.topics_of("Billing") == set()
        finally:
            await client.close()

    asyncio.run(scenario())


@pytest.mark.behaviour("S1-22", "S1-26")
def test_every_request_for_a_table_gets_one_answer_and_no_more() -> None:
    with EmbeddedBroker() as master, Wire(master.address) as wire:
        requests = [Command.request(code, opaque=number + 1) for number, code in enumerate(TABLE_CODES)]
        wire.send(b"".join(map(encode_command, requests)))
        # Asked last and answered in order: whatever is answered twice has come by then.
        last = Command.request(4711, opaque=99)
        wire.send(encode_command(last))
        answers = [wire.receive() for _ in range(len(requests) + 1)]
        opaques = {answer.opaque for answer in answers if answer is not None}
        assert opaques == {request.opaque for request in (*requests, last)}
        for answer in answers:
            assert answer is not None
            if answer.opaque != last.opaque:
                assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
                assert answer.body


async def _change(address: str, tmp_path: Path) -> None:
    client = RemotingClient()
    try:
        master = Following(open_state(tmp_path / "unused"), client, address)
        await master.make_entries("Orders", "Billing", offset=5)
    finally:
        await client.close()


async def _delete(address: str, tmp_path: Path) -> None:
    client = RemotingClient()
    try:
        master = Following(open_state(tmp_path / "unused too"), client, address)
        await master.delete_group("Billing")
        assert await master.delete_topic("Orders") == ResponseCode.SUCCESS
    finally:
        await client.close()


def test_the_link_brings_what_changes_and_after_a_cut_what_changed_meanwhile(tmp_path: Path) -> None:
    """Neither's name server knows the other, so nobody can ask."""
    with (
        running_master({"brokerRole": "ASYNC_MASTER"}) as master,
        Relay(master.ha_address) as cable,
        running_slave(cable, store=tmp_path / "slave") as slave,
    ):
        master.wait_in_step()
        asyncio.run(_change(master.address, tmp_path))
        wait_until(lambda: _tables(slave.address) == _tables(master.address))
        assert "Orders" in _tables(slave.address)[0]["topicConfigTable"]
        cable.cut()
        asyncio.run(_delete(master.address, tmp_path))
        assert "Orders" in _tables(slave.address)[0]["topicConfigTable"]
        cable.mend()
        wait_until(lambda: _tables(slave.address) == _tables(master.address))
        assert "Orders" not in _tables(slave.address)[0]["topicConfigTable"]
    # What it had when it stopped is on its disk: it may be started as the master next.
    assert open_topics(tmp_path / "slave").find("Orders") is None
    assert open_groups(tmp_path / "slave").find("Billing") is None
    assert open_offsets(tmp_path / "slave").topics_of("Billing") == set()


@asynccontextmanager
async def _named_pair(
    folder: Path, *, master: str, slave_secret: str = SECRET
) -> AsyncGenerator[tuple[Broker, Broker]]:
    """A master whose store has this name, and its slave, both not begun, that find each other."""
    names = NameServer(NameServerSettings(listen_port=0, kv_config_path=str(folder / "kv.json")))
    async with names.serving():
        settings = BrokerSettings(
            broker_name="broker-a",
            listen_port=free_broker_port(),
            namesrv_addr=names.address,
            store_path_root_dir=str(folder / master),
        )
        of_slave = msgspec.structs.replace(
            settings,
            listen_port=0,
            broker_role=BrokerRole.SLAVE,
            broker_id=1,
            store_path_root_dir=str(folder / "slave"),
        )
        yield (
            Broker(settings, SMALL, ha=HaSettings(ha_secret=SECRET)),
            Broker(of_slave, SMALL, ha=HaSettings(ha_secret=slave_secret)),
        )


@pytest.fixture
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_sync, "FIRST_S", 0.05)
    monkeypatch.setattr(metadata_sync, "PERIOD_S", 0.05)


async def _until_same_tables(master: Broker, slave: Broker) -> list[Any]:
    while True:
        tables = await asyncio.to_thread(_tables, master.address)
        if await asyncio.to_thread(_tables, slave.address) == tables:
            return tables


@pytest.mark.behaviour("S1-1", "S1-9")
@pytest.mark.usefixtures("_in_a_hurry")
def test_a_slave_that_has_no_link_has_its_tables_all_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        other = "another that does not fit"
        async with (
            _named_pair(tmp_path, master="master", slave_secret=other) as (master, slave),
            master.serving(),
            slave.serving(),
        ):
            await _change(master.address, tmp_path)
            await _until_same_tables(master, slave)

    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.usefixtures("_in_a_hurry")
def test_a_slave_takes_no_tables_of_a_master_whose_log_is_not_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A master that was deployed anew knows neither the topics nor the offsets of its old slave."""

    async def scenario() -> None:
        async with (
            _named_pair(tmp_path, master="master") as (master, slave),
            master.serving(),
            slave.serving(),
        ):
            await _change(master.address, tmp_path)
            tables = await _until_same_tables(master, slave)
        # With another secret it never comes to where its log would be refused.
        for secret in (SECRET, "another that does not fit"):
            caplog.clear()
            async with (
                _named_pair(tmp_path, master="new master", slave_secret=secret) as (master, slave),
                master.serving(),
                slave.serving(),
            ):
                await until(lambda: "has not got anything from master" in caplog.text)
                assert await asyncio.to_thread(_tables, slave.address) == tables

    asyncio.run(asyncio.wait_for(scenario(), 60))
