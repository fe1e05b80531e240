from collections.abc import Callable
from pathlib import Path

import pytest

from tanist.broker.reading import Outcome, QueueRead, read_queue
from tanist.protocol.queue_entry import EntryFields
from tanist.protocol.record import decode_record
from tanist.protocol.tags import tags_code
from tanist.store import MessageStore
from tests.support.clocks import FakeClock
from tests.support.messages import TOPIC, append_all, make_message, open_store


@pytest.fixture
def store(tmp_path: Path) -> MessageStore:
    return open_store(tmp_path)


def everything(_entry: EntryFields) -> bool:
    return True


def read(
    store: MessageStore,
    queue_offset: int,
    *,
    queue_id: int = 0,
    max_count: int = 32,
    max_bytes: int = 1 << 20,
    is_wanted: Callable[[EntryFields], bool] = everything,
    has_time: Callable[[], bool] | None = None,
) -> QueueRead:
    return read_queue(
        store,
        TOPIC,
        queue_id,
        queue_offset,
        max_count=max_count,
        max_bytes=max_bytes,
        is_wanted=is_wanted,
        has_time=has_time,
    )


def fill(store: MessageStore, count: int, *, tags: tuple[str, ...] = ("",), queue_ids: int = 1) -> None:
    for number in range(count):
        store.append(make_message(number, tag=tags[number % len(tags)], queue_id=number % queue_ids))
    store.dispatch()


def bodies(found: QueueRead) -> list[bytes]:
    """Cut the pieces into records again, as a consumer does."""
    data = memoryview(b"".join(found.pieces))
    result: list[bytes] = []
    while data:
        record = decode_record(data)
        result.append(bytes(record.body))
        data = data[record.size_bytes :]
    assert len(result) == found.message_count
    return result


def test_messages_are_read_in_order_and_next_follows_the_last(store: MessageStore) -> None:
    fill(store, 10)
    found = read(store, 3, max_count=4)
    assert found.outcome is Outcome.FOUND
    assert bodies(found) == [f"message {number} ".encode() for number in (3, 4, 5, 6)]
    assert (found.next_offset, found.min_offset, found.max_offset) == (7, 0, 10)


def test_messages_that_lie_one_behind_the_other_are_one_piece(store: MessageStore) -> None:
    fill(store, 5)
    assert len(read(store, 0).pieces) == 1


def test_messages_of_several_files_and_queues_are_put_together(store: MessageStore) -> None:
    fill(store, 120, queue_ids=2)
    assert len(store.log.segments) > 2
    found = read(store, 0, queue_id=1, max_count=60)
    assert bodies(found) == [f"message {number} ".encode() for number in range(1, 120, 2)]


def test_no_more_bytes_than_asked_for_but_one_message_in_any_case(store: MessageStore) -> None:
    fill(store, 3)
    size = len(read(store, 0, max_count=1).pieces[0])
    assert read(store, 0, max_bytes=1).message_count == 1
    assert read(store, 0, max_bytes=2 * size - 1).message_count == 1
    assert read(store, 0, max_bytes=2 * size).message_count == 2


@pytest.mark.parametrize("queue_offset", [0, 7, -1])
def test_a_queue_that_is_not_there_has_no_message(store: MessageStore, queue_offset: int) -> None:
    found = read(store, queue_offset, queue_id=5)
    assert found.outcome is Outcome.NO_MESSAGE_IN_QUEUE
    assert (found.next_offset, found.min_offset, found.max_offset) == (0, 0, 0)


@pytest.mark.parametrize(
    ("queue_offset", "outcome", "next_offset"),
    [
        (10, Outcome.OFFSET_OVERFLOW_ONE, 10),
        (11, Outcome.OFFSET_OVERFLOW_BADLY, 10),
        (2**62, Outcome.OFFSET_OVERFLOW_BADLY, 10),
        (-1, Outcome.OFFSET_TOO_SMALL, 0),
    ],
)
def test_an_offset_outside_the_queue_is_told_where_to_go(
    store: MessageStore, queue_offset: int, outcome: Outcome, next_offset: int
) -> None:
    fill(store, 10)
    found = read(store, queue_offset)
    assert (found.outcome, found.next_offset, found.max_offset) == (outcome, next_offset, 10)
    assert not found.pieces


def test_an_offset_whose_message_is_deleted_is_too_small(tmp_path: Path) -> None:
    clock = FakeClock(now_ms=10_000_000_000_000)
    store = open_store(tmp_path, clock=clock)
    fill(store, 120)
    store.flush()
    store.clean(is_asked=True)
    low = read(store, 0).min_offset
    assert low > 0
    assert (read(store, 0).outcome, read(store, low - 1).next_offset) == (Outcome.OFFSET_TOO_SMALL, low)
    assert read(store, low).outcome is Outcome.FOUND


def test_what_is_not_wanted_is_passed_over(store: MessageStore) -> None:
    fill(store, 9, tags=("A", "B", "C"))
    code = tags_code(b"B")
    found = read(store, 0, is_wanted=lambda entry: entry[2] == code)
    assert bodies(found) == [b"message 1 ", b"message 4 ", b"message 7 "]
    assert found.next_offset == 9


def test_a_full_answer_stops_behind_its_last_message(store: MessageStore) -> None:
    fill(store, 9, tags=("A", "B", "C"))
    code = tags_code(b"B")
    assert read(store, 0, max_count=1, is_wanted=lambda entry: entry[2] == code).next_offset == 2


def test_a_look_that_finds_nothing_ends_after_800_entries(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for _ in range(46):
        append_all(store, (make_message(number) for number in range(20)))
    store.dispatch()
    found = read(store, 10, is_wanted=lambda _: False)
    assert (found.outcome, found.next_offset) == (Outcome.NO_MATCHED_MESSAGE, 810)
    found = read(store, 810, is_wanted=lambda _: False)
    assert (found.outcome, found.next_offset) == (Outcome.NO_MATCHED_MESSAGE, 920)


def test_a_look_without_time_ends_after_one_entry_that_it_has_looked_at(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, 40, tags=("A", "B"))
    found = read(store, 3, is_wanted=lambda _: False, has_time=lambda: False)
    assert (found.outcome, found.next_offset) == (Outcome.NO_MATCHED_MESSAGE, 4)
    found = read(store, 3, has_time=lambda: False)
    assert (found.outcome, found.message_count, found.next_offset) == (Outcome.FOUND, 1, 4)


def test_a_look_that_has_time_is_as_long_as_any_other(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, 40)
    assert read(store, 0, is_wanted=lambda _: False, has_time=lambda: True).next_offset == 40
    assert read(store, 0, max_count=10, has_time=lambda: True).next_offset == 10
