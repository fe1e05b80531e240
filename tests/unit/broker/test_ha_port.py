import socket

import pytest

from tanist.broker.ha_port import bind_ha_port, ha_address, ha_bind_address
from tanist.broker.settings import BrokerSettings
from tanist.errors import ConfigError
from tanist.ha.settings import HaAuthentication, HaCompatibility, HaSettings

OPEN = BrokerSettings(bind_address="0.0.0.0", broker_ip1="10.0.0.7")
SECRET = "correct horse battery staple"


@pytest.mark.behaviour("S1-32")
def test_the_port_for_slaves_is_10912_unless_it_is_named() -> None:
    assert ha_address(OPEN, HaSettings(ha_secret=SECRET)) == "10.0.0.7:10912"
    assert ha_address(OPEN, HaSettings(ha_secret=SECRET, ha_listen_port=10916)) == "10.0.0.7:10916"
    assert ha_address(BrokerSettings(listen_port=20911), HaSettings()) == "127.0.0.1:20912"


def test_slaves_may_be_told_another_address_than_clients() -> None:
    assert ha_address(OPEN, HaSettings(broker_ip2="192.168.0.7")) == "192.168.0.7:10912"
    assert ha_address(OPEN, HaSettings(broker_ip2="fd00::7")) == "[fd00::7]:10912"


@pytest.mark.parametrize(
    ("ha", "address"),
    [
        (HaSettings(), "127.0.0.1"),
        (HaSettings(ha_secret=SECRET), "0.0.0.0"),
        (HaSettings(ha_authentication=HaAuthentication.TLS), "0.0.0.0"),
        (HaSettings(ha_authentication=HaAuthentication.NONE), "0.0.0.0"),
        (HaSettings(ha_compatibility=HaCompatibility.CLASSIC), "0.0.0.0"),
        (HaSettings(ha_compatibility=HaCompatibility.AUTOSWITCH), "0.0.0.0"),
    ],
)
def test_without_a_proof_the_port_is_open_to_this_machine_alone(ha: HaSettings, address: str) -> None:
    assert ha_bind_address(OPEN, ha) == address


def test_slaves_are_told_the_address_at_which_the_port_is_open() -> None:
    assert ha_address(OPEN, HaSettings()) == "127.0.0.1:10912"


def test_loopback_is_of_the_same_kind_as_the_brokers_own_address() -> None:
    assert ha_bind_address(BrokerSettings(bind_address="::"), HaSettings()) == "::1"


def test_the_system_chooses_both_ports_or_none() -> None:
    with bind_ha_port(BrokerSettings(listen_port=0), HaSettings()) as bound:
        address, port = bound.getsockname()
    assert address == "127.0.0.1"
    assert port > 0


def test_a_port_that_is_taken_is_named_by_the_key_that_chose_it() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match="haListenPort"):
            bind_ha_port(BrokerSettings(), HaSettings(ha_listen_port=port))
        with pytest.raises(ConfigError, match="free port above it"):
            bind_ha_port(BrokerSettings(listen_port=port - 1), HaSettings())


def test_no_authentication_is_warned_about_at_every_start(caplog: pytest.LogCaptureFixture) -> None:
    open_to_all = HaSettings(ha_authentication=HaAuthentication.NONE)
    for _ in range(2):
        bind_ha_port(BrokerSettings(listen_port=0), open_to_all).close()
    assert len(caplog.records) == 2
    assert all("haAuthentication=none" in record.getMessage() for record in caplog.records)


def test_who_is_let_in_without_a_proof_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    classic = HaSettings(ha_compatibility=HaCompatibility.CLASSIC, ha_allowed_addresses="10.0.0.7")
    bind_ha_port(BrokerSettings(listen_port=0), classic).close()
    (record,) = caplog.records
    assert "haCompatibility=classic haAllowedAddresses=10.0.0.7" in record.getMessage()


def test_a_broker_for_others_without_a_secret_is_told_that_its_slaves_can_not_come(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bind_ha_port(BrokerSettings(listen_port=0, bind_address="0.0.0.0"), HaSettings()).close()
    assert "set haSecret" in caplog.text
    caplog.clear()
    bind_ha_port(BrokerSettings(listen_port=0), HaSettings()).close()
    assert not caplog.records
