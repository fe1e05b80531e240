"""The processes of one run, and the hand that strikes them."""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.admin.asking import Access, asking
from tanist.admin.replication import ha_status
from tanist.chaos import memory
from tanist.chaos.clocks import WallClock
from tanist.chaos.disks import SmallDisk
from tanist.chaos.faults import Fault, struck_by
from tanist.chaos.forgetful_disks import ForgetfulDisk
from tanist.chaos.hostile import disturb
from tanist.chaos.in_step import are_in_step, described
from tanist.chaos.lots import Victim
from tanist.chaos.means import NotPossible
from tanist.chaos.modes import (
    HA_DISTANCE,
    METRICS_DISTANCE,
    SEGMENT_BYTES,
    Layout,
    Mode,
    plan_console,
    plan_members,
    plan_operator,
)
from tanist.chaos.network import LOOPBACK, Network
from tanist.chaos.planted import Planted
from tanist.chaos.proxy import FLAKY, SILENT, TRICKLE
from tanist.chaos.showing import Showing
from tanist.chaos.slow_disks import SlowDisk
from tanist.chaos.zookeeper import LeaderHand
from tanist.check.ports import free_port
from tanist.client.settings import Credentials
from tanist.errors import MQError
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.up.member import Member
from tanist.up.plan import BROKERS, CONSOLE

_RELAY = "127.0.0.2"
"""Where proxies have the same ports as the brokers, if those are on this machine too."""
_JUMP_S = 3600
_TINY_BYTES = 32 << 10
"""A broker finds the room for a file of its log before it needs it, so it has to need one soon."""
_POLL_S = 0.05
_LIMIT_S = 60.0
_THAW_S = 1.0
_BROKER_DISTANCES = (HA_DISTANCE, METRICS_DISTANCE, -2)
_NEEDED_BY_CONSOLE = ("starlette", "uvicorn", "jinja2")
_EVERYBODY_HERE = "127.0.0.*"


_WEATHER = {
    Fault.CUT_REPLICATION: SILENT,
    Fault.FLAKY_REPLICATION: FLAKY,
    Fault.SLOW_REPLICATION: TRICKLE,
}


class NotInStep(MQError):
    """The replicas did not come together again in time."""


