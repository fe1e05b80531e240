import msgspec
import pytest

from tanist.broker import BrokerSettings
from tanist.errors import ConfigError
from tanist.supervisor import SupervisorSettings


def test_the_supervisor_reads_the_brokers_keys_with_the_brokers_defaults() -> None:
    ours, brokers = SupervisorSettings(), BrokerSettings()
    for field in msgspec.structs.fields(SupervisorSettings):
        assert getattr(ours, field.name) == getattr(brokers, field.name), field.name
    keys = {field.encode_name for field in msgspec.structs.fields(BrokerSettings)}
    assert {field.encode_name for field in msgspec.structs.fields(SupervisorSettings)} <= keys


def test_controllers_are_separated_by_semicolons() -> None:
    settings = SupervisorSettings(controller_addr="a:1; b:2;")
    assert settings.controllers == ("a:1", "b:2") == BrokerSettings(controller_addr="a:1; b:2;").controllers


@pytest.mark.parametrize(
    ("settings", "is_supervised"),
    [
        (SupervisorSettings(), False),
        (SupervisorSettings(enable_controller_mode=True), True),
        (SupervisorSettings(coordinator="zk://127.0.0.1:2181"), True),
        (SupervisorSettings(coordinator="/var/lib/tanist/registry.db"), False),
    ],
)
def test_a_broker_has_a_parent_if_others_have_to_hear_of_its_end(
    settings: SupervisorSettings, *, is_supervised: bool
) -> None:
    assert settings.is_supervised == is_supervised


def test_a_coordinator_that_names_no_registry_is_refused() -> None:
    with pytest.raises(ConfigError, match="coordinator='zk://:1'"):
        _ = SupervisorSettings(coordinator="zk://:1").is_supervised


def test_only_for_a_broker_with_a_fixed_role_and_port_somebody_stands_in() -> None:
    assert SupervisorSettings().stands_in
    assert not SupervisorSettings(enable_controller_mode=True).stands_in
    assert not SupervisorSettings(listen_port=0).stands_in
    assert not SupervisorSettings(broker_stand_in_mills=0).stands_in


def test_the_broker_is_known_to_both_by_the_same_address() -> None:
    assert SupervisorSettings(broker_ip1="::1").address == BrokerSettings(broker_ip1="::1").address
