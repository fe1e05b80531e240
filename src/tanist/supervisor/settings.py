"""What the supervisor needs of the broker's config file. The broker itself checks all keys, these too."""

import socket

import msgspec


class SupervisorSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The keys of BrokerSettings that the parent process reads, with the same defaults."""

    enable_controller_mode: bool = False
    controller_addr: str = ""
    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = msgspec.field(default_factory=socket.gethostname)
    broker_watchdog_mills: int = 1_000

    @property
    def controllers(self) -> tuple[str, ...]:
        return tuple(part for each in self.controller_addr.split(";") if (part := each.strip()))
