"""Several controllers on one registry: one leads, and another one when it can not any more."""

import asyncio
from pathlib import Path

import pytest

from tanist.protocol import RequestCode, ResponseCode
from tests.support.controller_site import site
from tests.support.played_replicas import PlayedReplica, beating, in_time, reign, replicas

C, R = RequestCode, ResponseCode


def test_one_of_several_leads_and_the_others_name_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        asker = PlayedReplica(1, session="s1")
        async with site(tmp_path, 3) as controllers, replicas(asker):
            leader = await controllers.leader(asker)
            at = controllers.addresses[leader]
            await reign(controllers.controllers[leader], asker)
            for index, address in enumerate(controllers.addresses):
                told = await asker.leader(address)
                assert sorted((told.peers or "").split(";")) == [
                    "",
                    *(f"n{n}:{each}" for n, each in enumerate(sorted(controllers.addresses))),
                ]
                assert await asker.beat(address) == (1 if index == leader else None)
                assert (await asker.ask(address, C.GET_CONTROLLER_CONFIG)).code == R.SUCCESS
                if index == leader:
                    continue
                answer = await asker.register(address)
                assert answer.code == R.CONTROLLER_NOT_LEADER
                assert f"ask {at}" in (answer.remark or "")

    in_time(scenario())


@pytest.mark.parametrize("end", ["stopped", "expired"])
def test_another_leads_when_the_leader_can_not_and_masters_stay(tmp_path: Path, end: str) -> None:
    async def scenario() -> None:
        master, slave = PlayedReplica(1, session="s1"), PlayedReplica(2, session="s2")
        async with site(tmp_path, 3) as controllers, replicas(master, slave):
            old = await controllers.leader(master)
            await reign(controllers.controllers[old], master, slave)
            others = [index for index in range(3) if index != old]
            async with beating(master, slave, at=controllers.addresses):
                if end == "stopped":
                    await controllers.stacks[old].aclose()
                else:
                    controllers.sessions[old].expire()
                    # At once: it does not have to be told by anybody.
                    assert not (await master.leader(controllers.addresses[old])).is_leader or (
                        len(controllers.sessions[old].seen) > 1
                    )
                new = await controllers.leader(master, among=others if end == "stopped" else None)
                at = controllers.addresses[new]
                await master.wait_for_lease(at, epoch=1)
                view = await slave.view(at)
                assert (view.master_broker_id, view.master_epoch) == (1, 1)
                assert (await master.set_members(at, 1)).code == R.SUCCESS

    in_time(scenario())


def test_while_the_registry_is_away_nothing_is_promised_and_heartbeats_are_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = PlayedReplica(1, session="s1"), PlayedReplica(2, session="s2")
        async with site(tmp_path, 1) as controllers, replicas(master, slave):
            at, (sessions,) = controllers.addresses[0], controllers.sessions
            await reign(controllers.controllers[0], master, slave)
            sessions.seen[-1].is_away = True
            answer = await master.set_members(at, 1)
            assert answer.code == R.SYSTEM_ERROR
            assert "the registry does not answer" in (answer.remark or "")
            # Whether that was done is not known, so neither is who may have a lease.
            assert await master.beat(at) is None
            sessions.seen[-1].is_away = False
            assert (await master.set_members(at, 1)).code == R.SUCCESS
            assert await master.beat(at) == 1

    in_time(scenario())


def test_a_change_whose_answer_was_lost_is_found_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = PlayedReplica(1, session="s1"), PlayedReplica(2, session="s2")
        async with site(tmp_path, 1) as controllers, replicas(master, slave):
            at, (sessions,) = controllers.addresses[0], controllers.sessions
            await reign(controllers.controllers[0], master, slave)
            sessions.seen[-1].loses_answers = True
            assert (await master.set_members(at, 1)).code == R.SYSTEM_ERROR
            sessions.seen[-1].loses_answers = False
            view = await master.view(at)
            assert [each.broker_id for each in view.in_sync_replicas] == [1]

    in_time(scenario())


def test_an_election_that_the_registry_did_not_take_is_tried_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = PlayedReplica(1), PlayedReplica(2)
        async with site(tmp_path, 1) as controllers, replicas(master, slave):
            at, (sessions,) = controllers.addresses[0], controllers.sessions
            await reign(controllers.controllers[0], master, slave)
            sessions.seen[-1].is_away = True
            await master.disconnect()
            await asyncio.sleep(0.1)
            sessions.seen[-1].is_away = False
            view = await slave.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (2, 2)

    in_time(scenario())


def test_a_leader_in_doubt_promises_nothing_and_sees_to_what_happened_when_it_is_sure_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        leased = PlayedReplica(1, session="s1", name="other")
        master, slave = PlayedReplica(1), PlayedReplica(2)
        async with site(tmp_path, 1) as controllers, replicas(master, slave, leased):
            at, (sessions,) = controllers.addresses[0], controllers.sessions
            await reign(controllers.controllers[0], leased)
            await reign(controllers.controllers[0], master, slave)
            assert await leased.beat(at) == 1
            sessions.seen[-1].is_in_doubt = True
            assert await leased.beat(at) is None
            assert (await slave.elect(at)).code == R.CONTROLLER_NOT_LEADER
            told = await slave.leader(at)
            assert (told.is_leader, told.controller_leader_address) == (False, None)
            await master.disconnect()
            await until_count(slave, at, 2)
            sessions.seen[-1].come_back()
            view = await slave.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (2, 2)
            assert await leased.beat(at) == 1

    async def until_count(asker: PlayedReplica, at: str, count: int) -> None:
        async with asyncio.timeout(5):
            while True:
                if (await asker.figures(at))["controllerLiveReplicas"] == str(count):
                    return
                await asyncio.sleep(0.005)

    in_time(scenario())


@pytest.mark.known_bug("RMQ #7689")
def test_a_death_that_was_told_to_a_follower_is_known_when_it_leads(tmp_path: Path) -> None:
    async def scenario() -> None:
        master = PlayedReplica(1, session="s1")
        slave = PlayedReplica(2, session="s2")
        async with site(tmp_path, 2) as controllers, replicas(master, slave):
            old = await controllers.leader(master)
            await reign(controllers.controllers[old], master, slave)
            new = 1 - old
            at = controllers.addresses[new]
            for each in (master, slave):
                await each.beat(at)
            await controllers.stacks[old].aclose()
            assert (await master.report_dead(at)).code == R.SUCCESS
            await controllers.leader(master, among=[new])
            # Its lease would run for another minute.
            view = await slave.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (2, 2)

    in_time(scenario())
