"""What was refused is counted."""

from tanist.controller.refusals import Refusals
from tanist.errors import RemoteProtocolError, ResponseError
from tanist.protocol.codes import ResponseCode


def test_refusals_are_counted_by_the_name_of_their_code_and_the_last_are_kept() -> None:
    refusals = Refusals()
    for number in range(30):
        error = ResponseError(ResponseCode.CONTROLLER_INVALID_MASTER, f"number {number}")
        refusals.note(error, peer="p", request_code=1001, at_ms=5)
    assert refusals.counts == {"CONTROLLER_INVALID_MASTER": 30}
    assert len(refusals.last) == 10
    assert refusals.last[-1].reason == "number 29"


def test_what_is_no_request_and_what_is_our_fault_have_kinds_of_their_own() -> None:
    refusals = Refusals()
    for error in (RemoteProtocolError("x"), RuntimeError("y"), ResponseError(987_654, "z")):
        refusals.note(error, peer="p", request_code=1001, at_ms=5)
    assert refusals.counts == {"BAD_INPUT": 1, "MISTAKE": 1, "987654": 1}


def test_of_a_reason_that_quotes_what_was_sent_the_beginning_is_kept() -> None:
    refusals = Refusals()
    error = ResponseError(ResponseCode.CONTROLLER_INVALID_REQUEST, "x" * 1_000_000)
    assert refusals.note(error, peer="p", request_code=1001, at_ms=5).reason == "x" * 1024
