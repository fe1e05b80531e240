"""The processes of one run, and the hand that strikes them."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.admin.asking import asking
from tanist.admin.replication import ha_status
from tanist.chaos.faults import Fault
from tanist.chaos.hostile import disturb
from tanist.chaos.hosts import Host, Switch
from tanist.chaos.modes import Layout, Mode, plan_members
from tanist.chaos.proxy import FAIR, FLAKY, SILENT, Proxy
from tanist.errors import MQError
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.up.member import Member
from tanist.up.plan import BROKERS, CONTROLLER

_LOOPBACK = "127.0.0.1"
_POLL_S = 0.05
_LIMIT_S = 60.0
_THAW_S = 1.0
_HA_DISTANCE = 1
_BROKER_DISTANCES = (_HA_DISTANCE, -2)
_PORTS = range(5_000, 12_000)


class NotInStep(MQError):
    """The replicas did not come together again in time."""


class Site:
    """A running cluster. Everything ends with the block."""

    def __init__(
        self, folder: Path, mode: Mode, *, seed: int, has_hosts: bool = False, zookeeper: str = ""
    ) -> None:
        self.folder = folder
        self._mode = mode
        self._seed = seed
        self._has_hosts = has_hosts
        self._zookeeper = zookeeper
        self._running = AsyncExitStack()
        self._strangers: asyncio.Task[None] | None = None

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
    def stores(self) -> dict[str, Path]:
        """Where each broker keeps its log."""
        return {name: self._layout.store(number) for number, name in enumerate(BROKERS)}

    async def strike(self, fault: Fault) -> None:
        """Break it."""
        master = await self._master()
        self._struck = await self._whom(fault, master)
        match fault:
            case Fault.KILL_MASTER | Fault.KILL_SLAVE | Fault.KILL_BOTH | Fault.KILL_REGISTRY:
                for member in self._struck:
                    member.kill()
            case Fault.FREEZE_MASTER | Fault.FREEZE_SLAVE:
                self._struck[0].pause()
            case Fault.CUT_MASTER | Fault.CUT_SLAVE:
                self._host_of(self._struck[0]).cut()
            case Fault.CUT_REGISTRY:
                self._registry.become(SILENT)
            case Fault.CUT_REPLICATION:
                self._replication.become(SILENT)
            case Fault.FLAKY_REPLICATION:
                self._replication.become(FLAKY)
            case Fault.HOSTILE_PEERS:
                self._strangers = asyncio.create_task(disturb(self._ports()))
            case Fault.RESTART_ALL:
                for member in self._struck:
                    await member.stop()
                    await member.start()
                    await self.wait_in_step()

    async def heal(self, fault: Fault) -> None:
        """Mend it. What a fault has ended is started again."""
        if fault in {Fault.FREEZE_MASTER, Fault.FREEZE_SLAVE}:
            self._struck[0].resume()
        if fault.needs_hosts:
            self._host_of(self._struck[0]).mend()
        await self._send_strangers_away()
        self._registry.become(FAIR)
        self._replication.become(FAIR)
        for member in self._struck:
            await self._revive(member)

    async def wait_in_step(self) -> None:
        """Wait until there is one master and its slave holds all that it holds. Raises NotInStep."""
        found = "nobody answered"
        try:
            async with asyncio.timeout(_LIMIT_S):
                while True:
                    states = await self._states()
                    if _are_in_step(states):
                        return
                    found = "; ".join(_described(state) for state in states)
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise NotInStep(f"the replicas are not in step after {_LIMIT_S:g} s: {found}") from None

    async def stop(self) -> None:
        """Stop the brokers cleanly, so that their logs can be looked at."""
        await asyncio.gather(*(self._members[name].stop() for name in BROKERS))

    async def _start(self) -> None:
        keep = self._running.enter_async_context
        self._running.push_async_callback(self._send_strangers_away)
        self._hosts = (Host(), Host())
        hub = _LOOPBACK
        if self._has_hosts:
            switch = self._running.enter_context(Switch(self._seed % 200, hosts=len(BROKERS)))
            self._hosts, hub = (switch.hosts[0], switch.hosts[1]), switch.address
        self._registry = await keep(Proxy(hub, seed=self._seed))
        self._replication = await keep(Proxy(hub, seed=self._seed + 1))
        self._layout = self._lay_out(hub)
        self._registry.target = f"{hub}:{self._layout.controller_port}"
        self._replication.target = f"{self._layout.hosts[0]}:{self._layout.broker_ports[0] + _HA_DISTANCE}"
        self._wire = await keep(asking())
        self._members: dict[str, Member] = {}
        for stage in plan_members(self._mode, self._layout):
            members = [Member(plan, self.folder, within=self._within(plan.name)) for plan in stage]
            for member in members:
                self._members[member.name] = member
                self._running.push_async_callback(self._end, member)
            await asyncio.gather(*(member.start() for member in members))

    def _lay_out(self, hub: str) -> Layout:
        with contextlib.ExitStack() as held:
            return Layout(
                folder=self.folder,
                secret=secrets.token_urlsafe(16),
                hub=hub,
                hosts=(self._hosts[0].address, self._hosts[1].address),
                namesrv_port=_free_ports(hub, (), held),
                controller_port=_free_ports(hub, (), held),
                broker_ports=(
                    _free_ports(_LOOPBACK, _BROKER_DISTANCES, held),
                    _free_ports(_LOOPBACK, _BROKER_DISTANCES, held),
                ),
                registry=self._registry.address,
                replication=self._replication.address,
                zookeeper=self._zookeeper,
            )

    def _ports(self) -> list[str]:
        """Every address that is served."""
        layout = self._layout
        controllers = [f"{layout.hub}:{layout.controller_port}"] if self._mode.has_registry else []
        brokers = [
            f"{host}:{port + distance}"
            for host, port in zip(layout.hosts, layout.broker_ports, strict=True)
            for distance in (0, *_BROKER_DISTANCES)
        ]
        return [layout.name_server, *controllers, *brokers]

    async def _send_strangers_away(self) -> None:
        if self._strangers is not None:
            self._strangers.cancel()
            # Had they ended by themselves, nobody would have been disturbed.
            with contextlib.suppress(asyncio.CancelledError):
                await self._strangers
            self._strangers = None

    def _within(self, name: str) -> tuple[str, ...]:
        return self._hosts[BROKERS.index(name)].within if name in BROKERS else ()

    def _host_of(self, member: Member) -> Host:
        return self._hosts[BROKERS.index(member.name)]

    async def _whom(self, fault: Fault, master: str) -> list[Member]:
        """The members that a fault strikes, the slave first."""
        slave = next(name for name in BROKERS if name != master)
        match fault:
            case Fault.KILL_MASTER | Fault.FREEZE_MASTER | Fault.CUT_MASTER:
                names = [master]
            case Fault.KILL_SLAVE | Fault.FREEZE_SLAVE | Fault.CUT_SLAVE:
                names = [slave]
            case Fault.KILL_BOTH | Fault.RESTART_ALL:
                names = [slave, master]
            case Fault.KILL_REGISTRY:
                names = [CONTROLLER]
            case _:
                names = []
        return [self._members[name] for name in names]

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
            await member.stop()
            await member.start()

    async def _end(self, member: Member) -> None:
        member.resume()
        member.kill()
        await member.stop()


def _are_in_step(states: list[HARuntimeInfo | MQError]) -> bool:
    known = [state for state in states if isinstance(state, HARuntimeInfo)]
    masters = [state for state in known if state.is_master]
    if len(known) != len(BROKERS) or len(masters) != 1:
        return False
    (master,) = masters
    slave = next(state for state in known if not state.is_master)
    is_counted = master.controlled is None or len(master.controlled.sync_state_set) == len(BROKERS)
    return is_counted and bool(master.slaves) and slave.client.log_end == master.log_end


def _described(state: HARuntimeInfo | MQError) -> str:
    if isinstance(state, MQError):
        return str(state)
    role = "master" if state.is_master else "slave"
    return f"{role} log_end={state.log_end or state.client.log_end} {state.client.reason or ''}".strip()


def _free_ports(host: str, distances: Sequence[int], held: contextlib.ExitStack) -> int:
    """A port that is free, as are those at these distances from it, which its process takes too."""
    while True:
        # Below those that outgoing connections get: a broker that was down has to get its own again.
        port = secrets.choice(_PORTS)
        try:
            for distance in (0, *distances):
                # All are held until the last is chosen, so that they differ.
                held.enter_context(socket.create_server((host, port + distance)))
        except OSError:
            continue
        return port
