import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tanist.errors import CorruptRecord, DiskFull
from tanist.model.java_hash import java_hash
from tanist.model.message import Message, SysFlag
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.protocol.record import encode_record
from tanist.store import MessageStore
from tanist.store.disk import File
from tanist.store.dispatch import BATCH_RECORDS
from tests.support import golden
from tests.support.clocks import FakeClock
from tests.support.messages import SMALL, TOPIC, append_all, bodies, make_message, numbered, open_store

SIZE = SMALL.mapped_file_size_commit_log


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(tmp_path / "store") as store:
        yield store


@pytest.fixture
def master(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(tmp_path / "master") as master:
        yield master


def _record(message: Message, *, log_offset: int, queue_offset: int = 0) -> bytes:
    return encode_record(
        message, queue_offset=queue_offset, log_offset=log_offset, store_timestamp_ms=1, store_host=bytes(8)
    )


def _tags_codes(store: MessageStore, topic: str = TOPIC, queue_id: int = 0) -> list[int]:
    queue = store.queues.find(topic, queue_id)
    assert queue is not None
    return [entry.tags_code for entry in queue.entries(queue.min_offset, 100)]


def _found(store: MessageStore, key: str) -> list[bytes]:
    return [bytes(record.body) for record in store.find_by_key(TOPIC, key)]


def test_a_message_is_in_its_queue_when_it_has_been_dispatched(store: MessageStore) -> None:
    store.append(make_message(1))
    assert bodies(store) == []
    assert store.dispatch() == 1
    assert bodies(store) == numbered(1)
    assert store.dispatch() == 0


def test_messages_are_spread_over_their_queues_in_order(store: MessageStore) -> None:
    for number in range(20):
        store.append(make_message(number, queue_id=number % 3, body_bytes=500))
    assert store.dispatch() == 20
    assert store.dispatcher.dispatched_to == store.log.log_end
    for queue_id in range(3):
        assert bodies(store, queue_id=queue_id) == numbered(*range(queue_id, 20, 3))


def test_more_messages_than_a_batch_are_all_dispatched(tmp_path: Path) -> None:
    with open_store(tmp_path, msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 20)) as store:
        for number in range(3000):
            store.append(make_message(number))
        assert store.dispatch() == 3000
        assert bodies(store) == numbered(*range(3000))


def test_dispatch_stops_at_the_limit(store: MessageStore) -> None:
    ends = [store.append(make_message(number)).end for number in range(4)]
    assert store.dispatch(ends[1]) == 2
    assert store.dispatch(ends[2] - 1) == 0
    assert store.dispatch(ends[2]) == 1
    assert store.dispatch(10**9) == 1


def test_records_that_are_dispatched_twice_are_indexed_once(store: MessageStore) -> None:
    for number in range(6):
        store.append(make_message(number, queue_id=number % 2, keys="key"))
    store.dispatch()
    store.dispatcher.rewind(0)
    assert store.dispatch() == 6
    assert bodies(store, queue_id=0) == numbered(0, 2, 4)
    assert _found(store, "key") == numbered(5, 4, 3, 2, 1, 0)


def test_the_queues_are_rocketmqs_to_the_byte(tmp_path: Path) -> None:
    case = golden.load("store_files")["consume_queues"]
    with open_store(tmp_path) as store:
        for record in case["records"]:
            store.append_raw(store.log.log_end, bytes.fromhex(record))
        assert store.dispatch() == len(case["records"])
    for path, key in (("TopicA/3", "queue_of_topic"), (f"{SCHEDULE_TOPIC}/2", "queue_of_delay_level_3")):
        content = (tmp_path / "consumequeue" / path / ("0" * 20)).read_bytes()
        assert content == bytes.fromhex(case[key]).ljust(SMALL.queue_file_bytes, b"\0")


# What an entry and a key say


def test_the_tags_code_is_javas_hash_of_the_tag(store: MessageStore) -> None:
    for tag in ("TagA", "zzzzzzzzzz", ""):
        store.append(make_message(tag=tag))
    store.dispatch()
    assert _tags_codes(store) == [2598919, java_hash("zzzzzzzzzz"), 0]
    assert java_hash("zzzzzzzzzz") < 0


@pytest.mark.parametrize(
    ("level", "delay_ms"),
    [
        ("1", 1_000),
        ("3", 10_000),
        ("18", 7_200_000),
        ("99", 7_200_000),
        ("0003", 10_000),
        ("9" * 5000, 7_200_000),
    ],
    ids=["1", "3", "18", "99", "0003", "nines"],
)
def test_the_tags_code_of_a_delayed_message_is_the_time_at_which_it_is_due(
    tmp_path: Path, level: str, delay_ms: int
) -> None:
    settings = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 14)
    with open_store(tmp_path, settings, clock=FakeClock(now_ms=5_000)) as store:
        store.append(make_message(topic=SCHEDULE_TOPIC, tag="TagA", DELAY=level))
        store.dispatch()
        assert _tags_codes(store, SCHEDULE_TOPIC) == [5_000 + delay_ms]


