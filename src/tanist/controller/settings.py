"""The controller's settings, under RocketMQ's names where it has them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from tanist.config import parse_settings, to_properties
from tanist.coord.open import KEY, RemotePlace, parse_place
from tanist.errors import ConfigError
from tanist.model.host import is_host_and_port

UPDATABLE_KEYS = frozenset({"enableElectUncleanMaster", "notifyBrokerRoleChanged"})
"""What may be changed over the wire, unless ``configBlackList`` names it. A list of what may be, not of what
may not, for the reasons that the name server has."""

# They are refused as addresses to be reached at.
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a controller is started with."""

    listen_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 9878
    """The port; 0 for one that the system chooses."""
    bind_address: str = "127.0.0.1"
    """Where it is open."""
    advertised_address: str = ""
    """``host:port`` under which brokers and other controllers reach this one; empty: where it listens."""
    coordinator: str = ""
    """Where agreement is kept: ``zk://host:port,host:port/path``; empty: a file under controllerStorePath."""
    coordinator_timeout_millis: Annotated[int, msgspec.Meta(ge=500, le=60_000)] = 4_000
    """How long a leader that fell silent is waited for before another controller leads."""
    controller_store_path: str = "~/controller"
    """The folder of the registry, unless ``coordinator`` names another one."""
    enable_elect_unclean_master: bool = False
    """Whether a replica that is not in step may become master, and messages be lost."""
    notify_broker_role_changed: bool = True
    """Whether brokers are told at once that the master is another."""
    config_black_list: str = "configBlackList;configStorePath"
    """Keys that nobody may change over the wire, separated by semicolons."""
    raft_group: str = msgspec.field(name="controllerDLegerGroup", default="tanist")
    """What ``mqadmin getControllerMetaData`` shows as the group of the controllers."""
    raft_peers: str = msgspec.field(name="controllerDLegerPeers", default="")
    """All controllers as files of RocketMQ's name them, ``n0-host:port;n1-host:port``. Several need a
    ``coordinator`` too, in which they agree."""
    raft_self_id: str = msgspec.field(name="controllerDLegerSelfId", default="")
    """Which of these this one is: it listens on that port, whatever ``listenPort`` says."""

    def __post_init__(self) -> None:
        if self.raft_peers:
            self._take_raft_place()
        for key, value in (
            ("bindAddress", self.bind_address),
            ("controllerStorePath", self.controller_store_path),
        ):
            if not value:
                raise ConfigError(key, value, "a value that is not empty")
        if isinstance(parse_place(self.registry_url), RemotePlace):
            raise ConfigError(
                KEY, self.coordinator, "zk://host:port, or nothing: it is brokers that use a controller's"
            )
        if not self.advertised_address and self.bind_address in _WILDCARDS:
            found = f"host:port at which brokers reach this controller, as bindAddress={self.bind_address}"
            raise ConfigError("advertisedAddress", self.advertised_address, found)
        if self.advertised_address and not is_host_and_port(self.advertised_address):
            raise ConfigError("advertisedAddress", self.advertised_address, "host:port")

    def _take_raft_place(self) -> None:
        """Be where RocketMQ's keys say."""
        key = "controllerDLegerPeers"
        named = (peer.strip().partition("-") for peer in self.raft_peers.split(";") if peer.strip())
        places = {name: address for name, _, address in named}
        if not all(is_host_and_port(address) for address in places.values()):
            raise ConfigError(key, self.raft_peers, "n0-host:port, several separated by semicolons")
        if self.raft_self_id not in places:
            raise ConfigError("controllerDLegerSelfId", self.raft_self_id, f"one of {', '.join(places)}")
        if len(places) > 1 and not self.coordinator:
            allowed = "one peer, or with several coordinator=zk://host:port, in which they agree"
            raise ConfigError(key, self.raft_peers, allowed)
        own = places[self.raft_self_id]
        msgspec.structs.force_setattr(self, "listen_port", int(own.rpartition(":")[2]))
        if not self.advertised_address:
            msgspec.structs.force_setattr(self, "advertised_address", own)

    @property
    def registry_url(self) -> str:
        """Which registry to open."""
        return self.coordinator or str(Path(self.controller_store_path).expanduser() / "registry.db")

    @property
    def black_list(self) -> frozenset[str]:
        return frozenset(key.strip() for key in self.config_black_list.split(";"))

    def address_at(self, port: int) -> str:
        """Where this controller is reached if it listens on this port."""
        if self.advertised_address:
            return self.advertised_address
        host = self.bind_address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class LiveSettings:
    """The settings as they are now: some can be changed while the controller runs."""

    def __init__(self, settings: ControllerSettings) -> None:
        self.current = settings

    @property
    def updatable_keys(self) -> frozenset[str]:
        return UPDATABLE_KEYS - self.current.black_list

    def update(self, changes: Mapping[str, str]) -> None:
        """Change all of these or, if one value is wrong (ConfigError), none. The keys must be updatable."""
        assert changes.keys() <= self.updatable_keys
        changed = to_properties(self.current) | dict(changes)
        self.current, _ = parse_settings(changed, ControllerSettings, source="an update over the wire")
