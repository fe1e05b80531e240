import struct
import zlib

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_link import (
    FROM_MASTER,
    FROM_SLAVE,
    MAX_NOTE_BYTES,
    Ack,
    AckKind,
    Data,
    Frame,
    FrameKind,
    Heartbeat,
    Note,
    TableChange,
    TablesHeld,
    bytes_needed,
    decode_frames,
    encode_ack,
    encode_data_header,
    encode_heartbeat,
    encode_note,
    encode_table_change,
    encode_tables_held,
)

BODY = b"raw bytes of the log"
HEADER = encode_data_header(406, len(BODY), epoch=3, confirmed_to=400, body_crc=zlib.crc32(BODY))
DATA = HEADER + BODY
FRAME = Data(LogOffset(406), 3, LogOffset(400), memoryview(BODY))
ACK = Ack(AckKind.FLUSHED, LogOffset(426))
HEARTBEAT = Heartbeat(LogOffset(426), 3, LogOffset(406))
TABLE = encode_table_change(b"a change")
NOTE = encode_note(b"a note")


def _decode(raw: bytes, side: frozenset[FrameKind]) -> list[Frame]:
    frames, used = decode_frames(memoryview(raw), side)
    assert used == len(raw)
    return frames


def test_data_is_a_header_with_a_checksum_of_body_and_fields() -> None:
    fields = struct.pack(">BIqiq", 1, len(BODY), 406, 3, 400)
    assert fields + struct.pack(">I", zlib.crc32(BODY + fields)) + BODY == DATA
    assert _decode(DATA, FROM_MASTER) == [FRAME]


def test_a_change_of_the_tables_is_carried_as_it_is() -> None:
    fields = struct.pack(">BI", 4, 8)
    assert fields + struct.pack(">I", zlib.crc32(b"a change" + fields)) + b"a change" == TABLE
    assert _decode(TABLE, FROM_MASTER) == [TableChange(memoryview(b"a change"))]


def test_an_ack_says_what_it_promises_and_how_far() -> None:
    fields = struct.pack(">BBq", 2, 2, 426)
    assert encode_ack(ACK) == fields + struct.pack(">I", zlib.crc32(fields))
    (ack,) = _decode(encode_ack(ACK), FROM_SLAVE)
    assert ack == ACK
    assert isinstance(ack, Ack)
    assert ack.kind is AckKind.FLUSHED


def test_a_heartbeat_goes_both_ways() -> None:
    fields = struct.pack(">Bqiq", 3, 426, 3, 406)
    assert encode_heartbeat(HEARTBEAT) == fields + struct.pack(">I", zlib.crc32(fields))
    for side in (FROM_MASTER, FROM_SLAVE):
        assert _decode(encode_heartbeat(HEARTBEAT), side) == [HEARTBEAT]


def test_a_note_is_carried_as_it_is_and_goes_both_ways() -> None:
    fields = struct.pack(">BI", 5, 6)
    assert fields + struct.pack(">I", zlib.crc32(b"a note" + fields)) + b"a note" == NOTE
    for side in (FROM_MASTER, FROM_SLAVE):
        assert _decode(NOTE, side) == [Note(memoryview(b"a note"))]


def test_a_note_has_a_bound_of_its_own_which_its_head_tells() -> None:
    largest = bytes(MAX_NOTE_BYTES)
    assert _decode(encode_note(largest), FROM_SLAVE) == [Note(memoryview(largest))]
    for size_bytes in (0, MAX_NOTE_BYTES + 1):
        head = struct.pack(">BII", 5, size_bytes, 0)
        for side in (FROM_MASTER, FROM_SLAVE):
            with pytest.raises(
                RemoteProtocolError, match=f"{size_bytes} bytes; it has 1 to {MAX_NOTE_BYTES}"
            ):
                decode_frames(memoryview(head), side)


def test_the_first_bytes_of_a_frame_tell_how_many_it_needs() -> None:
    head_bytes = len(NOTE) - len(b"a note")
    needed = [bytes_needed(memoryview(NOTE[:size]), FROM_SLAVE) for size in range(len(NOTE) + 1)]
    assert needed == [1, *[head_bytes] * (head_bytes - 1), *[len(NOTE)] * (len(NOTE) - head_bytes + 1)]


def test_a_side_can_send_only_its_own_frames() -> None:
    for first, side in ((DATA, FROM_SLAVE), (TABLE, FROM_SLAVE), (encode_ack(ACK), FROM_MASTER)):
        with pytest.raises(RemoteProtocolError, match=f"{first[0]:#04x}"):
            decode_frames(memoryview(first[:1]), side)
    for kind in (0, 6, 255):
        with pytest.raises(RemoteProtocolError):
            decode_frames(memoryview(bytes((kind,))), FROM_MASTER)


