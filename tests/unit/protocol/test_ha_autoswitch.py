import struct

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.epochs import Epoch
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_autoswitch import (
    EMPTY_LOG,
    MAX_EPOCHS,
    HaState,
    MasterFrameDecoder,
    MasterHandshake,
    SlaveFrameDecoder,
    SlaveHandshake,
    SlaveReport,
    TransferHeader,
    encode_master_handshake,
    encode_slave_handshake,
    encode_slave_report,
    encode_transfer_header,
)
from tanist.protocol.ha_stream import BodyPart

# An exchange that was seen between RocketMQ 5.3.3 and an independent peer.
SLAVE_HANDSHAKE = bytes.fromhex("00000001 0000 0000 0000000000000002")
MASTER_HANDSHAKE = bytes.fromhex(
    "00000001 00000018 00000000000230d9 00000003" + "00000001 0000000000000000" + "00000003 000000000001e038"
)
SLAVE_REPORT = bytes.fromhex("00000002 0000000000000000")

EPOCHS = (Epoch(1, LogOffset(0)), Epoch(3, LogOffset(122936)))
HANDSHAKE = MasterHandshake(LogOffset(143577), 3, EPOCHS)
HEADER = TransferHeader(LogOffset(98304), 4, 3, LogOffset(122936), 98304)


def _epochs(count: int) -> tuple[Epoch, ...]:
    return tuple(Epoch(number, LogOffset(number * 10)) for number in range(count))


def _transferring() -> MasterFrameDecoder:
    decoder = MasterFrameDecoder(max_body_bytes=100)
    decoder.feed(MASTER_HANDSHAKE)
    return decoder


def test_the_slave_handshake_has_16_bytes() -> None:
    assert encode_slave_handshake(SlaveHandshake(2)) == SLAVE_HANDSHAKE
    assert SlaveFrameDecoder().feed(SLAVE_HANDSHAKE) == [SlaveHandshake(2)]
    flagged = encode_slave_handshake(SlaveHandshake(2, sync_from_last_file=True, async_learner=True))
    assert flagged.hex() == "00000001" + "0001" + "0001" + "0000000000000002"
    assert SlaveFrameDecoder().feed(flagged) == [
        SlaveHandshake(2, sync_from_last_file=True, async_learner=True)
    ]


@pytest.mark.behaviour("S2-12")
def test_the_slave_report_is_state_and_offset() -> None:
    assert encode_slave_report(0) == SLAVE_REPORT
    decoder = SlaveFrameDecoder()
    assert decoder.feed(SLAVE_HANDSHAKE + SLAVE_REPORT) == [SlaveHandshake(2), SlaveReport(0)]
    assert decoder.feed(encode_slave_report(406)) == [SlaveReport(406)]


@pytest.mark.behaviour("S2-8")
@pytest.mark.behaviour("S2-9")
def test_the_master_handshake_has_20_bytes_and_12_for_each_epoch() -> None:
    assert encode_master_handshake(HANDSHAKE) == MASTER_HANDSHAKE
    assert MasterFrameDecoder().feed(MASTER_HANDSHAKE) == [HANDSHAKE]
    assert len(encode_master_handshake(MasterHandshake(LogOffset(0), -1, ()))) == 20
    assert len(encode_master_handshake(MasterHandshake(LogOffset(0), 3, _epochs(2)))) == 20 + 2 * 12


@pytest.mark.behaviour("S2-11")
def test_the_transfer_header_has_36_bytes() -> None:
    raw = encode_transfer_header(HEADER)
    assert raw == struct.pack(">iiqiqq", 2, 4, 98304, 3, 122936, 98304)
    assert len(raw) == 36
    header, part = _transferring().feed(raw + b"body")
    assert header == HEADER
    assert part == BodyPart(memoryview(b"body"), is_last=True)


@pytest.mark.behaviour("S2-15")
def test_a_state_travels_as_its_ordinal() -> None:
    assert [state.name for state in HaState] == ["READY", "HANDSHAKE", "TRANSFER", "SUSPEND", "SHUTDOWN"]
    assert [state.value for state in HaState] == [0, 1, 2, 3, 4]
    assert encode_slave_handshake(SlaveHandshake(2))[:4] == b"\0\0\0\1"
    assert encode_master_handshake(HANDSHAKE)[:4] == b"\0\0\0\1"
    assert encode_slave_report(0)[:4] == b"\0\0\0\2"
    assert encode_transfer_header(HEADER)[:4] == b"\0\0\0\2"


def test_a_slave_handshake_that_arrives_split_keeps_its_broker_id() -> None:
    for cut in range(1, 16):
        decoder = SlaveFrameDecoder()
        assert decoder.feed(SLAVE_HANDSHAKE[:cut]) == []
        assert decoder.feed(SLAVE_HANDSHAKE[cut:]) == [SlaveHandshake(2)]


def test_a_master_handshake_that_comes_byte_by_byte_is_understood() -> None:
    decoder = MasterFrameDecoder()
    for i in range(len(MASTER_HANDSHAKE) - 1):
        assert decoder.feed(MASTER_HANDSHAKE[i : i + 1]) == []
    assert decoder.feed(MASTER_HANDSHAKE[-1:]) == [HANDSHAKE]


def test_a_report_without_handshake_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="HANDSHAKE was due"):
        SlaveFrameDecoder().feed(SLAVE_REPORT)


