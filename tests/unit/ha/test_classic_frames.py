from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.ha.classic_frames import record_end_behind, whole_records
from tanist.store import MessageStore
from tests.support.messages import make_message, open_store

_BATCH_BYTES = 512


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(tmp_path) as store:
        yield store


def _append(store: MessageStore, *body_bytes: int) -> list[int]:
    """Append messages of these sizes; where each begins."""
    return [store.append(make_message(body_bytes=size)).log_offset for size in body_bytes]


def test_a_frame_ends_where_the_last_record_ends_that_fits(store: MessageStore) -> None:
    starts = _append(store, 100, 100, 100, 100)
    ahead = store.log.read_ahead(0, _BATCH_BYTES)
    assert whole_records(ahead, _BATCH_BYTES) == starts[2]
    assert starts[2] <= _BATCH_BYTES < starts[3]


def test_what_goes_to_the_end_of_the_log_is_a_frame_as_it_is(store: MessageStore) -> None:
    _append(store, 10, 10)
    ahead = store.log.read_ahead(0, _BATCH_BYTES)
    assert whole_records(ahead, _BATCH_BYTES) == store.log.log_end == len(ahead)


def test_of_a_record_that_is_larger_than_a_frame_none_is_whole(store: MessageStore) -> None:
    _append(store, 3 * _BATCH_BYTES)
    assert whole_records(store.log.read_ahead(0, _BATCH_BYTES), _BATCH_BYTES) == 0


def test_a_slave_can_stop_where_a_record_begins_or_the_log_ends(store: MessageStore) -> None:
    starts = _append(store, 100, 100)
    for offset in (*starts, store.log.log_end):
        assert record_end_behind(store.log, offset, max_bytes=_BATCH_BYTES) == offset


def test_a_slave_can_stop_at_each_piece_of_a_record_that_is_larger_than_a_frame(store: MessageStore) -> None:
    _, start, end = _append(store, 100, 3 * _BATCH_BYTES, 100)
    for piece in (1, 2, 3):
        stop = start + piece * _BATCH_BYTES
        assert record_end_behind(store.log, stop, max_bytes=_BATCH_BYTES) == end


def test_a_slave_can_stop_within_the_blank_at_the_end_of_a_file(store: MessageStore) -> None:
    blank = _append(store, 1000)[0] + store.log.log_end
    _append(store, 3800)
    assert record_end_behind(store.log, blank + _BATCH_BYTES, max_bytes=_BATCH_BYTES) == 4096


@pytest.mark.parametrize("off_by", [-1, 1, 77])
def test_a_slave_can_not_stop_anywhere_else(store: MessageStore, off_by: int) -> None:
    _, start, _ = _append(store, 100, 3 * _BATCH_BYTES, 100)
    assert record_end_behind(store.log, start + off_by, max_bytes=_BATCH_BYTES) is None
    assert record_end_behind(store.log, start + _BATCH_BYTES + off_by, max_bytes=_BATCH_BYTES) is None


def test_a_piece_behind_a_record_that_is_smaller_is_none_of_it(store: MessageStore) -> None:
    _append(store, 100, 1000)
    assert record_end_behind(store.log, _BATCH_BYTES, max_bytes=_BATCH_BYTES) is None


def test_a_damaged_log_is_sent_as_it_is() -> None:
    damaged = memoryview(bytes(_BATCH_BYTES))
    assert whole_records(damaged, _BATCH_BYTES) == 0
