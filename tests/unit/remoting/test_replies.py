import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError, ResponseError
from tanist.protocol import Command, FrameDecoder, HeaderEncoding, encode_command
from tanist.remoting.replies import frame_answer, frame_failure, frame_unsupported, is_expected

REQUEST = Command.request(105, opaque=9)
ONE_WAY = Command.request(105, opaque=9, is_one_way=True)


def read(frame: bytes | None) -> Command:
    assert frame is not None
    (command,) = FrameDecoder().feed(frame)
    return command


def test_an_answer_is_framed_and_a_frame_is_left_as_it_is() -> None:
    answer = REQUEST.reply(body=b"x")
    assert frame_answer(REQUEST, answer) == encode_command(answer)
    assert frame_answer(REQUEST, b"a whole frame") == b"a whole frame"
    assert frame_answer(REQUEST, None) is None


def test_a_one_way_request_gets_no_frame_whatever_happens() -> None:
    assert frame_answer(ONE_WAY, ONE_WAY.reply()) is None
    assert frame_answer(ONE_WAY, b"a whole frame") is None
    assert frame_failure(ONE_WAY, ValueError("x")) is None
    assert frame_unsupported(ONE_WAY) is None


def test_a_failure_is_code_1_with_the_text_of_the_error() -> None:
    answer = read(frame_failure(REQUEST, RemoteProtocolError("field topic is missing")))
    assert (answer.code, answer.remark, answer.opaque) == (1, "field topic is missing", 9)
    assert answer.is_response
    assert not answer.is_one_way
    assert read(frame_failure(REQUEST, KeyError("broker-a"))).remark == "KeyError: 'broker-a'"


def test_a_handler_chooses_the_code_by_what_it_raises() -> None:
    answer = read(frame_failure(REQUEST, ResponseError(17, "no such topic")))
    assert (answer.code, answer.remark) == (17, "no such topic")


def test_the_fields_of_a_refusal_are_answered_with_it() -> None:
    answer = read(frame_failure(REQUEST, ResponseError(14, "a slave", ext={"masterAddress": "10.0.0.8:1"})))
    assert (answer.code, answer.ext["masterAddress"]) == (14, "10.0.0.8:1")


def test_an_unsupported_request_code_is_named() -> None:
    answer = read(frame_unsupported(Command.request(4711, opaque=3)))
    assert (answer.code, answer.remark) == (3, "request code 4711 is not supported")


def test_the_answer_has_the_encoding_of_the_request() -> None:
    binary = Command.request(105, encoding=HeaderEncoding.BINARY)
    assert read(frame_failure(binary, ValueError("x"))).encoding is HeaderEncoding.BINARY
    # A code over 32767 does not fit there.
    assert read(frame_failure(binary, ResponseError(200050, "no"))).code == 1


def test_a_remark_is_bounded_and_can_be_sent() -> None:
    assert read(frame_failure(REQUEST, ValueError("\ud800"))).remark == "ValueError: ?"
    assert len(read(frame_failure(REQUEST, ValueError("x" * 100_000))).remark or "") == 1024


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RemoteProtocolError("x"), True),
        (ResponseError(1, "x"), True),
        (LocalProtocolError("x"), False),
        (KeyError("x"), False),
    ],
)
def test_mistakes_of_ours_are_told_from_what_a_peer_caused(error: Exception, expected: bool) -> None:
    assert is_expected(error) is expected
