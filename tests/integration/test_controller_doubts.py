"""What a controller may not be led to believe, and what it may not forget while it is in doubt."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tanist.controller.group_record import group_path
from tanist.controller.leading import LEADER_PATH
from tanist.coord import Change, Create, Registry, RegistryUnavailable
from tanist.coord.sqlite_registry import SqliteHome
from tanist.protocol import RequestCode, ResponseCode
from tanist.protocol.headers.common import BrokerNameRequest
from tanist.protocol.headers.controller import ReplicaInfoResponse
from tests.support.conditions import until
from tests.support.controller_site import site
from tests.support.faulty_registry import FaultyRegistry
from tests.support.played_replicas import (
    SHORT_MS,
    PlayedReplica,
    beating,
    controlling,
    in_time,
    reign,
    replicas,
)
from tests.support.reigning import NAME

C, R = RequestCode, ResponseCode
TIMEOUT_S = SHORT_MS / 1000

Impatient = partial(PlayedReplica, timeout_ms=SHORT_MS)


class LateRegistry(FaultyRegistry):
    """Makes the first try to lead when nobody waits for it any more, just before the second one."""

    _late: tuple[Change, ...] | None = None
    _has_tried = False

    async def commit(self, *changes: Change) -> list[int]:
        if changes[0].path == LEADER_PATH and isinstance(changes[0], Create):
            if not self._has_tried:
                self._has_tried, self._late = True, changes
                raise RegistryUnavailable("no answer in time")
            if self._late is not None:
                late, self._late = self._late, None
                await super().commit(*late)
        return await super().commit(*changes)


async def wait_for_live(asker: PlayedReplica, at: str, count: int) -> None:
    async with asyncio.timeout(10):
        while True:
            if (await asker.figures(at))["controllerLiveReplicas"] == str(count):
                return
            await asyncio.sleep(0.005)


def test_a_heartbeat_without_a_session_under_the_masters_id_ends_no_lease(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = Impatient(1, session="s1"), Impatient(2, session="s2")
        stranger = Impatient(1)
        async with controlling(tmp_path) as controller, replicas(master, slave, stranger):
            at = controller.address
            await reign(controller, master, slave)
            async with beating(slave, at=[at]):
                sent_s = time.monotonic()
                assert await master.beat(at) == 1
                assert await stranger.beat(at) is None
                await stranger.disconnect()
                await slave.wait_for_master(at, beyond=1)
                assert time.monotonic() - sent_s >= TIMEOUT_S

    in_time(scenario())


def test_a_leader_that_is_sure_again_elects_whom_it_could_not_while_in_doubt(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = Impatient(1, session="s1"), Impatient(2, session="s2", timeout_ms=60_000)
        async with site(tmp_path, 1) as controllers, replicas(master, slave):
            at, (sessions,) = controllers.addresses[0], controllers.sessions
            await reign(controllers.controllers[0], master, slave)
            registry = sessions.seen[-1]
            registry.is_in_doubt = True
            await wait_for_live(slave, at, 1)
            # As after a standstill: the session is confirmed, and nothing in the registry has changed.
            registry.is_in_doubt = False
            view = await slave.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (2, 2)

    in_time(scenario())


def test_a_master_has_its_lease_again_without_asking_when_a_change_was_in_doubt(tmp_path: Path) -> None:
    async def scenario() -> None:
        master = Impatient(1, session="s1", timeout_ms=60_000)
        slave = Impatient(2, session="s2", timeout_ms=60_000)
        async with site(tmp_path, 1) as controllers, replicas(master, slave):
            at, (sessions,) = controllers.addresses[0], controllers.sessions
            await reign(controllers.controllers[0], master, slave)
            sessions.seen[-1].is_away = True
            assert (await master.set_members(at, 1)).code == R.SYSTEM_ERROR
            assert await master.beat(at) is None
            sessions.seen[-1].is_away = False
            await master.wait_for_lease(at, epoch=1)

    in_time(scenario())


def test_an_election_that_fails_for_no_known_reason_is_tried_again_and_harms_no_other_group(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        master, slave = Impatient(1), Impatient(2, timeout_ms=60_000)
        async with site(tmp_path, 1) as controllers, replicas(master, slave):
            at, (sessions,) = controllers.addresses[0], controllers.sessions
            await reign(controllers.controllers[0], master, slave)
            sessions.seen[-1].mistake = ValueError("nobody thought of this")
            await master.disconnect()
            await until(lambda: "election failed" in caplog.text)
            assert (await slave.leader(at)).is_leader
            sessions.seen[-1].mistake = None
            view = await slave.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (2, 2)
        assert "nobody thought of this" in caplog.text

    in_time(scenario())


def test_a_group_whose_record_can_not_be_read_is_not_told_of_all_the_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        replica = Impatient(1, session="s1")
        async with SqliteHome(tmp_path / "registry.db") as home:
            await (await home.open_session(10)).commit(Create(group_path(NAME), b"{"))
        async with (
            controlling(tmp_path) as controller,
            replicas(replica),
            beating(replica, at=[controller.address]),
        ):
            await until(lambda: caplog.text.count("election failed") == 3)
            began_s = time.monotonic()
            await until(lambda: caplog.text.count("election failed") == 4)
            assert time.monotonic() - began_s > 0.3

    in_time(scenario())


def test_a_member_that_was_emptied_does_not_reign_before_one_that_has_the_log_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = Impatient(1, session="s1"), Impatient(2, session="s2", timeout_ms=60_000)
        async with controlling(tmp_path) as controller, replicas(master, slave):
            at = controller.address
            await reign(controller, master, slave)
            assert await master.beat(at, log_end=1000, confirmed_to=900) == 1
            await slave.beat(at, session_id="s2-again", log_end=0)
            await slave.wait_for_no_master(at)
            await master.beat(at, session_id="s1-again", log_end=1000, heartbeat_timeout_ms=60_000)
            view = await slave.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (1, 2)

    in_time(scenario())


def test_a_member_that_has_the_log_again_is_elected_by_a_heartbeat_that_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = Impatient(1, session="s1"), Impatient(2, session="s2", timeout_ms=60_000)
        async with controlling(tmp_path) as controller, replicas(master, slave):
            at = controller.address
            await reign(controller, master, slave)
            assert await master.beat(at, log_end=1000, confirmed_to=900) == 1
            await slave.beat(at, session_id="s2-again", log_end=0)
            await slave.wait_for_no_master(at)
            await slave.beat(at, session_id="s2-again", log_end=900)
            assert (await slave.wait_for_master(at, beyond=1)).master_broker_id == 2

    in_time(scenario())


def test_a_controller_knows_that_it_leads_by_a_try_that_was_made_late(tmp_path: Path) -> None:
    async def scenario() -> None:
        asker = Impatient(1)

        @asynccontextmanager
        async def open_session() -> AsyncGenerator[Registry]:
            async with SqliteHome(tmp_path / "late.db") as home:
                yield LateRegistry(await home.open_session(10))

        async with controlling(tmp_path, open_session=open_session) as controller, replicas(asker):
            async with asyncio.timeout(10):
                while True:
                    if (await asker.leader(controller.address)).is_leader:
                        break
                    await asyncio.sleep(0.005)
            await reign(controller, asker)
            await until(lambda: bool(asker.news))

    in_time(scenario())


def test_a_report_of_death_under_a_wrong_name_leaves_no_group_without_a_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        master = Impatient(1, session="s1", timeout_ms=1_500)
        slave = Impatient(2, session="s2", timeout_ms=60_000)
        stranger = Impatient(1, session="s1", name="other")
        async with controlling(tmp_path) as controller, replicas(master, slave, stranger):
            at = controller.address
            await reign(controller, master, slave)
            assert (await stranger.report_dead(at)).code == R.SUCCESS
            assert (await slave.wait_for_master(at, beyond=1)).master_broker_id == 2

    in_time(scenario())


def test_two_operators_do_not_replace_a_master_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = Impatient(1, session="s1"), Impatient(2, session="s2")
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first, second)
            async with beating(first, second, at=[at]):
                await first.wait_for_lease(at, epoch=1)
                answers = await asyncio.gather(*(second.elect(at, is_designated=True) for _ in range(2)))
            assert {answer.code for answer in answers} == {R.SUCCESS, R.CONTROLLER_ELECT_MASTER_FAILED}
            assert any("another operator" in (answer.remark or "") for answer in answers)

    in_time(scenario())


def test_whoever_asks_for_more_groups_than_there_can_be_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        replica = Impatient(1)
        async with controlling(tmp_path) as controller, replicas(replica):
            at = controller.address
            await reign(controller, replica)
            await until(lambda: bool(replica.news))
            many = msgspec.json.encode([str(number) for number in range(10_001)])
            answer = await replica.ask(at, C.CONTROLLER_GET_SYNC_STATE_DATA, body=many)
            assert answer.code == R.CONTROLLER_INVALID_REQUEST
            # One name, a hundred thousand times, holds nobody up.
            again = msgspec.json.encode([NAME] * 100_000)
            answer = await replica.ask(at, C.CONTROLLER_GET_SYNC_STATE_DATA, body=again)
            assert answer.code == R.SUCCESS

    in_time(scenario())


@pytest.mark.behaviour("S2-46")
def test_a_master_that_was_started_anew_is_not_told_that_it_reigns_in_its_old_epoch(tmp_path: Path) -> None:
    async def scenario() -> None:
        master = PlayedReplica(1, session="s1", timeout_ms=60_000)
        slave = PlayedReplica(2, session="s2", timeout_ms=60_000)
        async with controlling(tmp_path) as controller, replicas(master, slave):
            at = controller.address

            async def told() -> ReplicaInfoResponse:
                request = BrokerNameRequest(broker_name=NAME)
                return (await slave.ask(at, C.CONTROLLER_GET_REPLICA_INFO, request)).header(
                    ReplicaInfoResponse
                )

            await reign(controller, master, slave)
            assert await master.beat(at) == 1
            assert (await told()).master_broker_id == 1
            # Its old process may be serving still, so it can not be elected yet.
            await master.beat(at, session_id="s1-again")
            info = await told()
            assert (info.master_broker_id, info.master_address, info.master_epoch) == (None, None, 1)

    in_time(scenario())
