"""What a broker does when its role changes, is taken away, or can not be taken."""

import asyncio
import errno
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tanist.broker.controlled.obeying import Obeying
from tanist.broker.controlled.orders import MasterOrder, SlaveOrder
from tanist.broker.controlled.status import ControlledStatus, HeldRole
from tanist.broker.delays.table import DelayTable
from tanist.broker.state import BrokerState
from tanist.broker.tables_sink import TablesSink
from tanist.broker.topics import TopicTable
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import NoRole, NotWritable, ResponseError
from tanist.ha.acceptor import Acceptor
from tanist.model.data_version import DataVersion
from tanist.model.offsets import QueueOffset
from tanist.protocol import ResponseCode
from tanist.protocol.ha_tables import OffsetEntry, TableKind, TablePiece, encode_entry, encode_piece
from tanist.remoting import RemotingClient
from tanist.store import MessageStore
from tanist.store.epoch_file import FILE_NAME, decode_epochs
from tests.support.conditions import turns, until
from tests.support.messages import make_message
from tests.support.requests import TOPIC, send_request
from tests.support.role_broker import RoleBroker, role_broker

R = ResponseCode


async def send(broker: RoleBroker, body: bytes = b"x", properties: str = "") -> int:
    return (await broker.ask(send_request(body, properties=properties))).code


def bodies_of(broker: RoleBroker) -> Counter[bytes]:
    """What consumers of the topic see."""
    records = broker.state.store.records(TOPIC, 0, 0, 1000)
    return Counter(bytes(record.body) for record in records)


def test_a_broker_that_was_fenced_while_it_became_master_does_not(tmp_path: Path) -> None:
    """Its set has it alone, so that it would acknowledge without a lease."""

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            taking = asyncio.ensure_future(broker.reign(5, has_lease=False))
            await turns(2)
            broker.roles.fence("replica 2 is master of epoch 6")
            with pytest.raises(NoRole):
                await taking
            assert broker.roles.reign is None
            assert await send(broker) == R.SERVICE_NOT_AVAILABLE
            await broker.reign(7)
            assert await send(broker) == R.SUCCESS

    asyncio.run(scenario())