@pytest.mark.parametrize("delay", ["0", "-1", "soon", "123456789x", "1234567890x", "\u0663"])
def test_a_delayed_message_without_a_level_keeps_its_tag(store: MessageStore, delay: str) -> None:
    store.append(make_message(topic=SCHEDULE_TOPIC, tag="TagA", DELAY=delay))
    store.append(make_message(topic=SCHEDULE_TOPIC, tag="TagA"))
    store.dispatch()
    assert _tags_codes(store, SCHEDULE_TOPIC) == [2598919, 2598919]


def test_a_delay_level_in_another_topic_means_nothing(store: MessageStore) -> None:
    store.append(make_message(tag="TagA", DELAY="3"))
    store.dispatch()
    assert _tags_codes(store) == [2598919]


def test_prepared_and_rolled_back_messages_enter_no_queue(store: MessageStore) -> None:
    kinds = [0, SysFlag.PREPARED, SysFlag.COMMIT, SysFlag.ROLLBACK]
    for number, kind in enumerate(kinds):
        store.append(make_message(number, sys_flag=kind, keys="key"))
    store.append(make_message(4, queue_id=1, sys_flag=SysFlag.PREPARED))
    assert store.dispatch() == 5
    assert bodies(store) == numbered(0, 2)
    assert store.queues.find(TOPIC, 1) is None


def test_rolled_back_messages_have_no_key_and_prepared_ones_do(store: MessageStore) -> None:
    for number, kind in enumerate([0, SysFlag.PREPARED, SysFlag.COMMIT, SysFlag.ROLLBACK]):
        store.append(make_message(number, sys_flag=kind, keys="key", UNIQ_KEY=f"id{number}"))
    store.dispatch()
    assert _found(store, "key") == numbered(2, 1, 0)
    assert _found(store, "id3") == []


def test_a_topic_of_version_2_is_dispatched(store: MessageStore) -> None:
    topic = "%RETRY%" + "g" * 248
    store.append(make_message(1, topic=topic, keys="key"))
    store.dispatch()
    assert bodies(store, topic) == numbered(1)
    assert len(store.find_by_key(topic, "key")) == 1


# What a master sends


def test_a_record_that_is_not_whole_waits_for_its_rest(store: MessageStore, master: MessageStore) -> None:
    first = master.append(make_message(1))
    second = master.append(make_message(2))
    data = bytes(master.log.read_ahead(0, second.end))
    for end in range(len(data)):
        store.append_raw(end, data[end : end + 1])
        store.dispatch()
        assert store.dispatcher.dispatched_to in (0, first.end, second.end)
        assert store.dispatcher.dispatched_to <= store.log.log_end
    assert bodies(store) == numbered(1, 2)


def test_a_blank_that_is_not_whole_waits_for_its_rest(store: MessageStore, master: MessageStore) -> None:
    first = master.append(make_message(1, body_bytes=3000))
    master.append(make_message(2, body_bytes=3000))
    store.append_raw(0, master.log.read_ahead(0, first.end + 100))
    store.dispatch()
    assert store.dispatcher.dispatched_to == first.end
    store.append_raw(store.log.log_end, master.log.read_ahead(store.log.log_end, SIZE))
    store.dispatch()
    assert store.dispatcher.dispatched_to == SIZE


def test_a_queue_begins_late_where_the_log_does(store: MessageStore, master: MessageStore) -> None:
    for number in range(9):
        master.append(make_message(number, body_bytes=1000))
    store.append_raw(2 * SIZE, master.log.read_ahead(2 * SIZE, SIZE))
    store.dispatch()
    queue = store.queues.find(TOPIC, 0)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (6, 9)
    assert bodies(store) == numbered(6, 7, 8)


