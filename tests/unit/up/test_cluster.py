"""Who starts and stops a member: one at a time, and nobody after the stop."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tanist.client.session.wire import Wire
from tanist.up import cluster, upkeep
from tanist.up.cluster import LocalCluster
from tanist.up.control import Act, ClusterState, Order, OrderFailed, give_order
from tanist.up.member import StartFailed
from tanist.up.plan import CONSOLE, MemberPlan, Mode, Ports, plan_cluster
from tests.support.conditions import until

NAME = "broker-1"


class PlayedMember:
    """A process that is none. Its start lasts while ``may_start`` is not set."""

    all: dict[str, "PlayedMember"]
    looks: Iterator[bool]
    """What the name server says to who asks whether it has heard of a master."""

    def __init__(self, plan: MemberPlan, folder: Path, *, lock: int) -> None:
        del lock
        self.name, self.log_file = plan.name, folder / "log"
        self.starts, self.is_starting = 0, False
        self.may_start = asyncio.Event()
        self.may_start.set()
        self._ended = asyncio.Event()
        self.all[plan.name] = self

    @property
    def serving_pid(self) -> int | None:
        return None if self._ended.is_set() else 1

    async def start(self) -> None:
        assert not self.is_starting
        self.starts, self.is_starting = self.starts + 1, True
        await self.may_start.wait()
        self._ended, self.is_starting = asyncio.Event(), False

    async def wait(self) -> int:
        await self._ended.wait()
        return 1

    async def stop(self) -> None:
        self._ended.set()

    def kill(self) -> bool:
        was_up = not self._ended.is_set()
        self._ended.set()
        return was_up


@asynccontextmanager
async def played(folder: Path) -> AsyncGenerator[tuple[PlayedMember, Path]]:
    """The first broker of a cluster that runs, and where the cluster takes orders."""
    PlayedMember.all, PlayedMember.looks = {}, iter((False, False, True))
    control = folder / "c"
    plan = plan_cluster(folder, Mode.FIXED_ROLES, Ports(), secret="s", control=control)
    async with LocalCluster(plan, lock=-1).running(control):
        yield PlayedMember.all[NAME], control


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "Member", PlayedMember)
    monkeypatch.setattr(cluster, "has_master", has_master)


async def has_master(wire: Wire, name_server: str) -> bool:
    del wire, name_server
    # Nobody who would look for it has been started.
    assert PlayedMember.all[CONSOLE].starts == 0
    return next(PlayedMember.looks)


def state_of(told: ClusterState) -> str:
    return next(member.state for member in told.members if member.name == NAME)


def test_what_looks_for_a_master_starts_when_the_name_server_has_heard_of_one(tmp_path: Path) -> None:
    async def play() -> None:
        async with played(tmp_path):
            assert list(PlayedMember.looks) == []
            assert PlayedMember.all[CONSOLE].starts == 1

    asyncio.run(play())


def test_a_cluster_whose_master_nobody_hears_of_does_not_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        with pytest.raises(StartFailed, match="see the logs in"):
            async with played(tmp_path):
                pass

    monkeypatch.setattr(cluster, "_MASTER_S", 0)
    asyncio.run(play())


def test_who_is_told_to_stop_while_it_starts_waits_for_nobody(tmp_path: Path) -> None:
    PlayedMember.all, PlayedMember.looks = {}, iter(())

    async def play() -> None:
        control = tmp_path / "c"
        plan = plan_cluster(tmp_path, Mode.FIXED_ROLES, Ports(), secret="s", control=control)
        told = LocalCluster(plan, lock=-1)
        member = PlayedMember.all[NAME]
        member.may_start.clear()

        async def tell() -> None:
            await until(lambda: member.is_starting)
            told.is_told_to_stop.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(tell())
            async with told.running(control) as is_up:
                assert not is_up
        assert PlayedMember.all[CONSOLE].starts == 0

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_member_that_pauses_before_its_restart_is_not_started_after_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "PAUSE_S", 0.5)

    async def scenario() -> int:
        async with played(tmp_path) as (member, _):
            await member.stop()
            await until(lambda: "member ended" in caplog.text)
        return member.starts

    assert asyncio.run(scenario()) == 1


def test_an_order_to_restart_waits_for_the_restart_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "PAUSE_S", 0.0)

    async def scenario() -> str:
        async with played(tmp_path) as (member, control):
            member.may_start.clear()
            await member.stop()
            await until(lambda: member.is_starting)
            ordered = asyncio.create_task(give_order(control, Order(act=Act.RESTART, whom=NAME)))
            await asyncio.sleep(0)
            # When this one is answered the one before it waits.
            await give_order(control, Order(act=Act.STATUS))
            member.may_start.set()
            return state_of(await ordered)

    assert asyncio.run(scenario()) == "runs"


def test_an_order_to_restart_takes_the_place_of_a_restart_that_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "PAUSE_S", 3600.0)

    async def scenario() -> int:
        async with played(tmp_path) as (member, control):
            await member.stop()
            await until(lambda: "member ended" in caplog.text)
            await give_order(control, Order(act=Act.RESTART, whom=NAME))
        return member.starts

    # The end of the cluster would wait for the pause.
    assert asyncio.run(asyncio.wait_for(scenario(), 30)) == 2


def test_a_member_that_ended_by_itself_was_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "PAUSE_S", 0.5)

    async def scenario() -> str:
        async with played(tmp_path) as (member, control):
            await member.stop()
            with pytest.raises(OrderFailed, match="does not run"):
                await give_order(control, Order(act=Act.KILL, whom=NAME))
            return state_of(await give_order(control, Order(act=Act.STATUS)))

    assert asyncio.run(scenario()) == "ended"
