"""What is tried again, what is not, and what a caller is told in the end."""

import pytest

from tanist.client.errors import NoRoute, SendFailed
from tanist.client.sending.attempts import Attempts, is_master_gone, is_of_the_broker, is_route_old
from tanist.errors import ConnectFailed, ConnectionLost, MQError, RequestTimeout, TooBusy
from tanist.protocol import Command, ResponseCode
from tanist.protocol.response_errors import NotMaster, error_of

REFUSED = ConnectFailed("10.0.0.7:10911", "refused")
LOST = ConnectionLost("10.0.0.7:10911", "reset")
LATE = RequestTimeout("10.0.0.7:10911", 310, 3)
BUSY = TooBusy("10.0.0.7:10911", "much waits")


def refusal(code: ResponseCode) -> MQError:
    return error_of(Command(code))


NAMES_ANOTHER = NotMaster(ResponseCode.SERVICE_NOT_AVAILABLE, "a slave", master_address="10.0.0.8:10911")
NAMES_NOBODY = NotMaster(ResponseCode.SERVICE_NOT_AVAILABLE, "a slave", master_address=None)
NOT_TAKEN = [
    *(REFUSED, NoRoute("T", "no master"), refusal(ResponseCode.GO_AWAY), NAMES_ANOTHER, NAMES_NOBODY),
]


@pytest.mark.parametrize(
    "error",
    [
        *(LOST, BUSY),
        *(
            refusal(code)
            for code in (
                ResponseCode.SYSTEM_ERROR,
                ResponseCode.SYSTEM_BUSY,
                ResponseCode.SERVICE_NOT_AVAILABLE,
                ResponseCode.NO_PERMISSION,
                ResponseCode.TOPIC_NOT_EXIST,
            )
        ),
    ],
)
def test_what_another_broker_may_do_is_tried_until_the_tries_are_used_up(error: MQError) -> None:
    attempts = Attempts("T", retries=1, deadline_s=10)
    attempts.on_failure("a", error, now_s=1)
    assert attempts.failed_broker == "a"
    with pytest.raises(SendFailed) as failed:
        attempts.on_failure("b", error, now_s=2)
    assert [broker for broker, _ in failed.value.failures] == ["a", "b"]
    assert failed.value.__cause__ is error


@pytest.mark.parametrize("error", NOT_TAKEN)
def test_a_try_that_nobody_took_is_not_counted_and_only_time_ends_them(error: MQError) -> None:
    attempts = Attempts("T", retries=1, deadline_s=10)
    for number in range(20):
        attempts.on_failure("a", error, now_s=number / 10)
    assert attempts.left == 1
    with pytest.raises(SendFailed) as failed:
        attempts.on_failure("a", error, now_s=10)
    # It is told once.
    assert failed.value.failures == (("a", error),)
    assert not failed.value.may_be_stored


@pytest.mark.parametrize("error", NOT_TAKEN)
def test_who_wants_one_try_gets_one(error: MQError) -> None:
    with pytest.raises(SendFailed):
        Attempts("T", retries=0, deadline_s=10).on_failure("a", error, now_s=1)


def test_a_broker_that_failed_is_tried_again_after_a_pause_and_another_or_another_master_at_once() -> None:
    attempts = Attempts("T", retries=5, deadline_s=10)
    attempts.on_failure("a", LOST, now_s=1, address="a:1")
    assert attempts.needs_pause("a", "a:1")
    assert not attempts.needs_pause("a", "a:2")
    assert not attempts.needs_pause("b", "b:1")
    attempts.on_failure("b", REFUSED, now_s=2, address="b:1")
    attempts.on_failure("a", NAMES_ANOTHER, now_s=2, address="a:2")
    assert attempts.needs_pause("a", "a:1")
    assert attempts.needs_pause("a", "a:2")
    assert attempts.needs_pause("b", "b:1")


@pytest.mark.parametrize("error", [*NOT_TAKEN, LOST, LATE, refusal(ResponseCode.SERVICE_NOT_AVAILABLE)])
def test_another_master_is_looked_for_after_what_a_master_would_not_say(error: MQError) -> None:
    assert is_master_gone(error)


@pytest.mark.parametrize(
    "error", [BUSY, refusal(ResponseCode.SYSTEM_BUSY), refusal(ResponseCode.NO_PERMISSION)]
)
def test_what_a_master_may_say_is_no_reason_to_look_for_another(error: MQError) -> None:
    assert not is_master_gone(error)


@pytest.mark.parametrize("code", [ResponseCode.MESSAGE_ILLEGAL, ResponseCode.INVALID_PARAMETER])
def test_what_no_broker_takes_is_raised_at_once(code: ResponseCode) -> None:
    error = refusal(code)
    with pytest.raises(type(error)):
        Attempts("T", retries=2, deadline_s=10).on_failure("a", error, now_s=1)


@pytest.mark.parametrize(
    ("error", "may_be_stored"), [(REFUSED, False), (BUSY, False), (LOST, True), (LATE, True)]
)
def test_the_caller_is_told_whether_a_broker_may_have_the_message(
    error: MQError, may_be_stored: bool
) -> None:
    with pytest.raises(SendFailed) as failed:
        Attempts("T", retries=0, deadline_s=10).on_failure("a", error, now_s=1)
    assert failed.value.may_be_stored is may_be_stored
    assert ("may be stored" in str(failed.value)) is may_be_stored


def test_a_doubt_is_not_forgotten_when_a_later_try_is_refused_for_good() -> None:
    attempts = Attempts("T", retries=2, deadline_s=10)
    attempts.on_failure("a", LOST, now_s=1)
    with pytest.raises(SendFailed, match="may be stored"):
        attempts.on_failure("b", refusal(ResponseCode.MESSAGE_ILLEGAL), now_s=2)


@pytest.mark.parametrize("error", [LOST, LATE])
def test_what_may_be_stored_is_not_tried_again_where_it_must_not_be_stored_twice(error: MQError) -> None:
    attempts = Attempts("T", retries=2, deadline_s=10, may_store_twice=False)
    attempts.on_failure("a", REFUSED, now_s=1)
    with pytest.raises(SendFailed) as failed:
        attempts.on_failure("b", error, now_s=2)
    assert failed.value.may_be_stored


def test_there_is_no_try_after_the_deadline() -> None:
    with pytest.raises(SendFailed, match="tries: 1"):
        Attempts("T", retries=5, deadline_s=10).on_failure("a", LATE, now_s=10)


def test_pauses_before_the_same_broker_grow() -> None:
    attempts = Attempts("T", retries=5, deadline_s=10)
    pauses = [attempts.next_pause_s(0.5) for _ in range(3)]
    assert 0 < pauses[0] < pauses[1] < pauses[2]


def test_what_concerns_only_the_topic_is_not_held_against_the_broker() -> None:
    assert is_of_the_broker(LATE)
    assert is_of_the_broker(refusal(ResponseCode.SYSTEM_BUSY))
    assert not is_of_the_broker(refusal(ResponseCode.TOPIC_NOT_EXIST))
    assert not is_of_the_broker(refusal(ResponseCode.NO_PERMISSION))


def test_routes_are_asked_for_again_after_what_a_right_route_would_not_lead_to() -> None:
    assert is_route_old(REFUSED)
    assert is_route_old(refusal(ResponseCode.TOPIC_NOT_EXIST))
    assert is_route_old(NoRoute("T", "no master"))
    assert not is_route_old(refusal(ResponseCode.SYSTEM_BUSY))