@pytest.mark.parametrize("topic", ["../../etc", "a/b", "t" * 256])
def test_a_message_whose_topic_can_not_name_a_folder_is_told_and_passed_over(
    store: MessageStore, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = _record(make_message(1, topic=topic, keys="key"), log_offset=0)
    store.append_raw(0, bad + _record(make_message(2), log_offset=len(bad)))
    with caplog.at_level(logging.ERROR):
        assert store.dispatch() == 2
    assert "log_offset=0" in caplog.text
    assert bodies(store) == numbered(2)
    assert len(store.queues) == 1


@pytest.mark.parametrize(("queue_id", "queue_offset"), [(-1, 0), (0, -1)])
def test_a_message_of_no_queue_is_told_and_passed_over(
    store: MessageStore, queue_id: int, queue_offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    bad = _record(make_message(1, queue_id=queue_id), log_offset=0, queue_offset=queue_offset)
    store.append_raw(0, bad + _record(make_message(2, queue_id=7), log_offset=len(bad)))
    with caplog.at_level(logging.ERROR):
        assert store.dispatch() == 2
    assert "log_offset=0" in caplog.text
    assert [key for key, _ in store.queues] == [(TOPIC, 7)]


def test_bytes_that_are_no_record_stop_dispatch_by_name_and_place(store: MessageStore) -> None:
    good = store.append(make_message(1))
    store.append_raw(store.log.log_end, b"\0\0\0\x10" + b"no record at all")
    with pytest.raises(CorruptRecord, match="magic") as caught:
        store.dispatch()
    assert (caught.value.path, caught.value.position) == (store.log.segments[0].path, good.end)
    assert bodies(store) == numbered(1)
    store.truncate_to(good.end)


def test_a_record_of_another_place_stops_dispatch(store: MessageStore) -> None:
    store.append_raw(0, _record(make_message(1), log_offset=4711))
    with pytest.raises(CorruptRecord, match="says it lies at log offset 4711"):
        store.dispatch()
    store.truncate_to(0)


def test_a_delayed_message_stored_at_the_end_of_time_is_due_then(store: MessageStore) -> None:
    store.append_raw(
        0,
        encode_record(
            make_message(topic=SCHEDULE_TOPIC, DELAY="3"),
            queue_offset=0,
            log_offset=0,
            store_timestamp_ms=(1 << 63) - 1,
            store_host=bytes(8),
        ),
    )
    assert store.dispatch() == 1
    assert _tags_codes(store, SCHEDULE_TOPIC) == [(1 << 63) - 1]


# In steps


def test_dispatch_in_steps_does_a_bounded_part_at_a_time(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 20)
    with (
        open_store(tmp_path / "master", settings) as master,
        open_store(tmp_path / "slave", settings) as slave,
    ):
        end = append_all(master, (make_message(number) for number in range(2 * BATCH_RECORDS + 500)))[-1].end
        slave.append_raw(0, master.log.read_ahead(0, end - 1))
        seen = [slave.dispatcher.dispatched_to]
        while slave.dispatch_some():
            seen.append(slave.dispatcher.dispatched_to)
        assert len(seen) > 2
        assert seen == sorted(set(seen))
        assert len(bodies(slave)) == 2 * BATCH_RECORDS + 499
        slave.append_raw(end - 1, master.log.read_ahead(end - 1, 1))
        assert not slave.dispatch_some()
        assert bodies(slave) == numbered(*range(2 * BATCH_RECORDS + 500))


def test_a_step_over_what_was_appended_here_takes_all_of_it(store: MessageStore) -> None:
    for number in range(6):
        store.append(make_message(number))
    assert not store.dispatch_some()
    assert bodies(store) == numbered(*range(6))
    assert not store.dispatch_some()


# A full disk


def test_what_a_full_disk_kept_from_the_queues_comes_when_there_is_room(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(25):
        store.append(make_message(number, queue_id=number % 2, keys="key"))

    def no_space(_path: Path) -> File:
        raise DiskFull(_path, 1)

    with monkeypatch.context() as full:
        full.setattr(store.queues._files, "create", no_space)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(DiskFull):
            store.dispatch()
    store.dispatch()
    assert bodies(store, queue_id=0) == numbered(*range(0, 25, 2))
    assert bodies(store, queue_id=1) == numbered(*range(1, 25, 2))
    assert len(_found(store, "key")) == 25


def test_a_message_with_an_absurd_queue_offset_is_left_out_and_named(
    store: MessageStore, caplog: pytest.LogCaptureFixture
) -> None:
    for queue_offset in (0, 1 << 40, 1):
        store.log.next_queue_offsets[TOPIC, 0] = queue_offset
        store.append(make_message())
    assert store.dispatch() == 3
    queue = store.queues.find(TOPIC, 0)
    assert queue is not None
    assert queue.max_offset == 2
    assert "messages are not queued" in caplog.text


@pytest.mark.parametrize("count", [9, 40, BATCH_RECORDS + 40])
def test_what_was_appended_here_and_what_is_read_from_the_log_are_indexed_alike(
    store: MessageStore, master: MessageStore, count: int
) -> None:
    for number in range(count):
        keys = f"a{number} b" if number % 3 else ""
        flag = (0, SysFlag.PREPARED, SysFlag.COMMIT, SysFlag.ROLLBACK)[number % 4]
        message = make_message(
            number,
            queue_id=number // 4 % 2,
            keys=keys,
            tag=f"t{number % 5}",
            sys_flag=int(flag),
            UNIQ_KEY=f"U{number}",
        )
        master.append(message)
    # The second half is appended when the first has been indexed, and in batches.
    master.dispatch()
    append_all(master, (make_message(count + number, keys="b") for number in range(7)))
    while (end := store.log.log_end) < master.log.log_end:
        store.append_raw(end, master.log.read_ahead(end, SIZE))
    assert master.dispatch() == 7
    assert store.dispatch() == count + 7
    for queue_id in (0, 1):
        assert bodies(store, queue_id=queue_id) == bodies(master, queue_id=queue_id)
        assert _tags_codes(store, queue_id=queue_id) == _tags_codes(master, queue_id=queue_id)
    for key in ("b", "U0", "U1", "U2", "U3", f"a{count - 1}"):
        assert _found(store, key) == _found(master, key)
