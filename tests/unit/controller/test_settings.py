"""The controller's settings."""

import pytest

from tanist.config import parse_settings
from tanist.controller.settings import UPDATABLE_KEYS, ControllerSettings, LiveSettings
from tanist.errors import ConfigError


def parse(**raw: str) -> ControllerSettings:
    return parse_settings(raw, ControllerSettings, source="controller.conf")[0]


def test_an_empty_file_starts_a_controller_with_its_records_in_a_file() -> None:
    settings = ControllerSettings()
    assert settings.listen_port == 9878
    assert settings.address_at(9878) == "127.0.0.1:9878"
    assert settings.registry_url.endswith("/controller/registry.db")
    assert not settings.enable_elect_unclean_master


def test_the_registry_may_be_named() -> None:
    assert parse(coordinator="zk://a:1,b:2/t").registry_url == "zk://a:1,b:2/t"
    assert parse(controllerStorePath="/x").registry_url == "/x/registry.db"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("coordinator", "etcd://a:1"),
        ("coordinator", "zk://"),
        ("coordinator", "tanist://another:9878"),
        ("bindAddress", ""),
        ("controllerStorePath", ""),
        ("advertisedAddress", "host"),
        ("advertisedAddress", "host:0"),
        ("listenPort", "65536"),
        ("coordinatorTimeoutMillis", "499"),
    ],
)
def test_a_wrong_value_stops_the_start_and_is_named(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        parse(**{key: value})


def test_a_controller_on_every_address_says_where_it_is_reached() -> None:
    with pytest.raises(ConfigError, match=r"advertisedAddress.*bindAddress=0\.0\.0\.0"):
        parse(bindAddress="0.0.0.0")
    settings = parse(bindAddress="0.0.0.0", advertisedAddress="ctrl1:9878")
    assert settings.address_at(1) == "ctrl1:9878"
    assert parse(bindAddress="::1").address_at(5) == "[::1]:5"


def test_a_file_of_rocketmqs_says_where_a_controller_is() -> None:
    one = {"controllerDLegerPeers": "n0-127.0.0.1:9868", "controllerDLegerSelfId": "n0"}
    settings = parse(**one, controllerDLegerGroup="group1", listenPort="9878")
    assert (settings.listen_port, settings.raft_group) == (9868, "group1")
    assert settings.address_at(9868) == "127.0.0.1:9868"
    assert parse(**one, bindAddress="0.0.0.0").advertised_address == "127.0.0.1:9868"
    assert parse(**one, advertisedAddress="ctrl1:1").address_at(9868) == "ctrl1:1"
    several = {"controllerDLegerPeers": "n0-a:1; n1-b:2;", "controllerDLegerSelfId": "n1"}
    assert parse(**several, coordinator="zk://z:1/t").address_at(2) == "b:2"


@pytest.mark.parametrize(
    ("peers", "own", "told"),
    [
        ("n0-a:1;n1-b:2", "n0", r"controllerDLegerPeers='n0-a:1;n1-b:2' .*use one peer, or .* coordinator="),
        ("n0-a:1", "n1", "controllerDLegerSelfId='n1' is not allowed; use one of n0"),
        ("n0-a:1", "", "controllerDLegerSelfId='' is not allowed; use one of n0"),
        ("a:1", "n0", "controllerDLegerPeers='a:1' is not allowed; use n0-host:port"),
        ("n0-a:0", "n0", "controllerDLegerPeers='n0-a:0' is not allowed; use n0-host:port"),
    ],
)
def test_peers_among_which_this_one_has_no_place_stop_the_start(peers: str, own: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse(controllerDLegerPeers=peers, controllerDLegerSelfId=own)


def test_only_what_is_named_can_be_changed_while_it_runs() -> None:
    live = LiveSettings(parse(configBlackList="configBlackList; enableElectUncleanMaster"))
    assert live.updatable_keys == {"notifyBrokerRoleChanged"}
    live = LiveSettings(ControllerSettings())
    assert live.updatable_keys == UPDATABLE_KEYS
    live.update({"enableElectUncleanMaster": "true"})
    assert live.current.enable_elect_unclean_master
    with pytest.raises(ConfigError):
        live.update({"notifyBrokerRoleChanged": "perhaps", "enableElectUncleanMaster": "false"})
    assert live.current.enable_elect_unclean_master
