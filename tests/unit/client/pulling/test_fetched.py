"""What the answer to a pull means."""

import pytest

from tanist.client.pulling.fetched import Fetched, Outcome, is_answer, read_answer
from tanist.errors import RemoteProtocolError
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullMessageResponse
from tests.support.messages import TOPIC
from tests.support.received import QUEUE, at, records

EVERYTHING = subscribe(TOPIC, "*", sub_version=0)
R = ResponseCode


def answer(code: int, *, next_offset: int = 0, body: bytes = b"", offset_delta: int | None = None) -> Command:
    header = PullMessageResponse(
        suggested_broker_id=1,
        next_begin_offset=at(next_offset),
        min_offset=at(2),
        max_offset=at(90),
        offset_delta=offset_delta,
    )
    return Command(code, typed_header=header, body=body)


def read(command: Command, offset: int, subscription: SubscriptionData = EVERYTHING) -> Fetched:
    return read_answer(command, QUEUE, at(offset), subscription=subscription, broker_id=0)


def offsets(fetched: Fetched) -> list[int]:
    return [message.queue_offset for message in fetched.messages]


def test_messages_that_were_found_come_with_where_to_go_on() -> None:
    fetched = read(answer(R.SUCCESS, next_offset=9, body=records([4, 5, 7])), 3)
    assert (fetched.outcome, offsets(fetched), fetched.next_offset) == (Outcome.FOUND, [4, 5, 7], 9)
    assert (fetched.min_offset, fetched.max_offset) == (2, 90)
    assert (fetched.broker_id, fetched.suggested_id) == (0, 1)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(R.PULL_NOT_FOUND, Outcome.NOTHING), (R.PULL_RETRY_IMMEDIATELY, Outcome.RETRY)],
)
def test_nothing_found_goes_on_and_never_back(code: int, outcome: Outcome) -> None:
    assert read(answer(code, next_offset=8), 5).outcome is outcome
    assert read(answer(code, next_offset=8), 5).next_offset == 8
    assert read(answer(code, next_offset=0), 5).next_offset == 5


@pytest.mark.parametrize("next_offset", [0, 50])
def test_a_queue_that_moved_says_where_to_go_back_or_on_to(next_offset: int) -> None:
    fetched = read(answer(R.PULL_OFFSET_MOVED, next_offset=next_offset), 5)
    assert (fetched.outcome, fetched.next_offset) == (Outcome.MOVED, next_offset)
    assert fetched.goes_back_from(at(5)) is (next_offset == 0)


def test_refusals_are_no_answers() -> None:
    assert is_answer(answer(R.PULL_NOT_FOUND))
    assert not is_answer(answer(R.NO_PERMISSION))


def test_a_message_whose_tag_only_has_the_hash_of_a_wanted_one_is_passed_over() -> None:
    # "Aa" and "BB" have the same hash in Java.
    body = records([0], tag="Aa") + records([1], tag="BB") + records([2])
    fetched = read(answer(R.SUCCESS, next_offset=3, body=body), 0, subscribe(TOPIC, "BB", sub_version=0))
    assert (offsets(fetched), fetched.next_offset) == ([1], 3)


def test_an_answer_without_any_wanted_tag_is_to_be_retried_behind_it() -> None:
    found = answer(R.SUCCESS, next_offset=1, body=records([0], tag="Aa"))
    fetched = read(found, 0, subscribe(TOPIC, "BB || C", sub_version=0))
    assert (fetched.outcome, offsets(fetched), fetched.next_offset) == (Outcome.RETRY, [], 1)


def test_what_an_sql_expression_chose_is_not_chosen_again_by_tags() -> None:
    by_sql = SubscriptionData(topic=TOPIC, expression="a > 3", tags=frozenset({"x"}), expression_type=SQL92)
    assert offsets(read(answer(R.SUCCESS, next_offset=1, body=records([0])), 0, by_sql)) == [0]


def test_offsets_of_a_queue_that_was_moved_between_brokers_are_shifted() -> None:
    found = answer(R.SUCCESS, next_offset=102, body=records([0, 1]), offset_delta=100)
    assert offsets(read(found, 100)) == [100, 101]


@pytest.mark.parametrize(
    ("found", "next_offset"),
    [([4, 5], 6), ([6, 6], 7), ([7, 6], 8), ([5, 6], 6), ([], 5)],
    ids=["before the one asked for", "twice", "backwards", "past the next", "none"],
)
def test_offsets_that_make_no_sense_are_refused(found: list[int], next_offset: int) -> None:
    with pytest.raises(RemoteProtocolError, match="from 5 was answered with offsets"):
        read(answer(R.SUCCESS, next_offset=next_offset, body=records(found)), 5)


def test_records_that_can_not_be_read_are_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        read(answer(R.SUCCESS, next_offset=2, body=records([0, 1])[:-3]), 0)


def test_an_answer_that_does_not_say_where_to_go_on_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="suggestWhichBrokerId is missing"):
        read(Command(R.PULL_NOT_FOUND, ext_fields={"nextBeginOffset": "1"}), 0)
