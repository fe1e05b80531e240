import struct

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol.ha_autoswitch import HaState
from tanist.protocol.ha_autoswitch_forms import (
    AddressHandshake,
    CompactHead,
    LongAnswer,
    decode_address_handshake,
    decode_compact_head,
    decode_compact_state,
    decode_long_answer,
    encode_address_handshake,
    encode_compact_head,
    encode_compact_state,
    encode_long_answer,
)


@pytest.mark.behaviour("S2-3", "S2-4")
@pytest.mark.parametrize(
    ("address", "is_ipv6"), [("10.0.0.7:40112", False), ("[fd00::7]:40112", True), ("fd00::7:40112", True)]
)
def test_a_slave_of_5_0_tells_its_address_and_how_long_it_is(address: str, is_ipv6: bool) -> None:
    handshake = AddressHandshake(address, async_learner=True)
    raw = encode_address_handshake(handshake)
    assert raw == struct.pack(">ihhi", 1, 0, 1, len(address)) + address.encode()
    assert decode_address_handshake(raw + b"more") == handshake
    assert handshake.is_ipv6 is is_ipv6
    for cut in range(len(raw)):
        assert decode_address_handshake(raw[:cut]) is None


@pytest.mark.behaviour("S2-5")
def test_an_address_has_50_bytes_at_most() -> None:
    longest = f"{'0' * 40}:{'1' * 9}"
    assert len(encode_address_handshake(AddressHandshake(longest))) == 12 + 50
    with pytest.raises(LocalProtocolError, match="51 bytes"):
        encode_address_handshake(AddressHandshake(longest + "1"))
    with pytest.raises(RemoteProtocolError, match="51 bytes"):
        decode_address_handshake(struct.pack(">ihhi", 1, 0, 0, 51))


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack(">ihhi", 2, 0, 0, 9) + b"10.0.0.7:",
        struct.pack(">ihhi", 1, 2, 0, 9) + b"10.0.0.7:",
        struct.pack(">ihhi", 1, 0, 0, -1),
        struct.pack(">ihhi", 1, 0, 0, 0),
        struct.pack(">ihhi", 1, 0, 0, 4) + b"name",
        struct.pack(">ihhi", 1, 0, 0, 4) + b"\xff\xfe\0\0",
    ],
)
def test_what_is_no_handshake_of_5_0_is_refused(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_address_handshake(raw)


@pytest.mark.behaviour("S2-10")
def test_a_master_of_5_0_answers_with_16_more_bytes_of_zeros() -> None:
    raw = encode_long_answer(LongAnswer(24, 143577, 3))
    assert raw == struct.pack(">iiqi", 1, 24, 143577, 3) + bytes(16)
    assert decode_long_answer(raw) == LongAnswer(24, 143577, 3)
    assert decode_long_answer(raw[:-1]) is None
    # Today's answer has epochs there.
    with pytest.raises(RemoteProtocolError):
        decode_long_answer(raw[:20] + struct.pack(">iqi", 1, 0, 3))


@pytest.mark.behaviour("S2-42")
def test_the_compact_form_has_a_bit_for_each_state_and_one_byte_for_the_flags() -> None:
    assert [encode_compact_state(state) for state in HaState] == [b"\1", b"\2", b"\4", b"\x08", b"\x10"]
    for state in HaState:
        assert decode_compact_state(encode_compact_state(state)[0]) is state
    head = CompactHead(HaState.HANDSHAKE, sync_from_last_file=True, async_learner=True)
    assert encode_compact_head(head) == b"\2\3"
    for flags in range(4):
        found = decode_compact_head(bytes([2, flags]))
        assert found is not None
        assert encode_compact_head(found) == bytes([2, flags])
    assert decode_compact_head(b"\2") is None


@pytest.mark.parametrize("raw", [b"\0\0", b"\3\0", b"\x20\0", b"\2\4", b"\2\xff"])
def test_what_is_not_of_the_compact_form_is_refused(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_compact_head(raw)
