import struct
import zlib

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_link import (
    FROM_MASTER,
    FROM_SLAVE,
    Ack,
    AckKind,
    DataHeader,
    FrameKind,
    Heartbeat,
    LinkDecoder,
    encode_ack,
    encode_data_header,
    encode_heartbeat,
)
from tanist.protocol.ha_stream import BodyPart

BODY = b"raw bytes of the log"
HEADER = DataHeader(LogOffset(406), len(BODY), 3, LogOffset(400))
DATA = encode_data_header(HEADER, body_crc=zlib.crc32(BODY)) + BODY
ACK = Ack(AckKind.FLUSHED, LogOffset(426))
HEARTBEAT = Heartbeat(LogOffset(426), 3, LogOffset(406))


def test_data_is_a_header_with_a_checksum_of_body_and_fields() -> None:
    fields = struct.pack(">BIqiq", 1, len(BODY), 406, 3, 400)
    assert fields + struct.pack(">I", zlib.crc32(BODY + fields)) + BODY == DATA
    assert LinkDecoder(FROM_MASTER).feed(DATA) == [HEADER, BodyPart(memoryview(BODY), is_last=True)]


def test_an_ack_says_what_it_promises_and_how_far() -> None:
    fields = struct.pack(">BBq", 2, 2, 426)
    assert encode_ack(ACK) == fields + struct.pack(">I", zlib.crc32(fields))
    (ack,) = LinkDecoder(FROM_SLAVE).feed(encode_ack(ACK))
    assert ack == ACK
    assert isinstance(ack, Ack)
    assert ack.kind is AckKind.FLUSHED


def test_a_heartbeat_goes_both_ways() -> None:
    fields = struct.pack(">Bqiq", 3, 426, 3, 406)
    assert encode_heartbeat(HEARTBEAT) == fields + struct.pack(">I", zlib.crc32(fields))
    for side in (FROM_MASTER, FROM_SLAVE):
        assert LinkDecoder(side).feed(encode_heartbeat(HEARTBEAT)) == [HEARTBEAT]


def test_a_side_can_send_only_its_own_frames() -> None:
    with pytest.raises(RemoteProtocolError, match="0x01"):
        LinkDecoder(FROM_SLAVE).feed(DATA[:1])
    with pytest.raises(RemoteProtocolError, match="0x02"):
        LinkDecoder(FROM_MASTER).feed(encode_ack(ACK)[:1])
    for kind in (0, 4, 255):
        with pytest.raises(RemoteProtocolError):
            LinkDecoder(FROM_MASTER).feed(bytes((kind,)))


def test_frames_follow_each_other_and_may_come_byte_by_byte() -> None:
    stream = encode_heartbeat(HEARTBEAT) + DATA + encode_heartbeat(HEARTBEAT)
    decoder = LinkDecoder(FROM_MASTER)
    events = [event for i in range(len(stream)) for event in decoder.feed(stream[i : i + 1])]
    parts = [event for event in events if isinstance(event, BodyPart)]
    assert [event for event in events if not isinstance(event, BodyPart)] == [HEARTBEAT, HEADER, HEARTBEAT]
    assert b"".join(part.view for part in parts) == BODY
    assert [part.is_last for part in parts] == [False] * (len(BODY) - 1) + [True]


def test_the_pieces_of_a_body_are_views_of_what_was_read() -> None:
    part = LinkDecoder(FROM_MASTER).feed(DATA)[1]
    assert isinstance(part, BodyPart)
    assert part.view.obj is DATA


def test_a_single_wrong_bit_of_a_frame_is_noticed() -> None:
    for raw, side in (
        (DATA, FROM_MASTER),
        (encode_ack(ACK), FROM_SLAVE),
        (encode_heartbeat(HEARTBEAT), FROM_MASTER),
    ):
        for bit in range(len(raw) * 8):
            flipped = bytearray(raw)
            flipped[bit // 8] ^= 1 << bit % 8
            assert not _is_believed(bytes(flipped), side)


def _is_believed(raw: bytes, side: frozenset[FrameKind]) -> bool:
    try:
        events = LinkDecoder(side).feed(raw)
    except RemoteProtocolError:
        return False
    last = events[-1] if events else None
    return isinstance(last, Ack | Heartbeat) or (isinstance(last, BodyPart) and last.is_last)


def test_the_last_piece_of_a_bad_body_is_not_handed_out() -> None:
    decoder = LinkDecoder(FROM_MASTER)
    assert len(decoder.feed(DATA[:-1])) == 2
    with pytest.raises(RemoteProtocolError, match="checksum"):
        decoder.feed(b"?")


@pytest.mark.parametrize(
    "fields",
    [(0, 0, 0, 0), (101, 0, 0, 0), (2**32 - 1, 0, 0, 0), (1, -1, 0, 0), (1, 0, -1, 0), (1, 0, 0, -1)],
)
def test_a_data_header_with_impossible_fields_is_refused_before_its_body(fields: tuple[int, ...]) -> None:
    raw = struct.pack(">BIqiq", 1, *fields)
    with pytest.raises(RemoteProtocolError, match="DataHeader"):
        LinkDecoder(FROM_MASTER, max_body_bytes=100).feed(raw + bytes(4))


@pytest.mark.parametrize("fields", [(0, 5), (3, 5), (1, -1)])
def test_an_ack_with_impossible_fields_is_refused(fields: tuple[int, int]) -> None:
    raw = struct.pack(">BBq", 2, *fields)
    with pytest.raises(RemoteProtocolError, match="ack of kind"):
        LinkDecoder(FROM_SLAVE).feed(raw + struct.pack(">I", zlib.crc32(raw)))


@pytest.mark.parametrize("fields", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_a_heartbeat_with_impossible_fields_is_refused(fields: tuple[int, int, int]) -> None:
    raw = struct.pack(">Bqiq", 3, *fields)
    with pytest.raises(RemoteProtocolError, match="negative"):
        LinkDecoder(FROM_SLAVE).feed(raw + struct.pack(">I", zlib.crc32(raw)))


def test_what_a_peer_would_refuse_is_not_sent() -> None:
    for header in (
        HEADER._replace(size_bytes=0),
        HEADER._replace(size_bytes=1 << 30),
        HEADER._replace(epoch=-1),
    ):
        with pytest.raises(LocalProtocolError):
            encode_data_header(header, body_crc=0)
    with pytest.raises(LocalProtocolError):
        encode_ack(ACK._replace(log_offset=LogOffset(-1)))
    with pytest.raises(LocalProtocolError):
        encode_heartbeat(HEARTBEAT._replace(epoch=-1))
