"""A controller's records and leases under requests in any order."""

from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.controller import decisions, registering
from tanist.controller.decisions import Decision
from tanist.controller.election import BY_CONTROLLER, Situation, elect, needs_election
from tanist.controller.group_record import GroupRecord, decode_group, encode_group
from tanist.controller.leases import Leases, is_in_office
from tanist.controller.live_table import LiveTable
from tanist.errors import ResponseError
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    CleanBrokerDataRequest,
    RegisterReplicaRequest,
)
from tests.support.reigning import CLUSTER, NAME, asks, group, heartbeat

IDS = st.integers(1, 4)
LEASE_S = 3.0


@dataclass
class World:
    """One group, its controller, and what was promised so far."""

    record: GroupRecord | None = None
    now_s: float = 1000.0
    live: LiveTable = field(default_factory=LiveTable)
    leases: Leases = field(default_factory=Leases)
    starts: dict[int, int] = field(default_factory=dict[int, int])
    masters: dict[int, tuple[int, str | None]] = field(default_factory=dict[int, tuple[int, str | None]])
    """Who was elected in which epoch."""
    promised: dict[int, float] = field(default_factory=dict[int, float])
    """Until when the master of an epoch takes its lease to run."""
    dead: set[str] = field(default_factory=set[str])

    def situation(self, *, allows_unclean: bool = False) -> Situation:
        end_s = 0.0 if self.record is None else self.leases.end_s(self.record)
        return Situation(self.live.members(NAME), end_s, self.now_s, allows_unclean)

    def commit(self, decision: Decision) -> None:
        new, old = decision.record, self.record
        if new is None:
            return
        assert decode_group(encode_group(new), path="/groups/b") == new
        assert new.master_id is None or new.master_id in new.sync_state_set
        assert new.sync_state_set <= new.replicas.keys()
        assert all(broker_id < new.next_id for broker_id in new.replicas)
        if old is not None:
            assert new.epoch >= old.epoch
            assert new.set_epoch >= old.set_epoch
            if new.sync_state_set != old.sync_state_set and new.is_known and old.is_known:
                assert new.set_epoch > old.set_epoch or new.sync_state_set < old.sync_state_set
        if decision.is_election:
            assert old is not None
            assert new.master_id is not None
            assert new.epoch > old.epoch
            assert new.epoch not in self.masters
            assert not old.has_reigned or decision.is_unclean or new.master_id in old.sync_state_set
            # Nobody else may still acknowledge.
            assert all(end_s <= self.now_s for end_s in self.promised.values())
            self.masters[new.epoch] = (new.master_id, new.master_session)
        self.record = new


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_one_master_an_epoch_and_no_two_leases_at_once(data: st.DataObject) -> None:
    world = data.draw(st.sampled_from([World, reigning]))()
    for _ in range(data.draw(st.integers(1, 30))):
        step = data.draw(st.sampled_from(STEPS))
        # What is refused has changed nothing before.
        with suppress(ResponseError):
            step(world, data)
        if world.record is not None and is_in_office(world.record, world.live.members(NAME)):
            assert not needs_election(world.record, world.situation())


def reigning() -> World:
    """A group with a master, one replica in step with it and two behind, all alive."""
    record = group(ids=(1, 2, 3, 4), members=(1, 2), session="1-0")
    world = World(record=record, masters={4: (1, "1-0")}, promised={4: 1000.0 + LEASE_S * 0.9})
    for broker_id in record.replicas:
        header = heartbeat(broker_id, session_id=f"{broker_id}-0")
        world.live.on_heartbeat(header, "wire", now_s=world.now_s)
    world.leases.renew(record, world.live.members(NAME)[1], now_s=world.now_s)
    return world


def apply(world: World, data: st.DataObject) -> None:
    broker_id = data.draw(IDS)
    request = ApplyBrokerIdRequest(
        cluster_name=CLUSTER,
        broker_name=NAME,
        applied_broker_id=broker_id,
        register_check_code=f"127.0.0.1:{broker_id};5",
    )
    world.commit(registering.apply_id(world.record, request))


def register(world: World, data: st.DataObject) -> None:
    request = RegisterReplicaRequest(
        cluster_name=CLUSTER,
        broker_name=NAME,
        broker_id=data.draw(IDS),
        broker_address=f"127.0.0.1:{data.draw(st.integers(1, 9))}",
    )
    is_there = world.record is not None and is_in_office(world.record, world.live.members(NAME))
    held_by = world.live.members(NAME).get(request.broker_id)
    world.commit(
        registering.register(
            world.record, request, held_by=held_by, is_master_there=is_there, ha_address=None
        )
    )


