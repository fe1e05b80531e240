import pytest

from tanist.errors import ConfigError
from tanist.ha.settings import HaSettings


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"ha_master_address": "master"}, "host:port"),
        ({"ha_master_address": "master:0"}, "host:port"),
        ({"ha_master_address": "master:99999"}, "host:port"),
        ({"ha_housekeeping_interval": 5000}, "more than haSendHeartbeatInterval, 5000"),
        ({"ha_send_heartbeat_interval": 20_000}, "more than haSendHeartbeatInterval, 20000"),
        ({"ha_secret": "too short"}, "at least 16 characters"),
        ({"min_in_sync_replicas": 3}, "at most inSyncReplicas, 2"),
        ({"ha_allowed_addresses": "10.0.0.1;master"}, "addresses or networks"),
    ],
)
def test_what_can_not_work_is_refused_with_what_would(settings: dict[str, str], remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy):
        HaSettings(**settings)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("address", ["master:10912", "10.0.0.7:10912", "[fd00::7]:10912"])
def test_a_master_is_named_by_host_and_port(address: str) -> None:
    assert HaSettings(ha_master_address=address).ha_master_address == address
