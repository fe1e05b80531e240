"""The cluster: starts its members in order, keeps them up, takes orders, and stops them backwards."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tanist.admin.asking import asking
from tanist.admin.cluster import cluster_info
from tanist.admin.replication import ha_status
from tanist.client.session.wire import Wire
from tanist.clock import Clock, SystemClock
from tanist.errors import MQError, lone_error
from tanist.up.control import Act, ClusterState, MemberState, Order, OrderFailed, listening
from tanist.up.member import Member, StartFailed
from tanist.up.plan import BROKERS, ClusterPlan, Mode
from tanist.up.upkeep import Upkeep

_log = logging.getLogger(__name__)

_MASTER = "master"
_MASTER_S, _LOOK_S = 60.0, 0.05


class LocalCluster:
    """All processes of a plan."""

    def __init__(self, plan: ClusterPlan, *, lock: int, clock: Clock | None = None) -> None:
        self._plan = plan
        self._clock = clock or SystemClock()
        folder = plan.home / plan.mode.value
        self._stages = [[Member(each, folder, lock=lock) for each in stage] for stage in plan.stages]
        self._upkeep = {member.name: Upkeep() for stage in self._stages for member in stage}
        self._changing = {name: asyncio.Lock() for name in self._upkeep}
        """A member is started, stopped or killed by one at a time."""
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._last_master = BROKERS[0]
        self._is_stopping = False
        self.is_told_to_stop = asyncio.Event()

    @property
    def _members(self) -> list[Member]:
        return [member for stage in self._stages for member in stage]

    @asynccontextmanager
    async def running(self, control: Path) -> AsyncGenerator[bool]:
        """Run while the block lasts; whether all came up before somebody told it to stop.

        Raises StartFailed if one of them does not come up.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(lone_error())
            self._wire = await stack.enter_async_context(asking())
            self._tasks = await stack.enter_async_context(asyncio.TaskGroup())
            stack.push_async_callback(self._stop)
            await stack.enter_async_context(listening(self._plan.home, self._obey, control))
            yield await self._start_unless_told_to_stop()

    async def _start_unless_told_to_stop(self) -> bool:
        """Start all of them. Who is told to stop meanwhile does not wait for the rest to come up."""
        with lone_error():
            async with asyncio.TaskGroup() as race:
                starting = race.create_task(self._start_all())
                told = race.create_task(self.is_told_to_stop.wait())
                await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
                is_up = starting.done()
                starting.cancel()
                told.cancel()
        return is_up

    async def _start_all(self) -> None:
        for stage in self._stages:
            await asyncio.gather(*(self._begin(member) for member in stage))
            if any(member.name in BROKERS for member in stage):
                await self._wait_for_master()

    async def _wait_for_master(self) -> None:
        """Who comes later finds a cluster that takes messages: the name server has heard of a master."""
        deadline_s = self._clock.monotonic_s() + _MASTER_S
        while not await has_master(self._wire, self._plan.name_server):
            if self._clock.monotonic_s() > deadline_s:
                raise StartFailed(
                    f"no broker is master in the eyes of the name server after {_MASTER_S:g} s; "
                    f"see the logs in {self._plan.home}"
                )
            await asyncio.sleep(_LOOK_S)

    async def _begin(self, member: Member) -> None:
        async with self._changing[member.name]:
            await self._start(member)

    async def _start(self, member: Member) -> None:
        """Start it and keep it up. Only who holds its lock may."""
        await member.start()
        self._upkeep[member.name].on_start()
        self._keepers[member.name] = self._tasks.create_task(self._keep_up(member))

    async def _keep_up(self, member: Member) -> None:
        """Start it again whenever it ends, unless that is meant, or useless."""
        upkeep = self._upkeep[member.name]
        while True:
            code = await member.wait()
            if self._is_stopping:
                return
            pause_s = upkeep.on_end(now_s=self._clock.monotonic_s())
            _log.warning("member ended name=%s code=%d restart_in_s=%s", member.name, code, pause_s)
            if pause_s is None:
                return
            await asyncio.sleep(pause_s)
            async with self._changing[member.name]:
                if self._is_stopping or upkeep.is_killed:
                    return
                await self._try_start(member)

    async def _try_start(self, member: Member) -> None:
        try:
            await member.start()
        except MQError as error:
            _log.warning("member does not start name=%s reason=%s", member.name, error)
        self._upkeep[member.name].on_start()

    async def _stop(self) -> None:
        """The last started first, so that brokers can still say goodbye to the name server."""
        self._is_stopping = True
        for stage in reversed(self._stages):
            await asyncio.gather(*(self._end(member) for member in stage))

    async def _end(self, member: Member) -> None:
        # Before the lock too: a start that is under way gives up when its process ends, and lets the lock go.
        await member.stop()
        async with self._changing[member.name]:
            await member.stop()

    async def _obey(self, order: Order) -> ClusterState:
        match order.act:
            case Act.STATUS:
                return await self._state()
            case Act.STOP:
                self.is_told_to_stop.set()
                return await self._state("stops")
            case Act.KILL:
                return await self._state(await self._kill(order.whom))
            case Act.RESTART:
                return await self._state(await self._restart(order.whom))

    async def _kill(self, whom: str) -> str:
        member = await self._find(whom)
        async with self._changing[member.name]:
            if not member.kill():
                raise OrderFailed(f"{member.name} does not run; start it again with: restart {member.name}")
            self._upkeep[member.name].is_killed = True
        _log.warning("member killed name=%s", member.name)
        return f"{member.name} is killed, as by a crash; restart {member.name} brings it back"

    async def _restart(self, whom: str) -> str:
        wanted = [await self._find(whom)] if whom else [each for each in self._members if self._is_dead(each)]
        if not wanted:
            return "nothing was dead"
        for member in wanted:
            async with self._changing[member.name]:
                await self._start_again(member)
        return f"{', '.join(member.name for member in wanted)} started again"

    async def _start_again(self, member: Member) -> None:
        if self._is_stopping:
            raise OrderFailed("the cluster stops")
        # So whoever keeps it up lets it go, if it still runs.
        self._upkeep[member.name].is_killed = True
        await member.stop()
        if member.name in self._keepers:
            # It may pause before a start of its own.
            self._keepers[member.name].cancel()
        await self._start(member)

    async def _find(self, whom: str) -> Member:
        name = await self._master() if whom == _MASTER else whom
        for member in self._members:
            if member.name == name:
                return member
        known = ", ".join(member.name for member in self._members)
        raise OrderFailed(f"there is no {whom}; use {_MASTER}, {known}")

    async def _master(self) -> str:
        """Which broker is master now; if none answers, the one that was last."""
        if self._plan.mode is Mode.AUTO_SWITCH:
            for name in BROKERS:
                if await _is_master(self._wire, self._plan.address(name)):
                    self._last_master = name
        return self._last_master

    async def _state(self, done: str = "") -> ClusterState:
        master = await self._master()
        return ClusterState(
            mode=self._plan.mode.value,
            home=str(self._plan.home),
            done=done,
            members=[
                MemberState(
                    name=member.name,
                    address=self._plan.address(member.name),
                    state=self._state_of(member),
                    pid=None if self._upkeep[member.name].is_killed else member.serving_pid,
                    is_master=member.name == master,
                    log_file=str(member.log_file),
                )
                for member in self._members
            ],
        )

    def _state_of(self, member: Member) -> str:
        if self._upkeep[member.name].is_killed:
            return "killed"
        return "ended" if member.serving_pid is None else "runs"

    def _is_dead(self, member: Member) -> bool:
        return self._state_of(member) != "runs"


async def _is_master(wire: Wire, address: str) -> bool:
    try:
        return (await ha_status(wire, address)).is_master
    except MQError:
        return False


async def has_master(wire: Wire, name_server: str) -> bool:
    """Whether the name server has heard of a master."""
    try:
        known = (await cluster_info(wire, name_server)).broker_addr_table
    except MQError:
        return False
    return any(group.master_addr for group in known.values())
