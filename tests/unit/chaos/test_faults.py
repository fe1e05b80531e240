"""Which cluster can have which fault, and what is promised meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest

from tanist.chaos.faults import Fault, Promise, faults_of, forgotten_s, promise_of, struck_by
from tanist.chaos.lots import Victim, draw
from tanist.chaos.modes import Layout, Mode, Road, plan_members
from tanist.chaos.planted import Planted
from tanist.up.plan import BROKERS, CONTROLLER


def layout(*, zookeeper: str = "") -> Layout:
    return Layout(
        folder=Path("/chaos"),
        planted=Planted(Path("/chaos")),
        hub="10.0.0.254",
        roads=(
            Road("10.0.0.1", "10.0.0.1", "10.0.0.254:9876", "10.0.0.254:7000"),
            Road("10.0.0.2", "10.0.0.3", "10.0.0.254:9877", "10.0.0.254:7001"),
        ),
        namesrv_port=9876,
        controller_port=9878,
        broker_ports=(10911, 11911),
        console_port=8080,
        console_metrics_port=8081,
        relay="10.0.0.253",
        zookeeper=zookeeper,
    )


@pytest.mark.parametrize("mode", Mode)
def test_a_registry_is_broken_only_where_there_is_one(mode: Mode) -> None:
    assert (Fault.KILL_REGISTRY in faults_of(mode)) == mode.has_registry
    assert Fault.FLAKY_REPLICATION in faults_of(mode)


def test_every_mode_has_sixteen_faults_and_all_of_them_eighty() -> None:
    counts = [len(faults_of(mode)) for mode in Mode]
    assert min(counts) >= 16
    assert sum(counts) >= 80


@pytest.mark.parametrize(
    ("fault", "struck"),
    [
        (Fault.KILL_MASTER, [BROKERS[1]]),
        (Fault.KILL_SLAVE, [BROKERS[0]]),
        (Fault.KILL_BOTH, [BROKERS[0], BROKERS[1]]),
        (Fault.FREEZE_MASTER, [BROKERS[1]]),
        (Fault.FREEZE_SLAVE, [BROKERS[0]]),
        (Fault.CUT_MASTER, [BROKERS[1]]),
        (Fault.CUT_SLAVE, [BROKERS[0]]),
        (Fault.KILL_REGISTRY, [CONTROLLER]),
        (Fault.KILL_MASTER_AND_REGISTRY, [CONTROLLER, BROKERS[1]]),
        (Fault.RESTART_ALL, [BROKERS[0], BROKERS[1]]),
        (Fault.POWER_LOSS, [BROKERS[0], BROKERS[1]]),
        (Fault.CUT_REPLICATION, []),
    ],
)
@pytest.mark.parametrize("victim", Victim)
def test_a_fault_strikes_whom_its_name_says(fault: Fault, struck: list[str], victim: Victim) -> None:
    assert struck_by(fault, master=BROKERS[1], victim=victim) == struck


@pytest.mark.parametrize(
    "fault", [Fault.ONE_WAY_CUT, Fault.FULL_DISK, Fault.SLOW_DISK, Fault.CLOCK_JUMP, Fault.MEMORY_CAP]
)
def test_what_may_befall_either_strikes_the_victim(fault: Fault) -> None:
    assert struck_by(fault, master=BROKERS[0], victim=Victim.MASTER) == [BROKERS[0]]
    assert struck_by(fault, master=BROKERS[0], victim=Victim.SLAVE) == [BROKERS[1]]


def test_only_a_mode_with_zookeeper_has_its_leader_struck() -> None:
    assert [mode for mode in Mode if Fault.KILL_ZOOKEEPER_LEADER in faults_of(mode)] == [
        Mode.AUTO_SWITCH_ZOOKEEPER
    ]


@pytest.mark.parametrize(
    ("mode", "promise"),
    [
        (Mode.CLASSIC_ASYNC, Promise(sends=False, reads=False)),
        (Mode.CLASSIC_SYNC, Promise(sends=False, reads=False)),
        (Mode.SLAVE_CONSUMPTION, Promise(sends=False, reads=True)),
        (Mode.AUTO_SWITCH, Promise(sends=True, reads=True)),
        (Mode.AUTO_SWITCH_ZOOKEEPER, Promise(sends=True, reads=True)),
    ],
)
def test_without_a_master_goes_on_what_the_mode_is_for(mode: Mode, promise: Promise) -> None:
    assert promise_of(mode, Fault.KILL_MASTER) == promise


def test_a_master_that_waits_for_its_slave_promises_no_sends_without_it() -> None:
    assert not promise_of(Mode.CLASSIC_SYNC, Fault.KILL_SLAVE).sends
    assert promise_of(Mode.CLASSIC_ASYNC, Fault.KILL_SLAVE).sends


@pytest.mark.parametrize("mode", Mode)
def test_strangers_keep_nobody_from_work(mode: Mode) -> None:
    assert Fault.HOSTILE_PEERS in faults_of(mode)
    assert promise_of(mode, Fault.HOSTILE_PEERS) == Promise(sends=True, reads=True)


@pytest.mark.parametrize("mode", Mode)
def test_a_full_disk_stops_the_sends_of_whose_it_is(mode: Mode) -> None:
    assert promise_of(mode, Fault.FULL_DISK, Victim.MASTER) == Promise(sends=False, reads=True)
    assert promise_of(mode, Fault.FULL_DISK, Victim.SLAVE) == promise_of(mode, Fault.KILL_SLAVE)


@pytest.mark.parametrize("mode", [Mode.AUTO_SWITCH, Mode.AUTO_SWITCH_ZOOKEEPER])
def test_a_loss_of_power_takes_both_and_promises_no_work(mode: Mode) -> None:
    assert Fault.POWER_LOSS in faults_of(mode)
    assert promise_of(mode, Fault.POWER_LOSS) == Promise(sends=False, reads=False)
    assert forgotten_s(mode, Fault.POWER_LOSS) > 0


def test_whose_disk_forgets_acknowledges_what_is_on_it() -> None:
    _, brokers = plan_members(Mode.AUTO_SWITCH, replace(layout(), is_flushed=True))
    for broker in brokers:
        assert broker.settings.items() >= {("flushDiskType", "SYNC_FLUSH"), ("haAckMode", "flushed")}


def test_a_rolling_restart_interrupts_nobody_where_a_master_is_elected() -> None:
    assert promise_of(Mode.AUTO_SWITCH, Fault.RESTART_ALL) == Promise(sends=True, reads=True)
    assert promise_of(Mode.SLAVE_CONSUMPTION, Fault.RESTART_ALL).reads


def test_a_seed_sets_the_moment_and_the_victim() -> None:
    lots = [draw(seed) for seed in range(40)]
    assert lots == [draw(seed) for seed in range(40)]
    assert {lot.victim for lot in lots} == set(Victim)
    assert len({lot.moment for lot in lots}) == len(lots)
    assert all(0.5 <= lot.moment < 1.5 for lot in lots)


def test_offsets_are_forgotten_only_where_no_replica_goes_on() -> None:
    assert forgotten_s(Mode.CLASSIC_SYNC, Fault.KILL_MASTER) > 0
    assert forgotten_s(Mode.AUTO_SWITCH, Fault.KILL_MASTER) == 0
    assert forgotten_s(Mode.AUTO_SWITCH, Fault.KILL_BOTH) > 0


def test_brokers_find_their_registry_and_their_master_through_the_proxies() -> None:
    (_, controller), brokers = plan_members(Mode.SLAVE_CONSUMPTION, layout())
    assert controller.settings["listenPort"] == "9878"
    assert [broker.settings["coordinator"] for broker in brokers] == [
        "tanist://10.0.0.254:7000",
        "tanist://10.0.0.254:7001",
    ]
    assert brokers[1].settings["haMasterAddress"] == "10.0.0.253:10912"
    assert {broker.settings["brokerIP2"] for broker in brokers} == {"10.0.0.253"}
    assert [broker.settings["namesrvAddr"] for broker in brokers] == ["10.0.0.254:9876", "10.0.0.254:9877"]
    assert brokers[1].settings["brokerIP1"] == "10.0.0.2"
    assert brokers[1].settings["bindAddress"] == "10.0.0.3"


def test_a_classic_pair_has_no_registry_and_no_parent_processes() -> None:
    (names,), brokers = plan_members(Mode.CLASSIC_ASYNC, layout())
    assert names.name == "namesrv"
    assert [broker.settings["brokerRole"] for broker in brokers] == ["ASYNC_MASTER", "SLAVE"]
    assert not any(broker.is_supervised for broker in brokers)


def test_a_controller_is_told_of_its_zookeeper() -> None:
    (_, controller), _ = plan_members(Mode.AUTO_SWITCH_ZOOKEEPER, layout(zookeeper="zk:2181/chaos"))
    assert controller.settings["coordinator"] == "zk://zk:2181/chaos"
