import pytest

from tanist.model.integers import INT32_MAX
from tanist.remoting.outstanding import OutstandingRequests


@pytest.fixture
def requests() -> OutstandingRequests[str]:
    return OutstandingRequests(1000)


def test_an_answer_is_taken_by_the_one_who_waits_for_it(requests: OutstandingRequests[str]) -> None:
    first, second = requests.add("first", 5), requests.add("second", 5)
    assert requests.take(second) == "second"
    assert requests.take(first) == "first"


def test_an_answer_nobody_waits_for_is_nobodys(requests: OutstandingRequests[str]) -> None:
    opaque = requests.add("first", 5)
    assert requests.take(opaque + 1) is None
    requests.take(opaque)
    assert requests.take(opaque) is None


def test_requests_expire_at_their_own_deadlines_whatever_their_order(
    requests: OutstandingRequests[str],
) -> None:
    requests.add("late", 9)
    requests.add("soon", 3)
    assert requests.expire(2.9) == []
    assert requests.expire(3) == ["soon"]
    assert requests.expire(8.9) == []
    assert requests.expire(9) == ["late"]
    assert len(requests) == 0


def test_the_next_deadline_is_that_of_a_request_that_still_waits(requests: OutstandingRequests[str]) -> None:
    assert requests.next_deadline_s is None
    soon, _late = requests.add("soon", 3), requests.add("late", 9)
    assert requests.next_deadline_s == 3
    requests.take(soon)
    assert requests.next_deadline_s == 9


def test_an_answered_request_does_not_expire(requests: OutstandingRequests[str]) -> None:
    requests.take(requests.add("answered", 3))
    assert requests.expire(4) == []


def test_all_who_wait_are_told_when_the_connection_goes(requests: OutstandingRequests[str]) -> None:
    requests.add("first", 3)
    requests.add("second", 9)
    assert requests.drain() == ["first", "second"]
    assert requests.drain() == []
    assert requests.next_deadline_s is None


def test_there_is_a_limit() -> None:
    requests = OutstandingRequests[str](2)
    requests.add("first", 3)
    assert not requests.is_full
    opaque = requests.add("second", 3)
    assert requests.is_full
    requests.take(opaque)
    assert not requests.is_full


def test_opaques_stay_within_java_ints_and_skip_those_in_use(requests: OutstandingRequests[str]) -> None:
    still_waiting = requests.add("slow", 1e9)
    assert still_waiting == 1
    requests._last_opaque = INT32_MAX - 1
    assert [requests.add("next", 5) for _ in range(3)] == [INT32_MAX, 0, 2]


def test_deadlines_of_answered_requests_do_not_pile_up(requests: OutstandingRequests[str]) -> None:
    for number in range(10_000):
        requests.take(requests.add("quick", float(number)))
    assert len(requests._deadlines) < 200
