"""What a cluster on one machine consists of, and when one of it is started again."""

from itertools import count
from pathlib import Path

from tanist.up.plan import BROKERS, CONSOLE, Mode, Ports, choose_ports, moved_brokers, plan_cluster
from tanist.up.upkeep import MAX_RESTARTS, PAUSE_S, WINDOW_S, Upkeep

HOME = Path("/somewhere")


def settings(mode: Mode) -> dict[str, dict[str, str]]:
    plan = plan_cluster(HOME, mode, Ports(), secret="s", control=HOME / "c")
    return {member.name: member.settings for stage in plan.stages for member in stage}


def test_traffic_starts_last_and_only_if_it_is_asked_for() -> None:
    plain, busy = (
        plan_cluster(HOME, Mode.FIXED_ROLES, Ports(), secret="s", control=HOME, has_traffic=has_traffic)
        for has_traffic in (False, True)
    )
    assert plain.stages[-1] == ()
    names = [member.name for member in busy.stages[-1]]
    assert names == ["demo-producers", "demo-clustering", "demo-broadcasting"]
    assert busy.address(names[0]) == busy.name_server


def test_ports_that_are_free_are_taken_as_wanted() -> None:
    assert choose_ports(Ports(), lambda _port: True, lambda: 0) == (Ports(), [])


def test_a_port_that_is_taken_is_replaced_and_told() -> None:
    ports, told = choose_ports(Ports(), lambda port: port != 8080, lambda: 18080)
    assert (ports.console, ports.namesrv) == (18080, 9876)
    assert told == ["port 8080 is taken; 18080 is used instead"]


def test_a_broker_needs_the_ports_beside_its_own_too() -> None:
    found = count(20_000, 10)
    ports, _ = choose_ports(Ports(), lambda port: port not in {10912, 20_001}, lambda: next(found))
    assert ports.first == 20_010
    assert ports.second == 11911


def test_with_fixed_roles_the_first_is_master_and_both_have_the_registry() -> None:
    first, second = (settings(Mode.FIXED_ROLES)[name] for name in BROKERS)
    assert (first["brokerRole"], second["brokerRole"]) == ("SYNC_MASTER", "SLAVE")
    assert first["coordinator"] == second["coordinator"] == "tanist://127.0.0.1:9878"
    assert first["brokerName"] == second["brokerName"]
    assert first["storePathRootDir"] != second["storePathRootDir"]


def test_in_auto_switch_a_controller_says_who_is_master() -> None:
    for name in BROKERS:
        found = settings(Mode.AUTO_SWITCH)[name]
        assert found["enableControllerMode"] == "true"
        assert "brokerRole" not in found


def test_the_two_modes_share_no_store() -> None:
    stores = [settings(mode)[name]["storePathRootDir"] for mode in Mode for name in BROKERS]
    assert len(set(stores)) == 4


def test_the_secret_of_the_brokers_is_on_no_command_line() -> None:
    plan = plan_cluster(HOME, Mode.FIXED_ROLES, Ports(), secret="the secret", control=HOME / "c")
    arguments = [argument for stage in plan.stages for member in stage for argument in member.arguments]
    assert "the secret" not in " ".join(arguments)
    assert plan.address(CONSOLE) == "127.0.0.1:8080"


def test_a_member_that_ends_by_itself_is_started_again_and_one_that_was_killed_is_not() -> None:
    upkeep = Upkeep()
    assert upkeep.on_end(now_s=0) == PAUSE_S
    upkeep.is_killed = True
    assert upkeep.on_end(now_s=1) is None
    upkeep.on_start()
    assert upkeep.on_end(now_s=2) == PAUSE_S


def test_a_member_that_ends_again_and_again_is_left_alone() -> None:
    upkeep = Upkeep()
    assert [upkeep.on_end(now_s=0) for _ in range(MAX_RESTARTS)] == [PAUSE_S] * MAX_RESTARTS
    assert upkeep.on_end(now_s=WINDOW_S - 1) is None
    assert upkeep.on_end(now_s=WINDOW_S) == PAUSE_S


def test_only_brokers_are_bound_to_their_ports() -> None:
    assert moved_brokers(Ports(), Ports(console=1, controller=2, namesrv=3)) == []
    assert moved_brokers(Ports(), Ports(second=4)) == [("broker-2", 11911)]
