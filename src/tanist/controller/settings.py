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

    def __post_init__(self) -> None:
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
