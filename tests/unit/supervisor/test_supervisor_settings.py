import msgspec

from tanist.broker import BrokerSettings
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
