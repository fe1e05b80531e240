"""The settings of a name server, and which of them can be changed from afar."""

from pathlib import Path

import msgspec
import pytest

from tanist.config import parse_settings
from tanist.errors import ConfigError
from tanist.nameserver.settings import UPDATABLE_KEYS, LiveSettings, NameServerSettings

FIXED_KEYS = {"listenPort", "bindAddress", "kvConfigPath", "enableControllerInNamesrv"}


def test_rocketmqs_keys_are_read() -> None:
    settings, unknown = parse_settings(
        {"listenPort": "9999", "orderMessageEnable": "true", "clusterTest": "true"},
        NameServerSettings,
        source="test",
    )
    assert (settings.listen_port, settings.order_message_enable) == (9999, True)
    assert unknown == {"clusterTest"}


def test_it_listens_on_the_loopback_address_unless_told_otherwise() -> None:
    assert NameServerSettings().bind_address == "127.0.0.1"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listenPort", "65536"),
        ("listenPort", "x"),
        ("bindAddress", ""),
        ("kvConfigPath", ""),
        ("scanNotActiveBrokerInterval", "0"),
        ("enableTopicList", "yes"),
    ],
)
def test_a_wrong_value_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_settings({key: value}, NameServerSettings, source="test")
    assert refused.value.key == key


def test_the_home_folder_is_found() -> None:
    assert NameServerSettings().kv_config_file == Path.home() / "namesrv" / "kvConfig.json"


def test_every_setting_is_either_updatable_or_fixed() -> None:
    keys = {field.encode_name for field in msgspec.structs.fields(NameServerSettings)}
    assert keys == UPDATABLE_KEYS | FIXED_KEYS


def test_an_update_changes_what_it_names() -> None:
    live = LiveSettings(NameServerSettings(listen_port=1234))
    live.update({"supportActingMaster": "true", "waitSecondsForService": "7"})
    assert live.current == NameServerSettings(
        listen_port=1234, support_acting_master=True, wait_seconds_for_service=7
    )


def test_an_update_with_one_wrong_value_changes_nothing() -> None:
    live = LiveSettings(NameServerSettings())
    with pytest.raises(ConfigError):
        live.update({"supportActingMaster": "true", "waitSecondsForService": "soon"})
    assert live.current == NameServerSettings()