def beat(world: World, data: st.DataObject) -> None:
    broker_id = data.draw(IDS)
    session = f"{broker_id}-{world.starts.get(broker_id, 0)}"
    header = heartbeat(
        broker_id,
        session_id=session,
        epoch=data.draw(st.integers(0, 5)),
        log_end=data.draw(st.integers(0, 9)),
    )
    world.live.on_heartbeat(header, "wire", now_s=world.now_s)
    if world.record is None:
        return
    live = world.live.members(NAME)[broker_id]
    epoch = world.leases.renew(world.record, live, now_s=world.now_s)
    if epoch is not None:
        assert session not in world.dead
        assert world.masters[epoch] == (broker_id, session)
        assert epoch == max(world.masters)
        # The master counts from when it sent this, and gives up early.
        world.promised[epoch] = world.now_s - data.draw(st.floats(0, 0.2)) + LEASE_S * 0.9


def restart(world: World, data: st.DataObject) -> None:
    """A broker's process ends and another begins, without anybody telling; its lease may as well run on."""
    broker_id = data.draw(IDS)
    world.starts[broker_id] = world.starts.get(broker_id, 0) + 1


def die(world: World, data: st.DataObject) -> None:
    """A broker's process ends, and its supervisor tells."""
    broker_id = data.draw(IDS)
    session = f"{broker_id}-{world.starts.get(broker_id, 0)}"
    world.starts[broker_id] = world.starts.get(broker_id, 0) + 1
    world.dead.add(session)
    world.live.on_dead(session)
    for epoch, master in world.masters.items():
        if master == (broker_id, session):
            world.promised.pop(epoch, None)
    if world.record is not None and world.record.master_session == session:
        world.leases.void(NAME)


def ask(world: World, data: st.DataObject) -> None:
    request = asks(
        data.draw(st.sampled_from([BY_CONTROLLER, 1, 2, 3, 4])), is_designated=data.draw(st.booleans())
    )
    allows_unclean = data.draw(st.sampled_from([False, False, True]))
    world.commit(elect(world.record, request, world.situation(allows_unclean=allows_unclean)))


def hand_over(world: World, data: st.DataObject) -> None:
    """An operator replaces the master: its lease is not renewed, and waited for."""
    world.leases.close(NAME)
    try:
        world.now_s = max(world.now_s, world.situation().lease_end_s)
        world.commit(elect(world.record, asks(data.draw(IDS), is_designated=True), world.situation()))
    finally:
        world.leases.reopen(NAME)


def alter(world: World, data: st.DataObject) -> None:
    record = world.record
    request = AlterSyncStateSetRequest(
        broker_name=NAME,
        master_broker_id=data.draw(IDS) if record is None or record.master_id is None else record.master_id,
        master_epoch=0 if record is None else record.epoch - data.draw(st.sampled_from([0, 0, 0, 1])),
    )
    members = data.draw(st.frozensets(IDS))
    proposed = SyncStateSet(broker_ids=members, epoch=0 if record is None else record.set_epoch)
    world.commit(decisions.alter_set(record, request, proposed, alive=world.live.members(NAME)))


def clean(world: World, data: st.DataObject) -> None:
    request = CleanBrokerDataRequest(
        broker_name=NAME,
        broker_ids=data.draw(st.sampled_from([None, "1", "2;3", "1;2;3;4"])),
        is_clean_living_broker=data.draw(st.sampled_from([False, False, True])),
    )
    situation = world.situation()
    world.commit(
        registering.clean(
            world.record, request, alive=situation.alive, is_lease_running=situation.is_lease_running
        )
    )


def wait(world: World, data: st.DataObject) -> None:
    world.now_s += data.draw(st.sampled_from([0.1, 1.0, 2.0, 4.0]))
    while (due_s := world.live.next_deadline_s) is not None and due_s <= world.now_s:
        assert world.live.on_tick(now_s=due_s)


def lead_anew(world: World, data: st.DataObject) -> None:
    """Another controller leads. It has heard nobody yet, and knows of no lease."""
    world.live = LiveTable()
    world.leases = Leases()
    world.leases.begin([] if world.record is None else [world.record], now_s=world.now_s)


STEPS = [
    apply,
    register,
    beat,
    beat,
    beat,
    restart,
    die,
    ask,
    ask,
    hand_over,
    alter,
    alter,
    clean,
    wait,
    lead_anew,
]