class Site:
    """A running cluster. Everything ends with the block."""

    def __init__(
        self,
        folder: Path,
        mode: Mode,
        fault: Fault,
        *,
        seed: int,
        victim: Victim,
        zookeeper: str = "",
        leader: LeaderHand | None = None,
    ) -> None:
        """``fault`` is the one that will strike: some need what has to be there from the start."""
        self.folder = folder
        self._mode = mode
        self._fault = fault
        self._seed = seed
        self._victim = victim
        self._zookeeper = zookeeper
        self._leader = leader
        self._planted = Planted(folder)
        self._running = AsyncExitStack()
        self._strangers: asyncio.Task[None] | None = None
        self._disks: dict[str, SmallDisk] = {}
        self._slow_disks: dict[str, SlowDisk] = {}
        self._forgetful_disks: dict[str, ForgetfulDisk] = {}
        self._clocks: dict[str, WallClock] = {}
        self._network = Network(seed)

    async def __aenter__(self) -> Self:
        async with self._running:
            await self._start()
            await self.wait_in_step()
            self._running = self._running.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._running.aclose()

    @property
    def name_server(self) -> str:
        return self._layout.name_server

    @property
    def credentials(self) -> Credentials:
        """As whom the brokers let clients in."""
        return self._planted.credentials

    @property
    def stores(self) -> dict[str, Path]:
        """Where each broker keeps its log."""
        return {name: self._layout.store(number) for number, name in enumerate(BROKERS)}

    async def strike(self) -> None:
        """Break it."""
        names = struck_by(self._fault, master=await self._master(), victim=self._victim)
        self._struck = [self._members[name] for name in names]
        match self._fault:
            case Fault.FREEZE_MASTER | Fault.FREEZE_SLAVE:
                self._struck[0].pause()
            case Fault.CUT_MASTER | Fault.CUT_SLAVE:
                self._network.cut(self._number_struck)
            case Fault.ONE_WAY_CUT:
                self._network.mute(self._number_struck)
            case Fault.CUT_REGISTRY:
                self._network.cut_registry()
            case Fault.CUT_REPLICATION | Fault.FLAKY_REPLICATION | Fault.SLOW_REPLICATION:
                self._network.relay_as(_WEATHER[self._fault])
            case Fault.HOSTILE_PEERS:
                self._strangers = asyncio.create_task(disturb(self._ports()))
            case Fault.FULL_DISK:
                self._disks[self._struck[0].name].fill()
            case Fault.SLOW_DISK:
                self._slow(self._struck[0])
            case Fault.CLOCK_JUMP:
                self._clocks[self._struck[0].name].set(_JUMP_S)
            case Fault.MEMORY_CAP:
                self._limit(memory.cap)
            case Fault.KILL_ZOOKEEPER_LEADER | Fault.FREEZE_ZOOKEEPER_LEADER:
                await asyncio.to_thread(self._strike_leader)
            case _:
                await self._end_struck()

    async def heal(self) -> None:
        """Mend it. What a fault has ended is started again."""
        match self._fault:
            case Fault.FREEZE_MASTER | Fault.FREEZE_SLAVE:
                self._struck[0].resume()
            case Fault.FULL_DISK:
                self._disks[self._struck[0].name].free()
            case Fault.SLOW_DISK:
                self._slow_disks[self._struck[0].name].free()
            case Fault.CLOCK_JUMP:
                self._clocks[self._struck[0].name].set(0)
            case Fault.MEMORY_CAP:
                self._limit(memory.uncap)
            case Fault.POWER_LOSS:
                for disk in self._forgetful_disks.values():
                    await asyncio.to_thread(disk.mount)
            case Fault.KILL_ZOOKEEPER_LEADER | Fault.FREEZE_ZOOKEEPER_LEADER:
                assert self._leader is not None
                await asyncio.to_thread(self._leader.mend)
            case _:
                pass
        if self._fault.needs_hosts:
            self._network.mend(self._number_struck)
        await self._send_strangers_away()
        self._network.clear()
        for member in self._struck:
            await self._revive(member)

    async def wait_in_step(self) -> None:
        """Wait until there is one master and its slave holds all that it holds. Raises NotInStep."""
        found = "nobody answered"
        try:
            async with asyncio.timeout(_LIMIT_S):
                while True:
                    states = await self._states()
                    if are_in_step(states):
                        return
                    found = "; ".join(described(state) for state in states)
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise NotInStep(f"the replicas are not in step after {_LIMIT_S:g} s: {found}") from None

    async def show(self) -> None:
        """Have all processes show what they show to anybody, for ``leaks``."""
        layout = self._layout
        has_console = CONSOLE in self._members
        brokers = range(len(BROKERS))
        await Showing(
            planted=self._planted,
            folder=self.folder / "shown",
            name_server=layout.name_server,
            controllers=self._controllers,
            brokers=[layout.address(number) for number in brokers],
            metrics=[layout.metrics(number) for number in brokers] + [layout.console_metrics] * has_console,
            console=layout.console if has_console else None,
        ).show()

    async def stop(self) -> None:
        """Stop all processes cleanly, so that their logs can be looked at."""
        for name in (*BROKERS, *(self._members.keys() - set(BROKERS))):
            await self._stop_member(self._members[name])

    def leaks(self) -> list[str]:
        """Each secret that came out, and where, once all has been shown and stopped."""
        return self._planted.leaks()

    async def _start(self) -> None:
        keep = self._running.enter_async_context
        self._running.push_async_callback(self._send_strangers_away)
        await self._network.begin(self._running, is_separate=self._fault.needs_hosts)
        self._layout = self._lay_out()
        await self._network.lead(self._running, self._layout)
        self._equip()
        # Strangers are to come as far as they can.
        self._planted.plant(trusted=_EVERYBODY_HERE if self._fault is Fault.HOSTILE_PEERS else "")
        self._wire = await keep(asking(Access(self.credentials)))
        self._members: dict[str, Member] = {}
        first, *others = plan_members(self._mode, self._layout)
        if all(importlib.util.find_spec(name) is not None for name in _NEEDED_BY_CONSOLE):
            await self._make_operator()
            others[-1] += (plan_console(self._layout),)
        for stage in (first, *others):
            members = [Member(plan, self.folder, within=self._within(plan.name)) for plan in stage]
            for member in members:
                self._members[member.name] = member
                self._running.push_async_callback(self._end, member)
            await asyncio.gather(*(member.start() for member in members))

    def _equip(self) -> None:
        """Give brokers what they can be struck by. Raises NotPossible."""
        for number, name in enumerate(BROKERS):
            if self._fault is Fault.FULL_DISK:
                self._disks[name] = self._running.enter_context(SmallDisk(self._layout.store(number)))
            if self._fault is Fault.SLOW_DISK:
                disk = SlowDisk(self.folder, f"{self._seed}-{name}")
                self._slow_disks[name] = self._running.enter_context(disk)
            if self._fault is Fault.POWER_LOSS:
                forgetful = ForgetfulDisk(self._layout.store(number))
                self._forgetful_disks[name] = self._running.enter_context(forgetful)
            if self._fault is Fault.CLOCK_JUMP:
                self._clocks[name] = WallClock(self.folder / f"{name}.clock")

    def _lay_out(self) -> Layout:
        hub = self._network.hub
        with contextlib.ExitStack() as held:
            namesrv_port = free_port(hub, (), held)
            return Layout(
                folder=self.folder,
                planted=self._planted,
                hub=hub,
                roads=self._network.roads(f"{hub}:{namesrv_port}"),
                namesrv_port=namesrv_port,
                controller_port=free_port(hub, (), held),
                broker_ports=(
                    free_port(LOOPBACK, _BROKER_DISTANCES, held),
                    free_port(LOOPBACK, _BROKER_DISTANCES, held),
                ),
                console_port=free_port(LOOPBACK, (), held),
                console_metrics_port=free_port(LOOPBACK, (), held),
                relay=_RELAY if hub == LOOPBACK else hub,
                zookeeper=self._zookeeper,
                segment_bytes=_TINY_BYTES if self._fault is Fault.FULL_DISK else SEGMENT_BYTES,
                is_flushed=self._fault in {Fault.SLOW_DISK, Fault.POWER_LOSS},
            )

    def _ports(self) -> list[str]:
        """Every address that is served."""
        layout = self._layout
        brokers = [
            f"{road.bound}:{port + distance}"
            for road, port in zip(layout.roads, layout.broker_ports, strict=True)
            for distance in (0, *_BROKER_DISTANCES)
        ]
        console = [layout.console, layout.console_metrics] if CONSOLE in self._members else []
        return [layout.name_server, *self._controllers, *brokers, *console]

    @property
    def _controllers(self) -> list[str]:
        return [f"{self._layout.hub}:{self._layout.controller_port}"] if self._mode.has_registry else []

    async def _send_strangers_away(self) -> None:
        if self._strangers is not None:
            self._strangers.cancel()
            # Had they ended by themselves, nobody would have been disturbed.
            with contextlib.suppress(asyncio.CancelledError):
                await self._strangers
            self._strangers = None

    def _within(self, name: str) -> tuple[str, ...]:
        if name in self._clocks:
            return self._clocks[name].within
        return self._network.within(BROKERS.index(name)) if name in BROKERS else ()

    @property
    def _number_struck(self) -> int:
        """Of the broker whose machine is cut off."""
        return BROKERS.index(self._struck[0].name)

    def _slow(self, member: Member) -> None:
        pids = {member.pid, member.serving_pid}
        self._slow_disks[member.name].slow(*(pid for pid in pids if pid is not None))

    def _limit(self, limit: Callable[[int], None]) -> None:
        for member in self._struck:
            # It may have ended for want of memory, or begun again.
            if (pid := member.serving_pid) is not None:
                with contextlib.suppress(OSError):
                    limit(pid)

    def _strike_leader(self) -> None:
        if self._leader is None:
            raise NotPossible("no hand is on the servers of ZooKeeper; `make chaos` has its own")
        if self._fault is Fault.KILL_ZOOKEEPER_LEADER:
            self._leader.kill()
        else:
            self._leader.freeze()

    async def _end_struck(self) -> None:
        """All at once as a crash would, or one after the other for a new start."""
        if self._fault is Fault.POWER_LOSS:
            await self._cut_power()
            return
        for member in self._struck:
            if self._fault is Fault.RESTART_ALL:
                await self._stop_member(member)
                await member.start()
                await self.wait_in_step()
            else:
                member.kill()

    async def _cut_power(self) -> None:
        await asyncio.gather(*(member.crash() for member in self._struck))
        for member in self._struck:
            await self._stop_member(member)
            await asyncio.to_thread(self._forgetful_disks[member.name].lose)

    async def _master(self) -> str:
        for number, name in enumerate(BROKERS):
            with contextlib.suppress(MQError):
                if (await ha_status(self._wire, self._layout.address(number))).is_master:
                    return name
        return BROKERS[0]

    async def _states(self) -> list[HARuntimeInfo | MQError]:
        asked = (ha_status(self._wire, self._layout.address(number)) for number in range(len(BROKERS)))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        unforeseen = [
            each for each in answers if isinstance(each, BaseException) and not isinstance(each, MQError)
        ]
        if unforeseen:
            raise unforeseen[0]
        return [each for each in answers if isinstance(each, HARuntimeInfo | MQError)]

    async def _revive(self, member: Member) -> None:
        """Start it again if it has ended, with the parent that may still stand in for it.

        One that was frozen or cut off may be ended when it is back.
        """
        if member.serving_pid is not None:
            await asyncio.sleep(_THAW_S)
        if member.serving_pid is None:
            await self._stop_member(member)
            await member.start()

    async def _stop_member(self, member: Member) -> None:
        """End it, and keep what it has printed."""
        await member.stop()
        with (self.folder / f"{member.name}.out").open("ab") as file:
            file.write(await member.said())

    async def _make_operator(self) -> None:
        words = (sys.executable, "-m", "tanist.cli", *plan_operator(self._layout))
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        await process.communicate()
        if process.returncode:
            raise NotPossible("the console's user can not be made")

    async def _end(self, member: Member) -> None:
        member.resume()
        member.kill()
        await member.stop()
