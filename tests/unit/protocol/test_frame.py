"""Frames and the stream they come in."""

import tracemalloc

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.protocol.codes import HeaderEncoding, Language, RequestCode, ResponseCode
from tanist.protocol.frame import (
    MAX_FRAME_BYTES,
    Command,
    FrameDecoder,
    encode_command,
    encode_head,
    encode_pull_head,
    encode_send_answer,
    first_request,
    whole_send,
    with_code,
)
from tanist.protocol.headers.pull import PullMessageResponse
from tanist.protocol.headers.send import SendMessageResponse

JSON_FRAME = (
    bytes.fromhex("00000081 0000007b")
    + b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":9,'
    + b'"serializeTypeCurrentRPC":"JSON","version":479}hi'
)
BINARY_FRAME = bytes.fromhex(
    "00000026 01000022 0069 00 01df 00000009 00000000 00000001 72 0000000c 0005 746f706963 00000001 54"
)
ROUTE_REQUEST = Command(105, 9, 0, Language.JAVA, 479, ext_fields={"topic": "T"}, body=b"hi")
BINARY_REQUEST = Command(
    105, 9, 0, Language.JAVA, 479, "r", encoding=HeaderEncoding.BINARY, ext_fields={"topic": "T"}
)


def test_frames_are_written_byte_for_byte_as_rocketmq_writes_them() -> None:
    assert encode_command(ROUTE_REQUEST) == JSON_FRAME
    assert encode_command(BINARY_REQUEST) == BINARY_FRAME


def test_both_encodings_are_read_from_one_stream() -> None:
    assert list(FrameDecoder().feed(JSON_FRAME + BINARY_FRAME + JSON_FRAME)) == [
        ROUTE_REQUEST,
        BINARY_REQUEST,
        ROUTE_REQUEST,
    ]


def test_a_stream_is_read_byte_by_byte() -> None:
    decoder = FrameDecoder()
    stream = JSON_FRAME + BINARY_FRAME + JSON_FRAME
    commands = [command for byte in stream for command in decoder.feed(bytes([byte]))]
    assert commands == [ROUTE_REQUEST, BINARY_REQUEST, ROUTE_REQUEST]


def test_an_incomplete_frame_waits_for_its_rest() -> None:
    decoder = FrameDecoder()
    assert list(decoder.feed(JSON_FRAME[:-1])) == []
    assert list(decoder.feed(b"")) == []
    assert list(decoder.feed(JSON_FRAME[-1:])) == [ROUTE_REQUEST]


def test_a_frame_without_a_body_has_an_empty_one() -> None:
    (command,) = FrameDecoder().feed(BINARY_FRAME)
    assert command.body == b""


def test_a_body_is_a_view_of_what_was_received() -> None:
    (command,) = FrameDecoder().feed(JSON_FRAME)
    assert isinstance(command.body, memoryview)
    assert command.body.obj is JSON_FRAME


def test_a_big_frame_in_small_pieces_costs_its_size_and_little_time() -> None:
    frame = encode_command(Command.request(310, body=bytes(4 * 1024 * 1024)))
    decoder = FrameDecoder()
    tracemalloc.start()
    try:
        pieces = (frame[start : start + 1000] for start in range(0, len(frame), 1000))
        (command,) = [command for piece in pieces for command in decoder.feed(piece)]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(command.body) == 4 * 1024 * 1024
    assert peak_bytes < 3 * len(frame)


