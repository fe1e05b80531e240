"""Who is master and who slave is assigned in the registry, and routes show who may be read and written."""

import asyncio
from pathlib import Path

import pytest

from tanist.broker.coordinated_role import as_assigned
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.client import Consumer, Start
from tanist.clock import SystemClock
from tanist.coord import Create
from tanist.coord.open import open_registry
from tanist.model.reading import FULL, Assigned, Assignment, GroupRole, assignment_path, encode_record
from tanist.model.topics import READ, WRITE
from tests.support.consuming import DEADLINE_S, TOPIC, in_loop, send, take, until
from tests.support.played_replicas import controlling
from tests.support.read_pair import NAME, PairBroker, ReadPair
from tests.support.topics import shown_group

TOPICS = {TOPIC: 2}
GROUP = "billing"


async def assign(url: str, *brokers: Assigned) -> None:
    async with open_registry(url, timeout_s=2) as registry:
        assignment = Assignment(group=NAME, brokers=brokers)
        await registry.commit(Create(assignment_path(NAME), encode_record(assignment)))


async def shows(pair: ReadPair, addresses: dict[int, str], permission: int) -> None:
    """Wait until clients are shown these addresses, and that so much may be done there."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if await asyncio.to_thread(shown_group, pair.namesrv, TOPIC) == (addresses, permission):
                return
            await asyncio.sleep(0.02)


def settings_of(port: int, role: BrokerRole, url: str) -> BrokerSettings:
    broker_id = 1 if role is BrokerRole.SLAVE else 0
    return BrokerSettings(
        broker_name=NAME, listen_port=port, broker_role=role, broker_id=broker_id, coordinator=url
    )


def assigned(port: int, role: GroupRole, broker_id: int) -> Assigned:
    return Assigned(address=f"127.0.0.1:{port}", role=role, broker_id=broker_id, permission=FULL)


@pytest.mark.behaviour("S3-4")
def test_a_broker_takes_the_role_that_is_assigned_to_its_address(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with controlling(tmp_path / "controller") as controller:
            url = f"tanist://{controller.address}"
            await assign(url, assigned(10911, GroupRole.SLAVE, 7), assigned(20911, GroupRole.MASTER, 0))

            async def role_of(port: int, role: BrokerRole) -> tuple[BrokerRole, int]:
                found = await as_assigned(settings_of(port, role, url), SystemClock(), None)
                return found.broker_role, found.broker_id

            assert await role_of(10911, BrokerRole.ASYNC_MASTER) == (BrokerRole.SLAVE, 7)
            assert await role_of(20911, BrokerRole.SLAVE) == (BrokerRole.SYNC_MASTER, 0)
            # What the settings say of how a master waits for its slaves stays.
            assert await role_of(20911, BrokerRole.ASYNC_MASTER) == (BrokerRole.ASYNC_MASTER, 0)
            # Nobody has assigned anything to this one.
            assert await role_of(30911, BrokerRole.SLAVE) == (BrokerRole.SLAVE, 1)

    in_loop(scenario())


@pytest.mark.behaviour("S3-4")
def test_a_broker_that_is_assigned_to_be_slave_follows_though_its_settings_say_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics=TOPICS) as pair:
            await pair.slave.stop()
            pair.slave.set(brokerRole="ASYNC_MASTER", brokerId="0")
            await pair.slave.start()
            await pair.is_ready()
            assert pair.slave.state.settings.broker_role is BrokerRole.SLAVE
            assert pair.slave.status.permission == "NONE"
            assert pair.master.status.permission == "FULL"

    in_loop(scenario())


@pytest.mark.behaviour("S3-36", "S3-42", "S3-44", "S3-9")
def test_routes_show_who_may_be_read_and_written_and_nobody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics=TOPICS) as pair:
            master, slave = pair.master.address, pair.slave.address

            await shows(pair, {0: master, 1: slave}, READ | WRITE)
            await pair.switch()
            await shows(pair, {0: slave}, READ)
            # While the slave is away that was read, the returning master gets no client at all.
            await pair.slave.stop()
            await pair.master.start()
            await until(lambda: pair.master.status.record is not None)
            assert pair.master.status.permission == "NONE"
            found = await asyncio.to_thread(shown_group, pair.namesrv, TOPIC)
            assert found is None or master not in found[0].values()
            await pair.slave.start()
            await pair.master.has("FULL")
            await shows(pair, {0: master, 1: slave}, READ | WRITE)

    in_loop(scenario())


def member(pair: ReadPair) -> Consumer:
    return Consumer(
        group=GROUP, namesrv=pair.namesrv, topics={TOPIC: "*"}, start=Start.FIRST, prefetch_count=2
    )


@pytest.mark.behaviour("S3-1")
def test_clients_write_to_the_master_and_read_from_it_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics=TOPICS) as pair:
            sent = await send(pair.namesrv, 10)
            async with member(pair) as consumer:
                taken = await take(consumer, 10)
            assert sorted(message.body for message in taken) == sorted(sent)
            assert pair.master.has_served(GROUP, TOPIC)
            assert not pair.slave.has_served(GROUP, TOPIC)
            await pair.in_step()

    in_loop(scenario())


@pytest.mark.behaviour("S3-2")
def test_without_its_master_a_group_is_read_from_its_slave_and_producers_send_to_other_groups(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics=TOPICS) as pair:
            other = PairBroker(
                tmp_path / "other",
                {"brokerName": "broker-b", "brokerRole": "ASYNC_MASTER", "namesrvAddr": pair.namesrv},
                TOPICS,
            )
            await other.start()
            try:
                async with member(pair) as consumer:
                    stored = await send(pair.namesrv, 20)
                    taken = await take(consumer, 4)
                    await pair.in_step()
                    await pair.switch()
                    moved = await send(pair.namesrv, 10, start=20)
                    taken += await take(consumer, 26)
                    assert pair.slave.has_served(GROUP, TOPIC)
                assert sorted(message.body for message in taken) == sorted(stored + moved)
                brokers = {message.queue.broker_name for message in taken if message.body in moved}
                assert brokers == {"broker-b"}
            finally:
                await other.stop()

    in_loop(scenario())
