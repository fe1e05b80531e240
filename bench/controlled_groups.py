"""Two replicas under a controller, ours and Apache RocketMQ's, started and struck in the same way.

with TanistTrio(home) as group:
    master = group.master()
    master.crash()
    master.restart()
    group.wait_in_step()
"""

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.replica_groups import STORE, make_topic
from tanist.chaos.hosts import Host
from tanist.protocol.bodies.replication import ReplicaGroupView
from tests.support.controllers import ControllerView
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.controlled import start_controller, start_replica
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.tanist_group import ControllerProcess

BROKER = "broker-a"
TOPIC = "Bench"
_SECRET = "the secret of the benchmark"
_HERE = Host()
_LIMIT_S = 120.0


class Member(ABC):
    """One replica."""

    address: str
    host: Host

    @abstractmethod
    def crash(self) -> None:
        """Kill the broker's process."""

    @abstractmethod
    def freeze(self) -> None:
        """Stop all its processes, as if the machine stood still."""

    @abstractmethod
    def thaw(self) -> None: ...

    @abstractmethod
    def restart(self) -> None:
        """Start it again on the store that it had; it may still run, if it was not killed."""


class ControlledGroup(ABC):
    """A name server, a controller and two replicas in step. Everything ends with the block."""

    name: str
    name_server: str
    controller: str
    members: Sequence[Member]

    def __init__(
        self,
        home: Path,
        *,
        hub: str = _HERE.address,
        hosts: Sequence[Host] = (_HERE, _HERE),
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Brokers run on ``hosts``, all else at ``hub``; ``settings`` override defaults."""
        self._home = home
        self._hub = hub
        self._hosts = hosts
        self._settings: dict[str, Any] = {**STORE, **(settings or {})}
        self._running = ExitStack()

    def __enter__(self) -> Self:
        with self._running:
            self._start()
            self.view = self._running.enter_context(ControllerView(self.controller))
            self.wait_in_step()
            make_topic(
                self.name,
                TOPIC,
                master=self.master().address,
                replicas=[member.address for member in self.members],
            )
            self._running = self._running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @abstractmethod
    def _start(self) -> None:
        """Start all processes, and know where they are."""

    def wait_in_step(self) -> ReplicaGroupView:
        """Wait until all replicas are in the sync state set."""
        return self.view.wait_for_set(BROKER, size=len(self.members), timeout_s=_LIMIT_S)

    def master(self) -> Member:
        return self.member(self.wait_in_step().master_address)

    def member(self, address: str | None) -> Member:
        (found,) = (member for member in self.members if member.address == address)
        return found

    def other(self, member: Member) -> Member:
        (found,) = (one for one in self.members if one is not member)
        return found


class _TanistMember(Member):
    def __init__(self, process: BrokerProcess, host: Host) -> None:
        self._process = process
        self.address = process.address
        self.host = host

    def crash(self) -> None:
        self._process.kill()

    def freeze(self) -> None:
        self._process.pause()

    def thaw(self) -> None:
        self._process.resume()

    def restart(self) -> None:
        if not self._process.process.is_running:
            self._process.restart()


class TanistTrio(ControlledGroup):
    name = "Tanist"

    def _start(self) -> None:
        def keep(process: Any) -> Any:
            return self._running.enter_context(process)

        names = keep(NameServerProcess(self._home / "names", bindAddress=self._hub))
        controller = keep(ControllerProcess(self._home / "controller", bindAddress=self._hub))
        self.name_server, self.controller = names.address, controller.address
        members: list[Member] = []
        for number, host in enumerate(self._hosts, 1):
            broker = BrokerProcess(
                self._home / f"replica-{number}",
                self.name_server,
                host.within,
                name=BROKER,
                **self._settings,
                **_addresses(host),
                enableControllerMode="true",
                controllerAddr=self.controller,
                haSecret=_SECRET,
            )
            members.append(_TanistMember(keep(broker), host))
        self.members = members


class _RocketMQMember(Member):
    def __init__(
        self, rocketmq: RocketMQ, controller: str, host: Host, properties: Mapping[str, object]
    ) -> None:
        self._rocketmq = rocketmq
        self._controller = controller
        self._properties = {**properties, **_addresses(host), "brokerIP2": host.address}
        self.host = host
        self._broker = start_replica(rocketmq, controller, properties=self._properties, within=host.within)
        self.address = self._broker.address

    def crash(self) -> None:
        self._broker.kill()

    def freeze(self) -> None:
        os.kill(self._broker.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._broker.process.pid, signal.SIGCONT)

    def restart(self) -> None:
        if self._broker.process.is_running:
            return
        ports = {"listenPort": self._broker.port, "haListenPort": self._broker.ha_port}
        self._broker = start_replica(
            self._rocketmq,
            self._controller,
            store_dir=self._broker.store_dir,
            properties={**self._properties, **ports},
            within=self.host.within,
        )


class RocketMQTrio(ControlledGroup):
    name = "RocketMQ"

    def _start(self) -> None:
        rocketmq = self._running.enter_context(RocketMQ(self._home, flags=FULL_SPEED, host=self._hub))
        self.name_server = rocketmq.name_server
        self.controller = start_controller(rocketmq).address
        self.members = [
            _RocketMQMember(rocketmq, self.controller, host, self._settings) for host in self._hosts
        ]


def _addresses(host: Host) -> dict[str, object]:
    return {"bindAddress": host.address, "brokerIP1": host.address}
