"""A master and a slave with fixed roles, ours and Apache RocketMQ's, struck and mended in the same way.

with ActingPair(home) as pair:
    pair.kill_master()
    pair.restart_master()
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.replica_groups import STORE, make_topic, wait_until
from tests.support.fixed_pair import SQLITE, FixedPair, is_in_step
from tests.support.rocketmq.cluster import Broker, RocketMQ

TOPIC = "Bench"
CHECKS = 3
"""How many times in a row, a second apart, our slave finds its master gone before it is read."""
_HEAP = ("-Xms512m", "-Xmx512m", "-XX:+UseG1GC")

CLASSIC: Mapping[str, object] = {"inSyncReplicas": 2}
"""Defaults, but that a SYNC_MASTER waits for its slave, which it does only if it is told to."""
ACTING: Mapping[str, object] = {
    "enableSlaveActingMaster": "true",
    "slaveReadEnable": "true",
    "totalReplicas": 2,
    "inSyncReplicas": 2,
    "minInSyncReplicas": 1,
    "enableAutoInSyncReplicas": "true",
    "brokerHeartbeatInterval": 1_000,
    "brokerNotActiveTimeoutMillis": 5_000,
    "sendHeartbeatTimeoutMillis": 1_000,
}
"""What RocketMQ's own example for this mode sets (``distribution/conf/container``)."""


class Pair(ABC):
    """A name server, a master and its slave in step, which both know the topic. All ends with the block."""

    name: str
    name_server: str
    master: str
    slave: str

    def __init__(self, home: Path) -> None:
        self._home = home
        self._running = ExitStack()

    def __enter__(self) -> Self:
        with self._running:
            self._start()
            make_topic(self.name, TOPIC, master=self.master, replicas=(self.master, self.slave))
            self._running = self._running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @abstractmethod
    def _start(self) -> None:
        """Start all processes, and know where they are."""

    @abstractmethod
    def kill_master(self) -> None: ...

    @abstractmethod
    def restart_master(self) -> None:
        """Start it again, and wait until it serves clients."""

    def wait_in_step(self) -> None:
        """Wait until the slave has all that the master has."""
        wait_until(lambda: is_in_step(self.master), what=f"the slave of {self.name} is in step")


class TanistPair(Pair):
    """Ours, with slave consumption."""

    name = "Tanist"

    def __init__(self, home: Path, *, coordinator: str = SQLITE) -> None:
        super().__init__(home)
        self._coordinator = coordinator

    def _start(self) -> None:
        self._pair = self._running.enter_context(
            FixedPair(self._home, coordinator=self._coordinator, slaveConsumeChecks=CHECKS, **STORE)
        )
        self.name_server = self._pair.names.address
        self.master, self.slave = self._pair.master.address, self._pair.slave.address
        self._pair.wait_for(self._pair.master, "FULL")

    def kill_master(self) -> None:
        self._pair.kill_master()

    def restart_master(self) -> None:
        self._pair.restart_master()
        self._pair.wait_for(self._pair.master, "FULL")


class _RocketMQPair(Pair):
    """Apache RocketMQ's, with these settings."""

    _settings: Mapping[str, object]
    _name_server_settings: Mapping[str, object]

    def _start(self) -> None:
        self._rocketmq = self._running.enter_context(
            RocketMQ(self._home, flags=_HEAP, name_server_properties=self._name_server_settings)
        )
        self.name_server = self._rocketmq.name_server
        self._master = self._start_broker(brokerId=0, brokerRole="SYNC_MASTER")
        self.master = self._master.address
        self.slave = self._start_broker(brokerId=1, brokerRole="SLAVE").address
        self.wait_in_step()

    def _start_broker(self, store: Path | None = None, **given: object) -> Broker:
        # A master that comes back to a slave that acted for it wants the slave's timers too.
        properties = {**STORE, "timerWheelEnable": "true", **self._settings, **given}
        return self._rocketmq.start_broker(store_dir=store, properties=properties)

    def kill_master(self) -> None:
        self._master.kill()

    def restart_master(self) -> None:
        self._master = self._start_broker(
            self._master.store_dir,
            brokerId=0,
            brokerRole="SYNC_MASTER",
            listenPort=self._master.port,
            haListenPort=self._master.ha_port,
        )


class ClassicPair(_RocketMQPair):
    """A master that is gone is waited for."""

    name = "classic"
    _settings = CLASSIC
    _name_server_settings: Mapping[str, object] = {}


class ActingPair(_RocketMQPair):
    """The slave acts as the master for consumers, under its id and for reading only."""

    name = "acting master"
    _settings = ACTING
    _name_server_settings: Mapping[str, object] = {"supportActingMaster": "true"}
