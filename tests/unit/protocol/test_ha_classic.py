import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_classic import (
    ReportDecoder,
    TransferDecoder,
    TransferHeader,
    encode_report,
    encode_transfer_header,
)
from tanist.protocol.ha_stream import BodyPart


@pytest.mark.behaviour("S1-51")
def test_a_report_is_a_bare_8_byte_big_endian_number() -> None:
    assert encode_report(406).hex() == "0000000000000196"
    assert ReportDecoder().feed(bytes.fromhex("0000000000000196")) == 406
    assert ReportDecoder().feed(bytes.fromhex("ffffffffffffffff")) == -1


@pytest.mark.behaviour("S1-52")
@pytest.mark.parametrize("cut", range(1, 8))
def test_a_report_split_over_two_reads_is_understood(cut: int) -> None:
    decoder = ReportDecoder()
    raw = encode_report(0x0102030405060708)
    assert decoder.feed(raw[:cut]) is None
    assert decoder.feed(b"") is None
    assert decoder.feed(raw[cut:]) == 0x0102030405060708


@pytest.mark.behaviour("S1-52")
def test_a_report_that_comes_byte_by_byte_is_understood() -> None:
    decoder = ReportDecoder()
    raw = encode_report(1) + encode_report(2)
    assert [decoder.feed(raw[i : i + 1]) for i in range(16)] == [None] * 7 + [1] + [None] * 7 + [2]


@pytest.mark.behaviour("S1-53")
def test_of_several_reports_in_one_read_the_newest_whole_one_counts() -> None:
    decoder = ReportDecoder()
    assert decoder.feed(encode_report(1) + encode_report(2) + encode_report(3) + b"\0\0\0") == 3
    assert decoder.feed(b"\0\0\0\0\x04" + encode_report(5)[:7]) == 4
    assert decoder.feed(b"\x05" + encode_report(6)) == 6


@pytest.mark.behaviour("S1-54")
def test_no_partial_report_is_lost_however_much_was_read_before() -> None:
    # More than RocketMQ's whole read buffer of 1 MiB, in reads that end within a report each time.
    stream = b"".join(encode_report(number) for number in range(200_000))
    decoder = ReportDecoder()
    for start in range(0, len(stream), 65_531):
        end = min(start + 65_531, len(stream))
        assert decoder.feed(memoryview(stream)[start:end]) == end // 8 - 1


def test_any_eight_bytes_are_a_report_so_the_link_must_judge_it() -> None:
    assert ReportDecoder().feed(b"999999999\n") == 4123389851770370361


def test_a_negative_report_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError):
        encode_report(-1)


@pytest.mark.behaviour("S1-65")
def test_a_frame_is_offset_and_size_in_12_bytes_then_the_body() -> None:
    assert encode_transfer_header(406, 203).hex() == "0000000000000196" + "000000cb"
    body = bytes(range(203))
    header, part = TransferDecoder().feed(bytes.fromhex("0000000000000196000000cb") + body)
    assert header == TransferHeader(LogOffset(406), 203)
    assert isinstance(part, BodyPart)
    assert part.is_last
    assert bytes(part.view) == body


@pytest.mark.behaviour("S1-65")
def test_a_heartbeat_is_a_header_of_size_0() -> None:
    decoder = TransferDecoder()
    beat = encode_transfer_header(609, 0)
    assert decoder.feed(beat + beat) == [TransferHeader(LogOffset(609), 0)] * 2


def test_a_header_that_comes_byte_by_byte_is_understood() -> None:
    decoder = TransferDecoder()
    raw = encode_transfer_header(1, 2)
    assert [decoder.feed(raw[i : i + 1]) for i in range(11)] == [[]] * 11
    assert decoder.feed(raw[11:]) == [TransferHeader(LogOffset(1), 2)]


def test_a_body_is_handed_out_as_it_arrives_and_its_last_piece_is_marked() -> None:
    decoder = TransferDecoder()
    header, first = decoder.feed(encode_transfer_header(0, 5) + b"he")
    assert header == TransferHeader(LogOffset(0), 5)
    assert first == BodyPart(memoryview(b"he"), is_last=False)
    second, following = decoder.feed(b"llo" + encode_transfer_header(5, 1))
    assert second == BodyPart(memoryview(b"llo"), is_last=True)
    assert following == TransferHeader(LogOffset(5), 1)


def test_the_pieces_of_a_body_are_views_of_what_was_read() -> None:
    raw = encode_transfer_header(0, 5) + b"hello"
    part = TransferDecoder().feed(raw)[1]
    assert isinstance(part, BodyPart)
    assert part.view.obj is raw


@pytest.mark.parametrize(
    "raw", ["0000000000000196 ffffff35", "ffffffffffffffff 00000001", "0000000000000000 00000065"]
)
def test_a_frame_that_no_master_can_mean_is_refused(raw: str) -> None:
    with pytest.raises(RemoteProtocolError):
        TransferDecoder(max_body_bytes=100).feed(bytes.fromhex(raw))


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    assert TransferDecoder(max_body_bytes=100).feed(encode_transfer_header(0, 100))


@pytest.mark.parametrize(("log_offset", "size_bytes"), [(-1, 0), (0, -1), (0, (4 << 20) + 1)])
def test_a_frame_that_no_slave_would_take_is_not_sent(log_offset: int, size_bytes: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_transfer_header(log_offset, size_bytes)
