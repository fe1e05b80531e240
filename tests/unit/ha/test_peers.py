import pytest

from tanist.ha.peers import Peers
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaAuthentication, HaCompatibility, HaSettings

_HELLO, _REPORT = 0xD4, 0x00
_SECRET = "a secret that is long enough"


def _peers(*, secret: str = "", allowed: str = "10.0.0.0/24;fd00::7", counted: str = "10.0.0.7") -> Peers:
    return Peers.of(
        HaSettings(
            ha_secret=secret,
            ha_compatibility=HaCompatibility.CLASSIC,
            ha_allowed_addresses=allowed,
            ha_counted_addresses=counted,
        )
    )


@pytest.mark.parametrize("host", ["10.0.0.1", "10.0.0.255", "::ffff:10.0.0.1", "fd00::7"])
def test_a_slave_of_rocketmq_may_come_from_the_addresses_that_are_allowed(host: str) -> None:
    assert _peers().dialect(_REPORT, host) is Dialect.CLASSIC


@pytest.mark.parametrize("host", ["10.0.1.1", "127.0.0.1", "fd00::8", "?", ""])
@pytest.mark.parametrize("first_byte", [_REPORT, 0x39, 0xFF])
def test_from_elsewhere_nothing_but_a_hello_is_listened_to(host: str, first_byte: int) -> None:
    refusal = _peers().dialect(first_byte, host)
    assert isinstance(refusal, str)
    assert "haAllowedAddresses" in refusal


def test_without_haCompatibility_no_address_is_allowed() -> None:  # noqa: N802  It is the name of a key.
    peers = Peers.of(HaSettings(ha_allowed_addresses="10.0.0.0/24"))
    assert not peers.may_be_rocketmq("10.0.0.1")
    assert isinstance(peers.dialect(_REPORT, "10.0.0.1"), str)


def test_with_a_secret_a_hello_may_come_from_everywhere() -> None:
    assert _peers(secret=_SECRET).dialect(_HELLO, "192.0.2.1") is Dialect.TANIST


@pytest.mark.parametrize(
    ("host", "is_let_in"),
    [("127.0.0.1", True), ("::1", True), ("10.0.0.1", True), ("192.0.2.1", False), ("?", False)],
)
def test_without_a_secret_a_hello_may_come_from_this_machine_and_the_allowed_ones(
    host: str, is_let_in: bool
) -> None:
    assert (_peers().dialect(_HELLO, host) is Dialect.TANIST) == is_let_in


def test_where_the_config_asks_for_no_proof_a_hello_may_come_from_everywhere() -> None:
    peers = Peers.of(HaSettings(ha_authentication=HaAuthentication.NONE))
    assert peers.dialect(_HELLO, "192.0.2.1") is Dialect.TANIST


def test_a_slave_of_rocketmq_counts_for_double_write_only_if_its_address_is_listed() -> None:
    peers = _peers()
    assert peers.counts(Dialect.CLASSIC, "10.0.0.7")
    assert not peers.counts(Dialect.CLASSIC, "10.0.0.8")
    assert peers.counts(Dialect.TANIST, "192.0.2.1")


def test_with_autoswitch_the_allowed_addresses_speak_that_dialect_and_a_hello_is_tanists() -> None:
    peers = Peers.of(
        HaSettings(ha_compatibility=HaCompatibility.AUTOSWITCH, ha_allowed_addresses="10.0.0.0/24")
    )
    assert peers.dialect(0x00, "10.0.0.1") is Dialect.AUTOSWITCH
    assert peers.dialect(_HELLO, "10.0.0.1") is Dialect.TANIST
    assert isinstance(peers.dialect(0x00, "10.0.1.1"), str)
    assert not peers.counts(Dialect.AUTOSWITCH, "10.0.0.1")
