"""Two controllers at a registry that is played: who leads, and what one may still do that does not any more.

``test_mutation_gate`` shows what histories find of it; here is what only a certain moment shows.
"""

from random import Random

import pytest

from tanist.controller.leading import LEADER_PATH
from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.controller import ReportDeadBrokerRequest
from tanist.sim.alone import alone
from tanist.sim.broken import Broken
from tanist.sim.group.around import SESSION_S, Promise
from tanist.sim.group.machines import PRODUCTION, Machines
from tanist.sim.group.naming import CLUSTER, NAME, ROOT
from tanist.sim.group.world import GroupWorld
from tests.support.group_mutants import DiesWithItsConnection, WatchesOnce, WritesUnfenced


def _world(machines: Machines) -> GroupWorld:
    """One in which there is a master."""
    promise = Promise(is_durable=False, is_slow=False, waits_for_all=True)
    world = GroupWorld(3, promise, chance=Random(1), machines=machines)
    world.start()
    assert world.clockwork.run_for(5.0, lambda: world.has_acked_since(0.0))
    return world


def _lose_the_lead_and_elect(world: GroupWorld) -> None:
    """Somebody removes the record of who leads, and the same moment a controller has reason to elect."""
    registry, leader, old = world.registry, world.leader, world.record
    registry._change(
        {path: node for path, node in registry.nodes.items() if path != ROOT + LEADER_PATH}, None
    )
    assert old.master_id is not None
    session = world.replicas[old.master_id].session
    header = ReportDeadBrokerRequest(cluster_name=CLUSTER, broker_name=NAME, session_id=session)
    report = Command.request(RequestCode.CONTROLLER_REPORT_DEAD_BROKER, header)
    leader.hear(report, None, "supervisor", lambda _answer: None)


def test_a_leader_whose_record_is_gone_changes_nothing_before_it_leads_again() -> None:
    with alone(1):
        world = _world(PRODUCTION)
        before = world.record.epoch
        _lose_the_lead_and_elect(world)
        assert world.clockwork.run_for(3.0, lambda: world.record.epoch > before)
        world.end()


def test_a_leader_that_writes_unfenced_is_found() -> None:
    with alone(1):
        world = _world(Machines(leading=WritesUnfenced))
        _lose_the_lead_and_elect(world)
        with pytest.raises(Broken, match="C2"):
            world.clockwork.run_for(3.0)
        world.end()


def test_another_controller_leads_within_two_sessions_and_the_old_one_knows_better_when_it_goes_on() -> None:
    with alone(1):
        world = _world(PRODUCTION)
        old = world.leader
        world.freeze(old.process.name)
        assert world.clockwork.run_for(
            2 * SESSION_S, lambda: world.leader is not old and world.leader.is_leading
        )
        new = world.leader
        world.thaw(old.process.name)
        # What it was asked meanwhile it hears now.
        assert not world.clockwork.run_for(3 * SESSION_S, lambda: old.is_leading)
        assert new.is_leading
        world.end()


def _is_succeeded(machines: Machines) -> bool:
    world = _world(machines)
    old = world.leader
    world.kill_controller(old)
    succeeded = world.clockwork.run_for(
        2 * SESSION_S, lambda: world.leader is not old and world.leader.is_leading
    )
    world.end()
    return succeeded


def test_a_leader_that_is_killed_is_succeeded_by_who_watches_its_record() -> None:
    with alone(1):
        assert _is_succeeded(PRODUCTION)
        assert not _is_succeeded(Machines(registry=WatchesOnce))


def _leads_while_connections_break(machines: Machines) -> bool:
    world = _world(machines)
    old, leads = world.leader, True
    for _ in range(20):
        world.registry.drop(old.process)
        world.clockwork.run_for(0.4)
        leads = leads and old.is_leading
    world.end()
    return leads


def test_who_leads_does_so_while_its_session_lasts_whatever_becomes_of_its_connections() -> None:
    with alone(1):
        assert _leads_while_connections_break(PRODUCTION)
        assert not _leads_while_connections_break(Machines(zookeeper=DiesWithItsConnection))


def test_a_registry_without_a_leader_deposes_nobody_when_it_is_back_in_time() -> None:
    with alone(1):
        world = _world(PRODUCTION)
        old = world.leader
        world.registry.stand_still()
        world.clockwork.run_for(3 * SESSION_S)
        assert not old.is_leading
        world.registry.go_on()
        assert world.clockwork.run_for(SESSION_S, lambda: old.is_leading)
        world.end()
