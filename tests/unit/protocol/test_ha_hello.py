import struct

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.epochs import Epoch
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    MAGIC,
    MAX_EPOCHS,
    MAX_MESSAGE_BYTES,
    MAX_TAIL_BYTES,
    MAX_UNPROVEN_BYTES,
    NO_INCARNATION,
    PROOF_BYTES,
    Accepted,
    AlignFirst,
    Authentication,
    HelloReader,
    Refusal,
    Refused,
    SlaveHello,
    SlaveProof,
    decode_master_hello,
    decode_slave_hello,
    decode_slave_proof,
    decode_verdict,
    encode_master_hello,
    encode_slave_hello,
    encode_slave_proof,
    encode_verdict,
)
from tanist.protocol.ha_link import AckKind
from tests.support.hello import MASTER_HELLO, SLAVE_HELLO, SLAVE_PROOF

TLS = Authentication.MUTUAL_TLS
SECRET = Authentication.SECRET
NO_PROOF = bytes(PROOF_BYTES)


def test_the_slave_hello_opens_with_the_magic() -> None:
    raw = encode_slave_hello(SLAVE_HELLO, SECRET)
    assert raw == (
        b"\xd4TAN" + b"\x01\x01\x02" + struct.pack(">Hq", len(raw), 1) + b"s" * 16 + b"\x08broker-a"
    )
    assert decode_slave_hello(raw, SECRET) == SLAVE_HELLO


def test_no_slave_of_rocketmq_can_begin_with_the_magic() -> None:
    # A classic slave begins with its log's end, an auto-switch slave with state 1.
    assert struct.unpack(">q", MAGIC + bytes(4))[0] < -1
    assert struct.unpack(">i", MAGIC)[0] not in range(5)


@pytest.mark.parametrize("authentication", [TLS, SECRET])
def test_every_message_decodes_to_what_was_encoded(authentication: Authentication) -> None:
    proof = NO_PROOF if authentication is SECRET else b""
    raw = encode_slave_hello(SLAVE_HELLO, authentication)
    assert decode_slave_hello(raw, authentication) == SLAVE_HELLO
    raw = encode_master_hello(MASTER_HELLO, authentication) + proof
    assert decode_master_hello(raw, authentication) == MASTER_HELLO
    raw = encode_slave_proof(SLAVE_PROOF, authentication) + proof
    assert decode_slave_proof(raw, authentication) == SLAVE_PROOF
    assert decode_slave_proof(raw, authentication).ack_kind is AckKind.FLUSHED
    for verdict in (Accepted(LogOffset(4096)), Refused(Refusal.DIVERGED_LOG, "rebuild the slave")):
        raw = encode_verdict(verdict, authentication) + proof
        assert decode_verdict(raw, authentication) == verdict


def test_a_message_of_the_other_authentication_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="SECRET was due"):
        decode_slave_hello(encode_slave_hello(SLAVE_HELLO, TLS), SECRET)
    with pytest.raises(RemoteProtocolError, match="SECRET was due"):
        decode_master_hello(encode_master_hello(MASTER_HELLO, TLS), SECRET)
    with pytest.raises(RemoteProtocolError, match="MUTUAL_TLS was due"):
        decode_verdict(encode_verdict(Accepted(LogOffset(0)), SECRET) + NO_PROOF, TLS)


def test_a_message_of_another_kind_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="MASTER_HELLO, SECRET was due"):
        decode_master_hello(encode_slave_hello(SLAVE_HELLO, SECRET), SECRET)


def test_a_message_without_its_proof_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="MASTER_HELLO message"):
        decode_master_hello(encode_master_hello(MASTER_HELLO, SECRET), SECRET)


def test_another_version_is_refused_and_named() -> None:
    raw = bytearray(encode_slave_hello(SLAVE_HELLO, SECRET))
    raw[4] = 2
    with pytest.raises(RemoteProtocolError, match="version 2"):
        decode_slave_hello(bytes(raw), SECRET)
    with pytest.raises(RemoteProtocolError, match="version 2"):
        HelloReader().feed(bytes(raw))


@pytest.mark.parametrize("group", ["", "g" * 128, "two\nlines", "\x1b[31m", "é" * 64])
def test_a_group_that_is_no_name_is_neither_sent_nor_taken(group: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_slave_hello(SLAVE_HELLO._replace(group=group), SECRET)
    raw = group.encode()
    body = struct.pack(">q16sB", 1, bytes(16), len(raw)) + raw
    message = MAGIC + struct.pack(">BBBH", 1, 1, SECRET, 9 + len(body)) + body
    with pytest.raises(RemoteProtocolError):
        decode_slave_hello(message, SECRET)


def test_a_group_that_is_no_text_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError):
        encode_slave_hello(SLAVE_HELLO._replace(group="\ud800"), SECRET)


