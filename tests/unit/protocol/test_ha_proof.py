import hmac

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import Accepted, Authentication, Refusal, Refused, encode_verdict
from tanist.protocol.ha_proof import check_proof, master_proof, proof_of, slave_proof, verdict_proof
from tests.support.hello import MASTER_HELLO, SECRET, SLAVE_HELLO, say_hello


def test_two_sides_with_the_same_secret_believe_each_other() -> None:
    assert len(say_hello()) == 4


def test_a_refusal_is_proven_like_an_acceptance() -> None:
    say_hello(verdict=Refused(Refusal.DIVERGED_LOG, "the logs part at 4096"))


def test_a_slave_does_not_believe_a_master_with_another_secret() -> None:
    with pytest.raises(RemoteProtocolError, match="not proven"):
        say_hello(master_secret=b"another secret")


def test_the_master_proof_is_an_hmac_of_all_that_was_said() -> None:
    first, second, _, _ = say_hello()
    said = b"tanist ha 1 master\0" + first + second[:-32]
    assert proof_of(second) == hmac.digest(SECRET, said, "sha256")


def test_the_secret_does_not_travel() -> None:
    assert all(SECRET not in raw for raw in say_hello())


def test_every_single_bit_that_changes_on_the_way_is_noticed() -> None:
    for step, raw in enumerate(say_hello()):
        for bit in range(len(raw) * 8):
            flipped = bytearray(raw)
            flipped[bit // 8] ^= 1 << bit % 8

            def between(at: int, sent: bytes, step: int = step, flipped: bytes = bytes(flipped)) -> bytes:
                return flipped if at == step else sent

            with pytest.raises(RemoteProtocolError):
                say_hello(between)


def test_a_recorded_slave_proves_nothing_to_a_master_with_a_new_nonce() -> None:
    recorded = say_hello()

    def replay(step: int, raw: bytes) -> bytes:
        return recorded[step] if step in (0, 2) else raw

    fresh = MASTER_HELLO._replace(nonce=b"f" * 16)
    with pytest.raises(RemoteProtocolError, match="not proven"):
        say_hello(replay, slave_secret=SECRET, master_hello=fresh, slave_hello=SLAVE_HELLO)


def test_a_recorded_master_proves_nothing_to_a_slave_with_a_new_nonce() -> None:
    recorded = say_hello()

    def replay(step: int, raw: bytes) -> bytes:
        return recorded[step] if step in (1, 3) else raw

    with pytest.raises(RemoteProtocolError, match="not proven"):
        say_hello(replay, slave_hello=SLAVE_HELLO._replace(nonce=b"f" * 16))


def test_the_masters_proof_handed_back_to_it_proves_no_slave() -> None:
    second = b""

    def reflect(step: int, raw: bytes) -> bytes:
        nonlocal second
        if step == 1:
            second = raw
        return raw[:-32] + proof_of(second) if step == 2 else raw

    with pytest.raises(RemoteProtocolError, match="not proven"):
        say_hello(reflect)


def test_a_verdict_on_another_slave_is_not_believed() -> None:
    other = say_hello(slave_hello=SLAVE_HELLO._replace(broker_id=2))

    def swap(step: int, raw: bytes) -> bytes:
        return other[3] if step == 3 else raw

    with pytest.raises(RemoteProtocolError, match="not proven"):
        say_hello(swap)


def test_the_proofs_of_the_roles_differ_over_the_same_bytes() -> None:
    message = encode_verdict(Accepted(LogOffset(0)), Authentication.SECRET)
    proofs = {
        master_proof(SECRET, slave_hello=b"", master_hello=message),
        slave_proof(SECRET, slave_hello=b"", master_hello=b"", slave_proof=message),
        verdict_proof(SECRET, slave_hello=b"", master_hello=b"", slave_proof=b"", verdict=message),
    }
    assert len(proofs) == 3


def test_a_proof_that_is_not_there_is_never_right() -> None:
    assert proof_of(encode_verdict(Accepted(LogOffset(0)), Authentication.MUTUAL_TLS)) == b""
    assert not check_proof(b"", b"")
    assert not check_proof(b"p" * 32, b"")
    assert not check_proof(b"p" * 32, b"p" * 31)
    assert check_proof(b"p" * 32, b"p" * 32)


def test_an_empty_secret_is_refused() -> None:
    with pytest.raises(LocalProtocolError):
        say_hello(master_secret=b"")