def test_a_handshake_is_repeated_until_it_is_answered_and_not_afterwards() -> None:
    decoder = SlaveFrameDecoder()
    assert len(decoder.feed(SLAVE_HANDSHAKE * 3)) == 3
    decoder.feed(SLAVE_REPORT)
    with pytest.raises(RemoteProtocolError, match="TRANSFER was due"):
        decoder.feed(SLAVE_HANDSHAKE)


def test_a_frame_before_the_masters_handshake_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="HANDSHAKE was due"):
        MasterFrameDecoder().feed(encode_transfer_header(HEADER))


def test_a_handshake_amid_the_log_is_refused() -> None:
    decoder = _transferring()
    decoder.feed(encode_transfer_header(HEADER) + b"body")
    with pytest.raises(RemoteProtocolError, match="TRANSFER was due"):
        decoder.feed(MASTER_HANDSHAKE)


@pytest.mark.parametrize("state", [0, 3, 4, 5, -1, 2**31 - 1])
def test_a_state_that_opens_no_frame_is_refused_at_once(state: int) -> None:
    opening = struct.pack(">i", state)
    for decoder in (SlaveFrameDecoder(), MasterFrameDecoder(), _transferring()):
        with pytest.raises(RemoteProtocolError):
            decoder.feed(opening)


@pytest.mark.parametrize("text", [b"9", b"999999999\n", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01"])
def test_what_is_no_handshake_is_refused_by_its_first_byte(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        SlaveFrameDecoder().feed(text[:1])


@pytest.mark.parametrize(
    "raw",
    [
        "00000001 0002 0000 0000000000000002",
        "00000001 0000 ffff 0000000000000002",
        "00000001 0000 0000 ffffffffffffffff",
    ],
)
def test_a_slave_handshake_with_impossible_fields_is_refused(raw: str) -> None:
    with pytest.raises(RemoteProtocolError):
        SlaveFrameDecoder().feed(bytes.fromhex(raw))


@pytest.mark.parametrize(
    ("body_bytes", "log_end", "epoch"),
    [
        (-12, 0, 1),
        (1, 0, 1),
        (11, 0, 1),
        ((MAX_EPOCHS + 1) * 12, 0, 1),
        (2**31 - 1, 0, 1),
        (0, -1, 1),
        (0, 0, -2),
    ],
)
def test_a_master_handshake_with_impossible_fields_is_refused(
    body_bytes: int, log_end: int, epoch: int
) -> None:
    with pytest.raises(RemoteProtocolError):
        MasterFrameDecoder().feed(struct.pack(">iiqi", 1, body_bytes, log_end, epoch))


def test_a_master_that_wrote_nothing_may_be_told_of() -> None:
    handshake = MasterHandshake(LogOffset(9), 2, (Epoch(1, LogOffset(0)), Epoch(2, LogOffset(0))))
    assert MasterFrameDecoder().feed(encode_master_handshake(handshake)) == [handshake]


@pytest.mark.parametrize(
    "entries",
    [[(2, 0), (1, 10)], [(1, 0), (1, 10)], [(1, 10), (2, 5)], [(-1, 0)], [(1, -1)]],
)
def test_epochs_that_do_not_rise_are_refused(entries: list[tuple[int, int]]) -> None:
    body = b"".join(struct.pack(">iq", *entry) for entry in entries)
    with pytest.raises(RemoteProtocolError):
        MasterFrameDecoder().feed(struct.pack(">iiqi", 1, len(body), 100, 2) + body)


@pytest.mark.behaviour("S2-41")
def test_as_many_epochs_are_taken_as_the_buffer_of_a_slave_of_rocketmq_holds_and_more_are_not_sent() -> None:
    handshake = MasterHandshake(LogOffset(10_000), 999, _epochs(MAX_EPOCHS))
    raw = encode_master_handshake(handshake)
    assert (4 << 20) - 12 < len(raw) <= 4 << 20
    assert MasterFrameDecoder().feed(raw) == [handshake]
    with pytest.raises(LocalProtocolError, match=f"{MAX_EPOCHS + 1} epochs"):
        encode_master_handshake(handshake._replace(epochs=_epochs(MAX_EPOCHS + 1)))


@pytest.mark.parametrize(
    "fields",
    [
        (-203, 203, 3, 143577, 0),  # RocketMQ's master really sends this one
        (101, 0, 1, 0, 0),
        (2**31 - 1, 0, 1, 0, 0),
        (0, -2, 1, 0, 0),
        (1, -1, 1, 0, 0),
        (0, 0, -2, 0, 0),
        (1, 0, -1, 0, 0),
        (0, 0, 1, -1, 0),
        (0, 0, 1, 0, -2),
    ],
)
def test_a_transfer_header_with_impossible_fields_is_refused(fields: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(RemoteProtocolError):
        _transferring().feed(struct.pack(">iiqiqq", 2, *fields))


def test_a_heartbeat_of_a_master_whose_log_has_no_file_is_taken() -> None:
    header = TransferHeader(EMPTY_LOG, 0, 1, LogOffset(0), 0)
    assert _transferring().feed(encode_transfer_header(header)) == [header]


def test_an_unknown_confirm_offset_is_taken() -> None:
    header = HEADER._replace(size_bytes=0, confirmed_to=-1)
    assert _transferring().feed(encode_transfer_header(header)) == [header]


def test_what_a_peer_would_refuse_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError):
        encode_slave_handshake(SlaveHandshake(-1))
    with pytest.raises(LocalProtocolError):
        encode_slave_report(-1)
    with pytest.raises(LocalProtocolError):
        encode_transfer_header(HEADER._replace(size_bytes=-1))