def test_a_group_of_127_bytes_is_taken() -> None:
    hello = SlaveHello("g" * 127, 2**63 - 1, bytes(16))
    assert decode_slave_hello(encode_slave_hello(hello, SECRET), SECRET) == hello


def test_a_slave_sends_at_most_256_bytes_before_it_is_proven() -> None:
    hello = encode_slave_hello(SlaveHello("g" * 127, 1, bytes(16)), SECRET)
    proof = encode_slave_proof(SLAVE_PROOF, SECRET) + NO_PROOF
    assert len(hello) + len(proof) <= MAX_UNPROVEN_BYTES
    reader = HelloReader()
    assert reader.feed(hello) == (hello, b"")
    assert reader.feed(proof) == (proof, b"")


def test_a_master_sends_at_most_256_bytes_before_it_is_proven() -> None:
    hello = encode_master_hello(MASTER_HELLO, SECRET) + NO_PROOF
    verdict = encode_verdict(Refused(Refusal.DIVERGED_LOG, "x" * 128), SECRET) + NO_PROOF
    assert len(hello) <= MAX_UNPROVEN_BYTES
    assert len(verdict) <= MAX_UNPROVEN_BYTES
    reader = HelloReader()
    assert reader.feed(hello)[0] == hello
    reader.trust_peer()
    assert reader.feed(verdict)[0] == verdict


def test_what_is_over_the_bound_is_refused_before_it_is_read() -> None:
    head = MAGIC + struct.pack(">BBBH", 1, 1, SECRET, MAX_UNPROVEN_BYTES + 1)
    with pytest.raises(RemoteProtocolError, match="257 bytes where 256"):
        HelloReader().feed(head)
    reader = HelloReader()
    hello = encode_slave_hello(SLAVE_HELLO, SECRET)
    reader.feed(hello)
    with pytest.raises(RemoteProtocolError, match=f"where {256 - len(hello)} are allowed"):
        reader.feed(MAGIC + struct.pack(">BBBH", 1, 3, SECRET, 256))


def test_a_message_that_comes_byte_by_byte_is_understood() -> None:
    reader = HelloReader()
    raw = encode_slave_hello(SLAVE_HELLO, SECRET)
    for i in range(len(raw) - 1):
        assert reader.feed(raw[i : i + 1]) == (None, b"")
    assert reader.feed(raw[-1:]) == (raw, b"")


def test_what_follows_a_message_is_given_back() -> None:
    raw = encode_verdict(Accepted(LogOffset(0)), TLS)
    message, rest = HelloReader().feed(raw + b"frames")
    assert message == raw
    assert bytes(rest) == b"frames"


@pytest.mark.parametrize("text", [b"9", b"999999999\n", b"\0\0\0\1", b"\xd4TAX", b"\xd5", b"\xff" * 8])
def test_what_is_no_hello_is_refused_by_its_first_wrong_byte(text: bytes) -> None:
    wrong = next(i for i in range(len(text)) if not MAGIC.startswith(text[: i + 1]))
    reader = HelloReader()
    for i in range(wrong):
        reader.feed(text[i : i + 1])
    with pytest.raises(RemoteProtocolError, match="does not open a hello"):
        reader.feed(text[wrong : wrong + 1])


@pytest.mark.parametrize("size_bytes", [0, 8])
def test_a_size_under_that_of_the_head_is_refused(size_bytes: int) -> None:
    with pytest.raises(RemoteProtocolError):
        HelloReader().feed(MAGIC + struct.pack(">BBBH", 1, 1, SECRET, size_bytes))


@pytest.mark.parametrize(
    "change",
    [
        {"log_end": 1023},
        {"log_start": -1},
        {"epoch": -1},
        {"tail_bytes": 0},
        {"tail_bytes": 3073},
        {"incarnation": b"short"},
        {"ack_kind": 0},
        {"ack_kind": 3},
        {"file_bytes": 0},
        {"is_learner": 2},
        {"log_end": 2**40, "tail_bytes": MAX_TAIL_BYTES + 1},
    ],
)
def test_a_slave_proof_that_can_not_be_true_is_neither_sent_nor_taken(change: dict[str, int]) -> None:
    proof = SLAVE_PROOF._replace(**change)
    with pytest.raises(LocalProtocolError):
        encode_slave_proof(proof, TLS)
    fields = struct.pack(">16sqqiIIBqB", *proof)
    message = MAGIC + struct.pack(">BBBH", 1, 3, TLS, 9 + len(fields)) + fields
    if proof.incarnation != b"short":
        with pytest.raises(RemoteProtocolError):
            decode_slave_proof(message, TLS)