@pytest.mark.behaviour("S2-47")
def test_a_new_master_cuts_its_last_half_record_and_writes_its_epoch_down_before_it_takes_a_message(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            store = broker.state.store
            await broker.follow(4)
            place = store.append(make_message(queue_id=0))
            whole = bytes(store.log.read(place.log_offset, place.size_bytes))
            store.append_raw(place.end, whole[: place.size_bytes // 2])
            assert await send(broker) == R.SERVICE_NOT_AVAILABLE
            await broker.reign(5)
            assert store.log.log_end == place.end
            assert decode_epochs((store.root / FILE_NAME).read_bytes()).last == (5, place.end)
            assert await send(broker) == R.SUCCESS
            record = store.record_at(place.end)
            assert record is not None
            assert record.queue_offset == 1

    asyncio.run(scenario())


def test_a_master_that_stops_acknowledges_nothing_that_its_set_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ending = asyncio.Event()

    async def run_and_end_slowly(_keeper: TransactionKeeper) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            is_ending.set()
            await asyncio.sleep(0.3)

    monkeypatch.setattr(TransactionKeeper, "run", run_and_end_slowly)

    async def scenario() -> None:
        client = RemotingClient()

        async def send_at_the_end(address: str) -> int:
            await client.request(address, send_request(b"early", properties="WAIT\x01false\x02"), timeout_s=9)
            connected.set()
            await is_ending.wait()
            return (await client.request(address, send_request(b"late"), timeout_s=9)).code

        connected = asyncio.Event()
        async with role_broker(tmp_path) as broker:
            await broker.reign(5, 2)
            sending = asyncio.ensure_future(send_at_the_end(broker.address))
            await connected.wait()
        assert await sending != R.SUCCESS
        await client.close()

    asyncio.run(scenario())


def test_a_broker_without_role_writes_nothing_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1)
            broker.state.writer.append(make_message())
            log_end = broker.state.store.log.log_end
            broker.roles.fence("replica 2 is master of epoch 2")
            with pytest.raises(NotWritable, match="no master"):
                broker.state.writer.append(make_message())
            await broker.follow(2)
            with pytest.raises(NotWritable, match="no master"):
                broker.state.writer.append(make_message())
            assert broker.state.store.log.log_end == log_end
            await broker.reign(3)
            broker.state.writer.append(make_message())

    asyncio.run(scenario())


@pytest.mark.known_bug("RMQ #4771")
def test_a_new_master_takes_groups_back_that_stand_behind_the_end_of_its_log(tmp_path: Path) -> None:
    """Else they would pass over what it takes next."""

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1)
            assert await send(broker) == R.SUCCESS
            await until(lambda: bool(bodies_of(broker)))
            broker.state.offsets.commit("behind", TOPIC, 0, 1)
            broker.state.offsets.commit("ahead", TOPIC, 0, 7)
            await broker.follow(2)
            await broker.reign(3)
            found = [broker.state.offsets.find(group, TOPIC, 0) for group in ("behind", "ahead")]
            assert found == [1, 1]

    asyncio.run(scenario())


def test_a_new_master_has_the_offsets_that_it_was_told_before_the_log_came_up_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last master may have answered an order to move a group, for this broker said that it knows it."""
    sinks: list[TablesSink] = []

    def made(state: BrokerState, owns_offsets: Callable[[], bool]) -> TablesSink:
        sinks.append(TablesSink(state, owns_offsets))
        return sinks[-1]

    monkeypatch.setattr("tanist.broker.following.TablesSink", made)

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1)
            assert await send(broker) == R.SUCCESS
            await until(lambda: bool(bodies_of(broker)))
            broker.state.offsets.commit("moved", TOPIC, 0, 1)
            await broker.follow(2)
            (sink,) = sinks
            sink.begin()
            told = TablePiece(
                kind=TableKind.OFFSETS,
                is_whole=True,
                is_first=True,
                is_last=True,
                log_end=broker.state.store.log.log_end + 1,
                version=DataVersion(),
                entries=[encode_entry(OffsetEntry(f"{TOPIC}@moved", {0: QueueOffset(0)}))],
            )
            sink.apply(encode_piece(told))
            assert broker.state.offsets.find("moved", TOPIC, 0) == 1
            await broker.reign(3)
            assert broker.state.offsets.find("moved", TOPIC, 0) == 0

    asyncio.run(scenario())


def test_a_master_that_stops_calls_no_order_safe_while_it_answers_the_last_sends(tmp_path: Path) -> None:
    told: list[ResponseError | None] = []

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1, 2)
            writer = broker.state.writer
            close = writer.close

            async def ask_and_close(grace_s: float) -> None:
                writer.close = close
                broker.state.table_safety.when_safe(told.append)
                assert told == []
                await close(grace_s)

            writer.close = ask_and_close
        (failure,) = told
        assert failure is not None

    asyncio.run(scenario())


def test_a_new_master_has_saved_the_offsets_that_it_followed(tmp_path: Path) -> None:
    """Killed in its first second, it comes back with the orders that its last master acknowledged."""

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.follow(1)
            offsets = broker.state.offsets
            table = msgspec.structs.replace(offsets.table(), offset_table={f"{TOPIC}@moved": {0: 0}})
            offsets.follow(table)
            assert offsets.is_dirty
            await broker.reign(2)
            assert not offsets.is_dirty

    asyncio.run(scenario())


def test_a_master_that_may_acknowledge_nothing_delivers_and_notes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1, 2, has_lease=False)
            with pytest.raises(NotWritable, match="LEASE_EXPIRED"):
                broker.state.writer.append(make_message())
            broker.grant(1)
            broker.state.writer.append(make_message())

    asyncio.run(scenario())


STEPS: list[tuple[type, str]] = [
    (MessageStore, "begin_epoch"),
    (TopicTable, "use_epoch"),
    (TransactionKeeper, "open"),
    (Acceptor, "start"),
    (MessageStore, "count_queue_offsets"),
]


@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda part: getattr(part, "__name__", part))
def test_a_master_whose_disk_fails_at_any_step_is_fenced_and_can_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1)
            listeners = list(broker.state.store.dispatcher.listeners)
            await broker.follow(2)
            with monkeypatch.context() as broken:
                broken.setattr(owner, name, fail)
                with pytest.raises(OSError, match="no space"):
                    await broker.reign(3)
            assert await send(broker) == R.SERVICE_NOT_AVAILABLE
            assert not broker.registration.is_on
            await broker.reign(4)
            assert await send(broker) == R.SUCCESS
            assert broker.registration.is_on
            assert len(broker.state.store.dispatcher.listeners) == len(listeners)
            assert len(broker.state.writer.on_appended) == 1

    asyncio.run(scenario())


def test_a_master_that_can_not_save_its_delays_becomes_slave_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1)
            with monkeypatch.context() as broken:
                broken.setattr(DelayTable, "_point_to_queue", fail)
                await broker.follow(2)
            assert broker.state.settings.is_slave
            await broker.reign(3)
            assert await send(broker) == R.SUCCESS

    asyncio.run(scenario())


async def in_step(master: RoleBroker, slave: RoleBroker) -> None:
    reign = master.roles.reign
    assert reign is not None
    master.is_joining_taken = True
    await until(lambda: len(reign.sync_state.members) == 2)
    await until(lambda: slave.state.store.log.log_end == master.state.store.log.log_end)


async def switch(old: RoleBroker, new: RoleBroker, epoch: int) -> None:
    """Have the other one be master; the old one follows, and is in step again."""
    old.roles.fence("the other one is master")
    await new.reign(epoch)
    await old.follow(epoch, new)
    await in_step(new, old)


def test_what_waits_is_delivered_once_over_two_switches(tmp_path: Path) -> None:
    delays = {"messageDelayLevel": "1s 2s 1h"}
    bodies = [b"%d" % number for number in range(12)]

    async def scenario() -> None:
        async with (
            role_broker(tmp_path / "a", settings=delays) as a,
            role_broker(tmp_path / "b", own_id=2, settings=delays) as b,
        ):
            await a.reign(1)
            await b.follow(1, a)
            await in_step(a, b)
            for number, body in enumerate(bodies):
                level = "2" if number % 2 else "1"
                assert await send(a, body, properties=f"DELAY\x01{level}\x02") == R.SUCCESS
            await until(lambda: bool(bodies_of(a)))
            await switch(a, b, 2)
            assert await send(b, b"between") == R.SUCCESS
            await until(lambda: len(bodies_of(b)) == len(bodies) + 1)
            await switch(b, a, 3)
            assert await send(a, b"last") == R.SUCCESS
            await until(lambda: b"last" in bodies_of(a) and b"last" in bodies_of(b))
            assert bodies_of(a) == bodies_of(b) == Counter([*bodies, b"between", b"last"])

    asyncio.run(scenario())


@pytest.mark.behaviour("S2-52")
def test_a_learner_gets_the_log_and_is_never_in_the_set(tmp_path: Path) -> None:
    learner = {"asyncLearner": "true"}

    async def scenario() -> None:
        async with (
            role_broker(tmp_path / "a") as master,
            role_broker(tmp_path / "b", own_id=2, settings=learner) as slave,
        ):
            await master.reign(1)
            master.is_joining_taken = True
            await slave.follow(1, master)
            assert await send(master) == R.SUCCESS
            await until(lambda: bodies_of(slave) == Counter([b"x"]))
            (replica,) = master.state.replication.replicas
            await until(lambda: replica.acked_to == master.state.store.log.log_end)
            assert (replica.is_learner, replica.counts) == (True, False)
            reign = master.roles.reign
            assert reign is not None
            assert reign.sync_state.counted == {1}

    asyncio.run(scenario())


def test_a_replica_that_is_filled_anew_has_neither_role_nor_id(tmp_path: Path) -> None:
    identity = tmp_path / "elsewhere" / "brokerIdentity"
    identity.parent.mkdir()
    identity.write_text("DefaultCluster#group#2")

    async def scenario() -> None:
        made: list[RoleBroker] = []
        settings = {"storePathBrokerIdentity": str(identity)}
        async with role_broker(tmp_path / "b", own_id=2, settings=settings, made=made) as broker:
            await broker.follow(1)
            assert broker.state.settings.broker_id == 2
            assert broker.state.rebuild is not None
            broker.state.rebuild()
            await until(lambda: len(made) == 2)
            assert made[1].state.settings.is_slave
            assert made[1].state.settings.broker_id < 0
            assert not identity.exists()

    asyncio.run(scenario())


@pytest.mark.parametrize("delay", ["DELAY\x011\x02", "TIMER_DELAY_MS\x011000\x02"])
def test_what_was_delivered_and_cut_off_is_delivered_by_the_next_master(tmp_path: Path, delay: str) -> None:
    async def scenario() -> None:
        async with role_broker(tmp_path, settings={"messageDelayLevel": "1s 2s"}) as broker:
            await broker.reign(1)
            for body in (b"1", b"2"):
                assert await send(broker, body, properties=delay) == R.SUCCESS
            # From now on it has a lease, and nobody who holds what it writes.
            await broker.reign(2, 2)
            log = broker.state.store.log
            confirmed_to = log.log_end
            await until(lambda: _record_count(broker, confirmed_to) == 2)
            assert not bodies_of(broker)
            broker.roles.fence("replica 2 is master of epoch 3")
            await broker.follow(3)
            await broker.state.writer.truncate_to(confirmed_to)
            await broker.reign(4)
            await until(lambda: len(bodies_of(broker)) == 2)
            assert await send(broker, b"last") == R.SUCCESS
            await until(lambda: b"last" in bodies_of(broker))
            assert bodies_of(broker) == Counter([b"1", b"2", b"last"])

    asyncio.run(scenario())


def _record_count(broker: RoleBroker, start: int) -> int:
    """How many records the log has from here on."""
    count, log_end = 0, broker.state.store.log.log_end
    while start < log_end:
        record = broker.state.store.record_at(start)
        assert record is not None
        start, count = start + record.size_bytes, count + 1
    return count


@pytest.mark.parametrize("seed", range(3))
def test_orders_that_overtake_each_other_end_in_the_newest_role(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            status = ControlledStatus()
            obeying = Obeying(broker.roles, status, lambda: None)
            run = asyncio.create_task(obeying.run())
            for epoch in range(1, 30):
                is_master = chance.random() < 0.6
                order = MasterOrder(epoch, frozenset({1}), epoch) if is_master else SlaveOrder(epoch, 2, None)
                obeying.give(order)
                await turns(chance.randrange(12))
            obeying.give(MasterOrder(30, frozenset({1}), 30))
            await until(lambda: status.role is HeldRole.MASTER)
            assert await send(broker) == R.SUCCESS
            assert broker.state.topics.data_version.state_version == 30
            assert len(broker.state.writer.on_appended) == 1
            obeying.give(SlaveOrder(31, 2, None))
            # From this very moment.
            assert await send(broker) == R.SERVICE_NOT_AVAILABLE
            await until(lambda: status.role is HeldRole.SLAVE)
            assert len(broker.state.writer.on_appended) == 1
            run.cancel()
            await asyncio.wait([run])

    asyncio.run(scenario())


@pytest.mark.parametrize("turn_count", range(0, 12, 3))
def test_a_broker_can_stop_at_any_moment_of_a_switch(tmp_path: Path, turn_count: int) -> None:
    async def scenario() -> None:
        async with role_broker(tmp_path) as broker:
            await broker.reign(1)
            assert await send(broker) == R.SUCCESS
            await broker.follow(2)
            taking = asyncio.ensure_future(broker.roles.become_master(MasterOrder(3, frozenset({1}), 3)))
            await turns(turn_count)
            taking.cancel()
        async with role_broker(tmp_path) as broker:
            await broker.reign(4)
            assert bodies_of(broker) == Counter([b"x"])

    asyncio.run(scenario())


def test_who_is_no_master_any_more_lets_no_slave_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with role_broker(tmp_path / "a") as a, role_broker(tmp_path / "b", own_id=2) as b:
            host, _, port = a.ha_address.rpartition(":")
            await a.reign(1)
            await a.follow(2)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(host, int(port))
            await a.reign(3)
            await b.follow(3, a)
            await in_step(a, b)

    asyncio.run(scenario())