def test_a_frame_is_handed_out_when_it_is_whole() -> None:
    stream = encode_heartbeat(HEARTBEAT) + DATA + encode_heartbeat(HEARTBEAT)
    first_bytes = len(encode_heartbeat(HEARTBEAT))
    for size in range(len(stream) + 1):
        frames, used = decode_frames(memoryview(stream[:size]), FROM_MASTER)
        ends = [first_bytes, first_bytes + len(DATA), len(stream)]
        count = sum(end <= size for end in ends)
        assert frames == [HEARTBEAT, FRAME, HEARTBEAT][:count]
        assert used == (ends[count - 1] if count else 0)


def test_a_body_is_a_view_of_what_was_read() -> None:
    (frame,) = _decode(DATA, FROM_MASTER)
    assert isinstance(frame, Data)
    assert frame.body.obj is DATA


def test_a_single_wrong_bit_of_a_frame_is_noticed() -> None:
    for raw, side in (
        (DATA, FROM_MASTER),
        (TABLE, FROM_MASTER),
        (NOTE, FROM_SLAVE),
        (encode_ack(ACK), FROM_SLAVE),
        (encode_heartbeat(HEARTBEAT), FROM_MASTER),
    ):
        for bit in range(len(raw) * 8):
            flipped = bytearray(raw)
            flipped[bit // 8] ^= 1 << bit % 8
            assert not _is_believed(bytes(flipped), side)


def _is_believed(raw: bytes, side: frozenset[FrameKind]) -> bool:
    try:
        frames, _ = decode_frames(memoryview(raw), side)
    except RemoteProtocolError:
        return False
    return bool(frames)


@pytest.mark.parametrize("size_bytes", [0, 101, 2**32 - 1])
def test_a_body_of_an_impossible_size_is_refused_before_it_comes(size_bytes: int) -> None:
    for head in (
        struct.pack(">BIqiqI", 1, size_bytes, 0, 0, 0, 0),
        struct.pack(">BII", 4, size_bytes, 0),
    ):
        with pytest.raises(RemoteProtocolError, match=str(size_bytes)):
            decode_frames(memoryview(head), FROM_MASTER, max_body_bytes=100)


@pytest.mark.parametrize("fields", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_data_with_impossible_fields_is_refused(fields: tuple[int, ...]) -> None:
    raw = struct.pack(">BIqiq", 1, 1, *fields)
    with pytest.raises(RemoteProtocolError, match="data at"):
        decode_frames(memoryview(raw + struct.pack(">I", zlib.crc32(b"x" + raw)) + b"x"), FROM_MASTER)


@pytest.mark.parametrize("fields", [(0, 5), (3, 5), (1, -1)])
def test_an_ack_with_impossible_fields_is_refused(fields: tuple[int, int]) -> None:
    raw = struct.pack(">BBq", 2, *fields)
    with pytest.raises(RemoteProtocolError, match="ack of kind"):
        decode_frames(memoryview(raw + struct.pack(">I", zlib.crc32(raw))), FROM_SLAVE)


@pytest.mark.parametrize("fields", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_a_heartbeat_with_impossible_fields_is_refused(fields: tuple[int, int, int]) -> None:
    raw = struct.pack(">Bqiq", 3, *fields)
    with pytest.raises(RemoteProtocolError, match="negative"):
        decode_frames(memoryview(raw + struct.pack(">I", zlib.crc32(raw))), FROM_SLAVE)


def test_what_a_peer_would_refuse_is_not_sent() -> None:
    for size_bytes, epoch in ((0, 0), (1 << 30, 0), (1, -1)):
        with pytest.raises(LocalProtocolError):
            encode_data_header(0, size_bytes, epoch=epoch, confirmed_to=0, body_crc=0)
    with pytest.raises(LocalProtocolError):
        encode_table_change(b"")
    for note in (b"", bytes(MAX_NOTE_BYTES + 1)):
        with pytest.raises(LocalProtocolError, match="a note of"):
            encode_note(note)
    with pytest.raises(LocalProtocolError):
        encode_ack(ACK._replace(log_offset=LogOffset(-1)))
    with pytest.raises(LocalProtocolError):
        encode_heartbeat(HEARTBEAT._replace(epoch=-1))


def test_a_slave_says_up_to_which_question_it_has_the_tables() -> None:
    frame = encode_tables_held(7)
    assert _decode(frame, FROM_SLAVE) == [TablesHeld(7)]
    with pytest.raises(RemoteProtocolError, match="this side of the link can not send"):
        _decode(frame, FROM_MASTER)