def test_an_empty_slave_has_no_tail_and_may_have_followed_nobody() -> None:
    proof = SlaveProof(NO_INCARNATION, LogOffset(0), LogOffset(0), 0, 0, 0, AckKind.RECEIVED, 1024)
    assert decode_slave_proof(encode_slave_proof(proof, TLS), TLS) == proof


@pytest.mark.parametrize(
    "change",
    [{"incarnation": NO_INCARNATION}, {"log_end": 1023}, {"log_start": -1}, {"epoch": -1}],
)
def test_a_master_hello_that_can_not_be_true_is_neither_sent_nor_taken(change: dict[str, int]) -> None:
    hello = MASTER_HELLO._replace(**change)
    with pytest.raises(LocalProtocolError):
        encode_master_hello(hello, TLS)
    fields = struct.pack(">16s16sqqi", *hello)
    message = MAGIC + struct.pack(">BBBH", 1, 2, TLS, 9 + len(fields)) + fields
    with pytest.raises(RemoteProtocolError):
        decode_master_hello(message, TLS)


@pytest.mark.parametrize("nonce", [b"", b"n" * 15, b"n" * 17])
def test_a_nonce_has_16_bytes(nonce: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        encode_slave_hello(SLAVE_HELLO._replace(nonce=nonce), SECRET)
    with pytest.raises(LocalProtocolError):
        encode_master_hello(MASTER_HELLO._replace(nonce=nonce), SECRET)


def test_a_long_reason_is_cut_between_characters() -> None:
    raw = encode_verdict(Refused(Refusal.OTHER_INCARNATION, "x" + "é" * 100), TLS)
    assert decode_verdict(raw, TLS) == Refused(Refusal.OTHER_INCARNATION, "x" + "é" * 63)


@pytest.mark.parametrize(
    "body",
    [
        struct.pack(">BqB", 0, -1, 0),
        struct.pack(">BqB", 0, 0, 1) + b"x",
        struct.pack(">BqB", 0, 0, 1),
        struct.pack(">BqB", max(Refusal) + 1, 0, 0),
        struct.pack(">BqB", 1, 5, 0),
        struct.pack(">BqB", 1, 0, 1) + b"\xff",
        struct.pack(">BqB", 1, 0, 129) + b"x" * 129,
    ],
)
def test_a_verdict_that_says_nothing_clear_is_refused(body: bytes) -> None:
    message = MAGIC + struct.pack(">BBBH", 1, 4, TLS, 9 + len(body)) + body
    with pytest.raises(RemoteProtocolError):
        decode_verdict(message, TLS)


def test_a_negative_start_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError):
        encode_verdict(Accepted(LogOffset(-1)), TLS)


# The epochs that a slave is told before it is judged


def _epochs(*pairs: tuple[int, int]) -> AlignFirst:
    return AlignFirst(tuple(Epoch(epoch, LogOffset(start)) for epoch, start in pairs))


@pytest.mark.behaviour("S2-41")
@pytest.mark.parametrize("count", [0, 1, 1001, MAX_EPOCHS])
def test_so_many_epochs_are_one_message(count: int) -> None:
    told = _epochs(*((number, 1000 * number) for number in range(count)))
    raw = encode_verdict(told, SECRET) + NO_PROOF
    reader = HelloReader()
    reader.trust_peer(MAX_MESSAGE_BYTES)
    message, rest = reader.feed(raw)
    assert (message, bytes(rest)) == (raw, b"")
    assert decode_verdict(raw, SECRET) == told


@pytest.mark.parametrize(
    "told",
    [
        _epochs((1, 0), (1, 5)),
        _epochs((2, 0), (1, 5)),
        _epochs((1, 5), (2, 5)),
        _epochs((1, 5), (2, 4)),
        _epochs((-1, 5)),
        _epochs((1, -5)),
        _epochs(*((number, number) for number in range(MAX_EPOCHS + 1))),
    ],
)
def test_epochs_that_do_not_rise_or_are_too_many_are_not_sent(told: AlignFirst) -> None:
    with pytest.raises(LocalProtocolError):
        encode_verdict(told, SECRET)


@pytest.mark.parametrize(
    "body", [bytes(11), struct.pack(">iqiq", 2, 7, 2, 8), struct.pack(">iqiq", 2, 7, 3, 7)]
)
def test_epochs_that_do_not_rise_are_not_taken(body: bytes) -> None:
    raw = MAGIC + struct.pack(">BBBH", 1, 5, SECRET, 9 + len(body) + 32) + body + NO_PROOF
    with pytest.raises(RemoteProtocolError, match="epochs"):
        decode_verdict(raw, SECRET)


def test_a_master_that_is_not_proven_tells_no_long_list() -> None:
    raw = encode_verdict(_epochs(*((number, number) for number in range(30))), SECRET) + NO_PROOF
    with pytest.raises(RemoteProtocolError, match="256 are allowed"):
        HelloReader().feed(raw)
