"""Who comes to an HA port that asks for certificates is counted, bounded and shown like on any other.

What strangers say there is never decrypted: they have no certificate. The whole of the port's time for a peer
and its places begin with the connection, and not with what TLS makes of it.
"""

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tanist.ha.acceptor import MAX_UNPROVEN
from tanist.ha.tls_entrance import MAX_HANDSHAKE_BYTES
from tests.support.attacked import wait_until
from tests.support.attacked_pair import PATIENCE_S, assert_in_vain
from tests.support.ha_attacks import ATTACKS, Attack
from tests.support.ha_pair import Pair, make_log, running_pair
from tests.support.intruder import Intruder
from tests.support.tls import HA_MASTER, certificate, ha_slave, key

pytestmark = pytest.mark.takes(25)

_SLOW: Final = next(attack for attack in ATTACKS if attack.name == "one byte a second")
_QUICK: Final = Attack(
    "all others",
    lambda ground: [call for attack in ATTACKS if attack is not _SLOW for call in attack.calls(ground)],
    pause_s=0.01,
)
"""At once, as each is given three seconds. The recorded session is one of a good slave, encrypted."""
_MAX_HEARD_BYTES: Final = 8 << 10
"""The master's certificate, and what belongs to it."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("tls")
    make_log(folder / "master")
    with running_pair(HA_MASTER, ha_slave("client"), store=folder / "master") as pair:
        yield pair


@pytest.mark.parametrize("attack", [_QUICK, _SLOW], ids=lambda attack: attack.name)
def test_an_attack_gets_no_byte_of_the_log_and_changes_nothing(pair: Pair, attack: Attack) -> None:
    assert_in_vain(pair, attack, max_heard_bytes=_MAX_HEARD_BYTES)


def test_who_fails_at_tls_is_shown_with_his_address_and_what_he_began_with(pair: Pair) -> None:
    with Intruder(pair.master.ha_address) as intruder:
        intruder.connect().sendall(b"999999999\r\n")
        intruder.listen(PATIENCE_S)
        newest = pair.master.status().refused[-1]
        assert {newest.addr} == intruder.addresses
    assert newest.reason.startswith("TLS handshake failed: ")
    assert newest.received == b"999999999\r\n".hex()


def test_a_handshake_that_does_not_end_is_ended_after_so_many_bytes(pair: Pair) -> None:
    # One record that claims to be the longest there is follows the other, and none of them is whole.
    endless = b"\x16\x03\x01\x40\x00" + b"\x01\x01\xff\xfc" + bytes(MAX_HANDSHAKE_BYTES)
    with Intruder(pair.master.ha_address) as intruder:
        intruder.connect().sendall(endless)
        assert intruder.listen(PATIENCE_S) < 2
        newest = pair.master.status().refused[-1]
    assert newest.reason == f"TLS handshake failed: more than {MAX_HANDSHAKE_BYTES} bytes"


def test_two_hundred_silent_connections_are_counted_and_keep_no_slave_out(pair: Pair) -> None:
    before = pair.master.status()
    with Intruder(pair.master.ha_address) as intruder:
        for _ in range(200):
            intruder.connect()
        pair.cable.cut()
        wait_until(lambda: not pair.master.status().links)
        crowd = f"too slow to prove itself: {MAX_UNPROVEN} others are about to prove themselves"
        wait_until(lambda: pair.master.status().refused[-1].reason == crowd)
        pair.cable.mend()
        pair.master.wait_in_step()
        intruder.listen(PATIENCE_S)
        assert (intruder.open_count, intruder.heard) == (0, b"")
    after = pair.master.status()
    assert after.refused_count == before.refused_count + 200
    assert {peer.addr for peer in after.refused} <= intruder.addresses
    assert after.refused[-1].reason == "too slow to prove itself: its TLS handshake is not over"


def test_the_handshake_is_part_of_the_time_to_prove_oneself(pair: Pair) -> None:
    host, _, port = pair.master.ha_address.rpartition(":")
    began_s = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=2.0) as plain:
        with pytest.raises(TimeoutError):
            plain.recv(1)
        plain.settimeout(PATIENCE_S)
        with _shake_hands(plain) as connection:
            assert connection.recv(1) == b""
    assert time.monotonic() - began_s < 4.5
    assert pair.master.status().refused[-1].reason == "too slow to prove itself: it said nothing"


def _shake_hands(plain: socket.socket) -> ssl.SSLSocket:
    """As a slave with a good certificate would."""
    context = ssl.create_default_context(cafile=certificate("ca"))
    context.check_hostname = False
    context.load_cert_chain(certificate("client"), key("client"))
    return context.wrap_socket(plain)