@pytest.mark.parametrize(
    "start",
    [
        bytes(8),
        bytes.fromhex("00000003 00000000"),
        bytes.fromhex("7fffffff 00000010"),
        bytes.fromhex("80000000 00000010"),
        bytes.fromhex("ffffffff ffffffff"),
        (MAX_FRAME_BYTES - 3).to_bytes(4) + bytes(4),
        bytes.fromhex("00000010 00000011"),
        bytes.fromhex("00000004 07000000"),
        bytes.fromhex("00000004 00000000"),
        b"GET / HTTP/1.1\r\n",
        bytes.fromhex("1603010200010001fc0303"),
    ],
    ids=[
        "length 0",
        "length 3",
        "length 2^31 - 1",
        "length -2^31",
        "all ones",
        "one byte over the limit",
        "header longer than its frame",
        "unknown encoding",
        "no header",
        "HTTP",
        "TLS",
    ],
)
def test_what_is_no_frame_is_refused_at_its_first_bytes(start: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        list(FrameDecoder().feed(start))


def test_a_frame_up_to_the_limit_is_read() -> None:
    frame = encode_command(Command.request(310, body=bytes(1000)))
    (command,) = FrameDecoder(max_frame_bytes=len(frame)).feed(frame)
    assert len(command.body) == 1000
    with pytest.raises(RemoteProtocolError, match="over the limit"):
        list(FrameDecoder(max_frame_bytes=len(frame) - 1).feed(frame))


def test_commands_before_a_bad_frame_are_not_lost() -> None:
    commands = FrameDecoder().feed(JSON_FRAME + b"\xff" * 8)
    assert next(commands) == ROUTE_REQUEST
    with pytest.raises(RemoteProtocolError):
        next(commands)


def test_a_stream_that_went_bad_stays_bad() -> None:
    decoder = FrameDecoder()
    with pytest.raises(RemoteProtocolError) as first:
        list(decoder.feed(b"\xff" * 8))
    with pytest.raises(RemoteProtocolError) as second:
        list(decoder.feed(JSON_FRAME))
    assert str(second.value) == str(first.value)


def test_a_frame_over_the_limit_is_not_written() -> None:
    with pytest.raises(LocalProtocolError, match="over"):
        encode_head(Command.request(310), MAX_FRAME_BYTES)


def test_a_head_announces_a_body_that_goes_out_by_another_way() -> None:
    head = encode_head(ROUTE_REQUEST, 5)
    (command,) = FrameDecoder().feed(head + b"body!")
    assert command.body == b"body!"


@pytest.mark.parametrize("encoding", HeaderEncoding)
@pytest.mark.parametrize("unique_key", ["7F00000100002A9F18B4AAC2B2F50000", 'my "key"', "", "ключ"])
@pytest.mark.parametrize("code", [ResponseCode.SUCCESS, ResponseCode.FLUSH_SLAVE_TIMEOUT])
@pytest.mark.parametrize("count", [1, 3])
def test_an_answer_to_a_send_from_the_template_is_the_one_written_the_long_way(
    encoding: HeaderEncoding, unique_key: str, code: ResponseCode, count: int
) -> None:
    request = Command(RequestCode.SEND_MESSAGE_V2, -7, encoding=encoding)
    msg_id = ",".join(["7F000001000051AF0000000000000547"] * count)
    offset = QueueOffset(2**63 - 1)
    answer = SendMessageResponse(msg_id=msg_id, queue_id=3, queue_offset=offset, transaction_id=unique_key)
    assert encode_send_answer(
        request, code=code, msg_id=msg_id, queue_id=3, queue_offset=offset, unique_key=unique_key
    ) == encode_command(request.reply(code, answer))


@pytest.mark.parametrize("encoding", HeaderEncoding)
@pytest.mark.parametrize("code", [ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SYSTEM_BUSY, 0, 206])
def test_another_code_changes_nothing_else_of_an_answer(encoding: HeaderEncoding, code: int) -> None:
    request = Command(RequestCode.SEND_MESSAGE_V2, 77, encoding=encoding)
    answer = SendMessageResponse(msg_id="7F00", queue_id=3, queue_offset=QueueOffset(9), transaction_id="A")
    good = encode_command(request.reply(ResponseCode.SUCCESS, answer, body=b"body"))
    assert with_code(good, code) == encode_command(request.reply(code, answer, body=b"body"))


@pytest.mark.parametrize("encoding", HeaderEncoding)
@pytest.mark.parametrize("body", [b"", b"messages"])
def test_the_head_of_a_pull_answer_from_the_template_is_the_one_written_the_long_way(
    encoding: HeaderEncoding, body: bytes
) -> None:
    request = Command(RequestCode.PULL_MESSAGE, 77, encoding=encoding)
    answer = PullMessageResponse(
        suggested_broker_id=1,
        next_begin_offset=QueueOffset(2**63 - 1),
        min_offset=QueueOffset(0),
        max_offset=QueueOffset(9),
    )
    code = ResponseCode.PULL_OFFSET_MOVED
    head = encode_pull_head(
        request,
        code=code,
        outcome="OFFSET_TOO_SMALL",
        suggested_broker_id=1,
        next_offset=2**63 - 1,
        min_offset=0,
        max_offset=9,
        body_bytes=len(body),
    )
    assert head + body == encode_command(request.reply(code, answer, remark="OFFSET_TOO_SMALL", body=body))


def test_a_read_that_is_one_send_is_told_from_all_others() -> None:
    send = encode_command(Command.request(RequestCode.SEND_MESSAGE_V2, body=b"body"))
    whole = whole_send(send)
    assert whole is not None
    (command,) = FrameDecoder().feed(send)
    assert (whole[0], bytes(whole[1])) == (command.header_json, b"body")
    others = [
        encode_command(Command.request(RequestCode.HEART_BEAT)),
        encode_command(Command.request(RequestCode.SEND_MESSAGE_V2, encoding=HeaderEncoding.BINARY)),
        *(send[:size] for size in range(len(send))),
        send + b"\0",
        send + send,
        send[:4] + (len(send) - 7).to_bytes(4, "big") + send[8:],
    ]
    assert [whole_send(other) for other in others] == [None] * len(others)


def test_a_decoder_tells_whether_it_waits_for_the_rest_of_a_frame() -> None:
    frame = encode_command(Command.request(RequestCode.HEART_BEAT))
    decoder = FrameDecoder()
    assert not decoder.partial
    assert list(decoder.feed(frame[:5])) == []
    assert decoder.partial
    assert len(list(decoder.feed(frame[5:]))) == 1
    assert not decoder.partial


@pytest.mark.parametrize("asked", [ROUTE_REQUEST, BINARY_REQUEST])
def test_the_first_request_of_a_stream_is_read_as_soon_as_its_header_is_there(asked: Command) -> None:
    frame = encode_command(asked)
    header_end = len(frame) - len(asked.body)
    for end in range(header_end):
        assert first_request(frame[:end]) is None
    for said in (frame[:header_end], frame, frame + frame):
        first = first_request(said)
        assert first is not None
        assert (first.code, first.language, first.opaque) == (105, Language.JAVA, 9)


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", bytes(16)])
def test_what_begins_with_no_request_has_no_first_one(start: bytes) -> None:
    assert first_request(start) is None
