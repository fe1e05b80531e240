import os
from pathlib import Path

import pytest

from tanist.errors import CorruptRecord, ForeignFile
from tanist.protocol.record import Record, encode_record
from tanist.store.reader import StoreReader
from tests.support.messages import SMALL, TOPIC, kill, make_message, numbered, open_store, tree


def _filled(root: Path, *, is_closed: bool = True) -> list[int]:
    """Nine messages in two queues over three files; where each lies."""
    store = open_store(root)
    starts: list[int] = [
        store.append(make_message(number, queue_id=number % 2, body_bytes=1000)).log_offset
        for number in range(9)
    ]
    store.dispatch()
    store.queues.write()
    if is_closed:
        store.close()
    else:
        kill(store)
    return starts


def _body(record: Record) -> bytes:
    return bytes(record.body).rstrip(b".")


def _damage(root: Path, log_offset: int) -> None:
    path = root / "commitlog" / f"{log_offset - log_offset % 4096:020d}"
    content = bytearray(path.read_bytes())
    content[log_offset % 4096 + 100] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_store_is_read_and_not_changed(tmp_path: Path, is_closed: bool) -> None:
    starts = _filled(tmp_path, is_closed=is_closed)
    before = tree(tmp_path)
    with StoreReader(tmp_path) as reader:
        assert reader.was_closed is is_closed
        assert [_body(record) for record in reader.records()] == numbered(*range(9))
        assert [_body(record) for record in reader.records(starts[4])] == numbered(*range(4, 9))
        assert [_body(record) for record in reader.queue_records(TOPIC, 1)] == numbered(1, 3, 5, 7)
        assert [_body(record) for record in reader.queue_records(TOPIC, 0, 3)] == numbered(6, 8)
        assert list(reader.queue_records("nowhere", 0)) == []
    assert tree(tmp_path) == before


def test_a_store_is_read_while_a_broker_has_it_open(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.append(make_message(1))
        store.dispatch()
        store.checkpoint()
        with StoreReader(tmp_path) as reader:
            assert [_body(record) for record in reader.queue_records(TOPIC, 0)] == numbered(1)
        store.append(make_message(2))


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_file_that_is_being_made_is_not_there_yet(tmp_path: Path, is_begun: bool) -> None:
    _filled(tmp_path, is_closed=False)
    # The queue comes before all others, and its size is not taken for theirs.
    queue_file = tmp_path / "consumequeue" / "A" / "0" / f"{0:020d}"
    queue_file.parent.mkdir(parents=True)
    log_file = tmp_path / "commitlog" / f"{3 * SMALL.mapped_file_size_commit_log:020d}"
    for path, whole_bytes in (
        (queue_file, SMALL.mapped_file_size_consume_queue),
        (log_file, SMALL.mapped_file_size_commit_log),
    ):
        path.touch()
        os.truncate(path, 1 if is_begun else whole_bytes - 1)
    before = tree(tmp_path)
    with StoreReader(tmp_path) as reader:
        assert [_body(record) for record in reader.records()] == numbered(*range(9))
        assert [_body(record) for record in reader.queue_records(TOPIC, 1)] == numbered(1, 3, 5, 7)
        assert list(reader.queue_records("A", 0)) == []
    assert tree(tmp_path) == before


def test_reading_the_log_ends_before_the_first_damage(tmp_path: Path) -> None:
    starts = _filled(tmp_path)
    _damage(tmp_path, starts[4])
    with StoreReader(tmp_path) as reader:
        assert [_body(record) for record in reader.records()] == numbered(0, 1, 2, 3)


def test_reading_a_queue_tells_of_damage_by_file_and_place(tmp_path: Path) -> None:
    starts = _filled(tmp_path)
    _damage(tmp_path, starts[4])
    with StoreReader(tmp_path) as reader:
        with pytest.raises(CorruptRecord, match="checksum") as caught:
            list(reader.queue_records(TOPIC, 0))
        assert caught.value.position == starts[4] - 4096
        assert [_body(record) for record in reader.queue_records(TOPIC, 1)] == numbered(1, 3, 5, 7)


def test_a_gap_in_a_queue_is_passed_over(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for number, queue_offset in enumerate((0, 5)):
            raw = encode_record(
                make_message(number),
                queue_offset=queue_offset,
                log_offset=store.log.log_end,
                store_timestamp_ms=1,
                store_host=bytes(8),
            )
            store.append_raw(store.log.log_end, raw)
    with StoreReader(tmp_path) as reader:
        assert [_body(record) for record in reader.queue_records(TOPIC, 0)] == numbered(0, 1)


def test_a_queue_is_read_from_the_first_message_that_the_log_still_has(tmp_path: Path) -> None:
    _filled(tmp_path)
    (tmp_path / "commitlog" / ("0" * 20)).unlink()
    with StoreReader(tmp_path) as reader:
        assert [_body(record) for record in reader.queue_records(TOPIC, 0, 0)] == numbered(4, 6, 8)


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ForeignFile, match="there is no store here"):
        StoreReader(tmp_path)
