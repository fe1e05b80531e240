"""The name server's settings, under RocketMQ's names and with its defaults, but for the bind address."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from tanist.config import parse_settings, to_properties
from tanist.errors import ConfigError

UPDATABLE_KEYS = frozenset(
    {
        "deleteTopicWithBrokerRegistration",
        "enableAllTopicList",
        "enableTopicList",
        "needWaitForService",
        "notifyMinBrokerIdChanged",
        "orderMessageEnable",
        "returnOrderTopicConfigToBroker",
        "scanNotActiveBrokerInterval",
        "supportActingMaster",
        "waitSecondsForService",
    }
)
"""What may be changed over the wire. A list of what may be, not of what may not: whoever could choose
a path or an address from afar could make the process write any file (CVE-2023-33246, CVE-2023-37582)."""


class NameServerSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a name server is started with."""

    listen_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 9876
    """The port; 0 for one that the system chooses."""
    bind_address: str = "127.0.0.1"
    """Where it is open; RocketMQ opens it at all addresses."""
    kv_config_path: str = "~/namesrv/kvConfig.json"
    """The file of what operators have put under keys."""
    order_message_enable: bool = False
    """Whether routes of ordered topics carry their configuration."""
    return_order_topic_config_to_broker: bool = True
    """Whether brokers are told it when they register."""
    scan_not_active_broker_interval: Annotated[int, msgspec.Meta(ge=10, le=3_600_000)] = 5_000
    """How often brokers are looked for that fell silent, in milliseconds."""
    support_acting_master: bool = False
    """Whether a slave that may be read is shown as master of a group that has none."""
    notify_min_broker_id_changed: bool = False
    """Whether brokers are told when the least id of their group changes."""
    enable_all_topic_list: bool = True
    """Whether all topics may be listed."""
    enable_topic_list: bool = True
    """Whether topics of the system, of a cluster or of a unit may be listed."""
    need_wait_for_service: bool = False
    """Whether routes are refused for a while after the start."""
    wait_seconds_for_service: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 45
    """For how long, in seconds."""
    delete_topic_with_broker_registration: bool = False
    """Whether a topic goes that a broker no longer registers."""

    enable_controller_in_namesrv: bool = False
    """Whether a controller serves in the same process, with the settings of one but for ``listenPort``."""

    def __post_init__(self) -> None:
        for key, value in (("bindAddress", self.bind_address), ("kvConfigPath", self.kv_config_path)):
            if not value:
                raise ConfigError(key, value, "a value that is not empty")

    @property
    def kv_config_file(self) -> Path:
        return Path(self.kv_config_path).expanduser()


class LiveSettings:
    """The settings as they are now: some can be changed while the name server runs."""

    def __init__(self, settings: NameServerSettings) -> None:
        self.current = settings

    def update(self, changes: Mapping[str, str]) -> None:
        """Change all of these or, if one value is wrong (ConfigError), none. The keys must be updatable."""
        assert changes.keys() <= UPDATABLE_KEYS
        changed = to_properties(self.current) | dict(changes)
        self.current, _ = parse_settings(changed, NameServerSettings, source="an update over the wire")
