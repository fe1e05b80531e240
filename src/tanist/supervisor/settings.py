"""What the supervisor needs of the broker's config file. The broker itself checks all keys, these too."""

import socket

import msgspec

from tanist.coord.open import SqlitePlace, parse_place
from tanist.model.host import host_and_port
from tanist.model.route import MASTER_ID


class SupervisorSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The keys of BrokerSettings that the parent process reads, with the same defaults."""

    enable_controller_mode: bool = False
    controller_addr: str = ""
    coordinator: str = ""
    coordinator_timeout_millis: int = 4_000
    slave_consume_checks: int = 3
    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = msgspec.field(default_factory=socket.gethostname)
    broker_id: int = MASTER_ID
    bind_address: str = "127.0.0.1"
    broker_ip1: str = msgspec.field(name="brokerIP1", default="127.0.0.1")
    listen_port: int = 10911
    broker_watchdog_mills: int = 1_000
    broker_stand_in_mills: int = 35_000

    @property
    def controllers(self) -> tuple[str, ...]:
        return tuple(part for each in self.controller_addr.split(";") if (part := each.strip()))

    @property
    def address(self) -> str:
        """What clients, and its group, know the broker by."""
        return host_and_port(self.broker_ip1, self.listen_port)

    @property
    def is_supervised(self) -> bool:
        """Whether a parent process has something to do for this broker.

        A registry in a file is the broker's alone, and what is ephemeral in it goes with that process.
        Raises ConfigError if ``coordinator`` names no registry.
        """
        if self.enable_controller_mode:
            return True
        return bool(self.coordinator) and not isinstance(parse_place(self.coordinator), SqlitePlace)

    @property
    def stands_in(self) -> bool:
        """Whether the parent takes the ports of a master that died; it does not know one that was chosen."""
        return not self.enable_controller_mode and bool(self.listen_port and self.broker_stand_in_mills)
