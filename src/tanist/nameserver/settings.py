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
    bind_address: str = "127.0.0.1"
    kv_config_path: str = "~/namesrv/kvConfig.json"
    order_message_enable: bool = False
    return_order_topic_config_to_broker: bool = True
    scan_not_active_broker_interval: Annotated[int, msgspec.Meta(ge=10, le=3_600_000)] = 5_000
    support_acting_master: bool = False
    notify_min_broker_id_changed: bool = False
    enable_all_topic_list: bool = True
    enable_topic_list: bool = True
    need_wait_for_service: bool = False
    wait_seconds_for_service: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 45
    delete_topic_with_broker_registration: bool = False

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
