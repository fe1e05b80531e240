import pytest

from tanist.config import parse_settings
from tanist.errors import ConfigError
from tanist.ha.settings import HaSettings


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("haMasterAddress", "master", "host:port"),
        ("haMasterAddress", "master:0", "host:port"),
        ("haMasterAddress", "master:99999", "host:port"),
        ("haHousekeepingInterval", "5000", "more than haSendHeartbeatInterval, 5000"),
        ("haSendHeartbeatInterval", "20000", "more than haSendHeartbeatInterval, 20000"),
        ("haSecret", "too short", "at least 16 characters"),
        ("minInSyncReplicas", "3", "at most inSyncReplicas, 2"),
        ("haAllowedAddresses", "10.0.0.1;master", "addresses or networks"),
    ],
)
def test_what_can_not_work_is_refused_with_what_would(key: str, value: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy):
        parse_settings({key: value}, HaSettings)


@pytest.mark.parametrize("address", ["master:10912", "10.0.0.7:10912", "[fd00::7]:10912"])
def test_a_master_is_named_by_host_and_port(address: str) -> None:
    settings, _ = parse_settings({"haMasterAddress": address}, HaSettings)
    assert settings.ha_master_address == address
