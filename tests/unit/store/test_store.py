import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tanist.errors import (
    ConfigError,
    DiskFull,
    LocalProtocolError,
    NotWritable,
    OffsetOutOfRange,
    RemoteProtocolError,
)
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.protocol.batch import encode_batch
from tanist.protocol.record import encode_record
from tanist.store import Boundary, FlushMode, MessageStore, plain_records
from tanist.store.disk import File
from tanist.store.epoch_file import EpochFile
from tanist.store.segment import segment_name
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk
from tests.support.mapped_pages import pages_alone
from tests.support.messages import SMALL, TOPIC, bodies, kill, make_message, numbered, open_store, tree

SIZE = SMALL.mapped_file_size_commit_log


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(tmp_path) as store:
        yield store


def _fill(store: MessageStore, count: int = 9) -> list[int]:
    """Messages of a thousand bytes, three to a file, with keys, in the indexes; where each lies."""
    starts: list[int] = [
        store.append(make_message(number, body_bytes=1000, keys="all")).log_offset for number in range(count)
    ]
    store.dispatch()
    return starts


def _found(store: MessageStore, key: str, topic: str = TOPIC, **limits: int) -> list[bytes]:
    found = store.find_by_key(topic, key, **limits)  # pyright: ignore[reportArgumentType]
    return [bytes(record.body).rstrip(b".") for record in found]


# Writing


@pytest.mark.parametrize("is_waited_for", [False, True])
def test_pages_are_made_one_by_one_also_where_a_master_waits_for_its_slaves_disk(
    tmp_path: Path, is_waited_for: bool
) -> None:
    settings = msgspec.structs.replace(SMALL, flush_disk_type=FlushMode.ASYNC_FLUSH)
    with MessageStore.open(tmp_path, settings, is_waited_for=is_waited_for) as store:
        store.append(make_message())
        assert bool(pages_alone(store.log.segments[-1].path)) is is_waited_for


def test_what_was_appended_is_read_back_from_its_queue(store: MessageStore) -> None:
    message = Message(
        topic=TOPIC,
        queue_id=3,
        body=b"hello",
        properties=b"KEYS\x01k\x02",
        flag=7,
        born_timestamp_ms=123,
        born_host=pack_host("1.2.3.4", 5),
        reconsume_times=2,
    )
    appended = store.append(message)
    store.dispatch()
    (record,) = store.records(TOPIC, 3, 0, 10)
    assert (record.topic, record.queue_id, bytes(record.body)) == (TOPIC, 3, b"hello")
    assert bytes(record.properties) == message.properties
    assert (record.flag, record.reconsume_times, record.born_timestamp_ms) == (7, 2, 123)
    assert record.born_host == message.born_host
    assert (record.log_offset, record.size_bytes) == (appended.log_offset, appended.size_bytes)


def test_a_message_is_found_where_it_begins_and_nowhere_else(store: MessageStore) -> None:
    places = _fill(store)
    for number, place in enumerate(places):
        record = store.record_at(place)
        assert record is not None
        assert bytes(record.body).startswith(b"message %d " % number)
    for wrong in (-1, places[1] + 1, store.log.log_end, 1 << 62):
        assert store.record_at(wrong) is None


def test_the_store_host_is_the_brokers_address(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path, SMALL, store_host=pack_host("10.1.2.3", 10911)) as store:
        store.append(make_message())
        store.dispatch()
        assert store.records(TOPIC, 0, 0, 1)[0].store_host == pack_host("10.1.2.3", 10911)


@pytest.mark.parametrize("topic", ["", "..", "a/b", "a\0b", "t" * 256])
def test_a_topic_that_can_not_name_a_folder_is_refused_at_once(store: MessageStore, topic: str) -> None:
    with pytest.raises(LocalProtocolError):
        store.append(make_message(topic=topic))
    assert store.log.log_end == 0


@pytest.mark.parametrize("queue_id", [-1, 1 << 16])
def test_a_queue_id_out_of_range_is_refused(store: MessageStore, queue_id: int) -> None:
    with pytest.raises(LocalProtocolError, match="queue id"):
        store.append(make_message(queue_id=queue_id))
    assert store.log.log_end == 0


def test_delay_levels_that_make_no_sense_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="messageDelayLevel"):
        open_store(tmp_path, msgspec.structs.replace(SMALL, message_delay_level="1s tomorrow"))


# Reading a queue


def test_a_queue_is_read_from_any_offset_and_no_further_than_asked(store: MessageStore) -> None:
    _fill(store)
    numbers = [record.queue_offset for record in store.records(TOPIC, 0, 4, 3)]
    assert numbers == [4, 5, 6]
    assert store.records(TOPIC, 0, 9, 3) == []
    assert store.records(TOPIC, 0, 3, 0) == []


@pytest.mark.parametrize("queue_offset", [-1, 10])
def test_an_offset_that_the_queue_does_not_have_is_refused(store: MessageStore, queue_offset: int) -> None:
    _fill(store)
    with pytest.raises(OffsetOutOfRange):
        store.records(TOPIC, 0, queue_offset, 1)


def test_a_queue_that_is_not_there_is_empty(store: MessageStore) -> None:
    assert store.records("nowhere", 0, 0, 1) == []


def test_reading_passes_over_a_gap_that_another_broker_left(store: MessageStore) -> None:
    for number, queue_offset in enumerate((0, 1, 8, 9)):
        raw = encode_record(
            make_message(number),
            queue_offset=queue_offset,
            log_offset=store.log.log_end,
            store_timestamp_ms=1000 * number,
            store_host=bytes(8),
        )
        store.append_raw(store.log.log_end, raw)
    store.dispatch()
    assert bodies(store) == numbered(0, 1, 2, 3)
    assert [record.queue_offset for record in store.records(TOPIC, 0, 2, 2)] == [8, 9]
    for number, queue_offset in enumerate((0, 1, 8, 9)):
        found = store.offset_at_time(TOPIC, 0, 1000 * number)
        assert store.records(TOPIC, 0, found, 1)[0].queue_offset == queue_offset
        assert store.offset_at_time(TOPIC, 0, 1000 * number, Boundary.UPPER) == queue_offset


# Finding by key


def test_messages_are_found_by_key_newest_first_and_no_more_than_asked(store: MessageStore) -> None:
    _fill(store)
    assert _found(store, "all") == numbered(*reversed(range(9)))
    assert _found(store, "all", max_count=2) == numbered(8, 7)
    assert _found(store, "none") == []
    assert _found(store, "all", topic="TopicB") == []


def test_a_message_is_found_by_its_unique_id_and_by_each_of_its_keys(store: MessageStore) -> None:
    store.append(make_message(1, keys="order-7 customer-3", UNIQ_KEY="id-1"))
    store.dispatch()
    assert [_found(store, key) for key in ("id-1", "order-7", "customer-3", "order-7 customer-3")] == [
        *[numbered(1)] * 3,
        [],
    ]


def test_a_message_that_has_a_key_twice_is_found_once(store: MessageStore) -> None:
    store.append(make_message(1, keys="id-1 id-1", UNIQ_KEY="id-1"))
    store.append(make_message(2, keys="id-1"))
    store.dispatch()
    assert _found(store, "id-1") == numbered(2, 1)


def test_keys_with_one_hash_are_told_apart(store: MessageStore) -> None:
    for number, key in enumerate(["Aa", "BB", "Aa", "BB"]):
        store.append(make_message(number, keys=key))
    store.dispatch()
    assert _found(store, "Aa") == numbered(2, 0)
    assert _found(store, "BB") == numbered(3, 1)


def test_topics_with_one_hash_are_told_apart(store: MessageStore) -> None:
    store.append(make_message(1, topic="Aa", keys="key"))
    store.append(make_message(2, topic="BB", keys="key"))
    store.dispatch()
    assert _found(store, "key", topic="Aa") == numbered(1)


def test_keys_are_searched_in_a_range_of_time(tmp_path: Path) -> None:
    clock = FakeClock(now_ms=10_000)
    with open_store(tmp_path, clock=clock) as store:
        for number in range(20):
            store.append(make_message(number, keys="key"))
            clock.advance_ms(300)
        store.dispatch()
        assert _found(store, "key", begin_ms=10_900, end_ms=11_800) == numbered(6, 5, 4, 3)
        assert _found(store, "key", begin_ms=15_701) == []


# Finding by time


@pytest.mark.parametrize(
    ("timestamp_ms", "lower", "upper"),
    [(0, 0, 0), (1000, 0, 2), (1001, 3, 2), (2000, 3, 5), (3000, 6, 8), (3001, 9, 8)],
)
def test_an_offset_is_found_by_time_on_both_boundaries(
    tmp_path: Path, timestamp_ms: int, lower: int, upper: int
) -> None:
    clock = FakeClock(now_ms=1000)
    with open_store(tmp_path, clock=clock) as store:
        for _ in range(3):
            for _ in range(3):
                store.append(make_message(body_bytes=1000))
            clock.advance_ms(1000)
        store.dispatch()
        assert store.offset_at_time(TOPIC, 0, timestamp_ms) == lower
        assert store.offset_at_time(TOPIC, 0, timestamp_ms, Boundary.UPPER) == upper


def test_by_time_nothing_is_found_below_what_was_deleted(tmp_path: Path) -> None:
    clock = FakeClock(now_ms=1000)
    disk = FailingDisk()
    with open_store(tmp_path, clock=clock, disk=disk) as store:
        _fill(store)
        store.flush()
        disk.used = 0.88
        store.clean()
        for boundary in Boundary:
            assert store.offset_at_time(TOPIC, 0, 0, boundary) == 6


def test_by_time_a_queue_that_is_not_there_gives_zero(store: MessageStore) -> None:
    assert store.offset_at_time("nowhere", 0, 1000) == 0


# Cutting


def test_only_the_start_of_a_record_can_be_cut_at(store: MessageStore) -> None:
    starts = _fill(store)
    before = tree(store.root)
    for log_offset in (-1, 1, starts[4] + 1, store.log.log_end + 1):
        with pytest.raises(OffsetOutOfRange):
            store.truncate_to(log_offset)
    assert tree(store.root) == before


def test_a_cut_at_the_end_changes_nothing(store: MessageStore) -> None:
    _fill(store)
    store.checkpoint()
    before = tree(store.root)
    store.truncate_to(store.log.log_end)
    assert tree(store.root) == before


def test_a_cut_before_what_was_dispatched_and_behind_it(store: MessageStore) -> None:
    starts = _fill(store, 5)
    later = [store.append(make_message(number)).log_offset for number in range(5, 9)]
    store.truncate_to(later[2])
    assert bodies(store) == numbered(*range(7))
    store.truncate_to(starts[2])
    assert bodies(store) == numbered(0, 1)


def test_a_cut_takes_the_half_record_that_a_master_sent(tmp_path: Path) -> None:
    with open_store(tmp_path / "master") as master, open_store(tmp_path / "slave") as slave:
        starts = _fill(master, 3)
        slave.append_raw(0, master.log.read_ahead(0, starts[2] + 500))
        slave.dispatch()
        with pytest.raises(OffsetOutOfRange):
            slave.truncate_to(starts[2] + 1)
        slave.truncate_to(slave.dispatcher.dispatched_to)
        assert slave.log.log_end == starts[2]
        assert slave.append(make_message(2)).queue_offset == 2


@pytest.mark.behaviour("S2-21")
def test_a_cut_takes_the_epochs_that_begin_at_or_behind_it(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        starts: list[int] = []
        for epoch in (1, 2, 5):
            store.begin_epoch(epoch)
            starts.append(store.append(make_message(epoch)).log_offset)
        store.append(make_message(9))
        store.truncate_to(starts[2])
        assert store.epochs.epochs == ((1, 0), (2, starts[1]))
        kill(store)
    with open_store(tmp_path) as store:
        assert store.epochs.epochs == ((1, 0), (2, starts[1]))
        store.truncate_to(store.records(TOPIC, 0, 1, 1)[0].log_offset)
        assert store.epochs.epochs == ((1, 0),)


def test_a_checkpoint_in_flight_does_not_survive_a_cut(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    starts = _fill(store)
    pending = store.start_checkpoint()
    store.truncate_to(starts[4])
    pending.finish()
    kill(store)
    with open_store(tmp_path) as store:
        assert store.log.log_end == starts[4]
        assert bodies(store) == numbered(0, 1, 2, 3)


def test_files_of_a_checkpoint_in_flight_are_durable_when_a_cut_is_done(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk=disk)
    starts = _fill(store)
    store.start_checkpoint()
    disk.synced.clear()
    store.truncate_to(starts[8])
    assert tmp_path / "consumequeue" / TOPIC / "0" / segment_name(0) in disk.synced
    kill(store)


# Epochs


def test_an_epoch_begins_at_the_end_of_the_log_and_is_durable_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.begin_epoch(3)
    end = store.append(make_message()).end
    store.begin_epoch(4)
    kill(store)
    with open_store(tmp_path) as store:
        assert store.epochs.epochs == ((3, 0), (4, end))


def test_an_epoch_that_can_not_be_written_down_has_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path) as store:
        store.begin_epoch(3)

        def fail(_file: EpochFile, _history: object) -> None:
            raise OSError

        monkeypatch.setattr(EpochFile, "save", fail)
        with pytest.raises(OSError):  # noqa: PT011
            store.begin_epoch(4)
        assert store.epochs.epochs == ((3, 0),)
        monkeypatch.undo()


def test_a_stale_epoch_is_refused(store: MessageStore) -> None:
    store.begin_epoch(3)
    with pytest.raises(ValueError, match="epoch 3"):
        store.begin_epoch(3)


# Retention


def _age(store: MessageStore, clock: FakeClock, *ages_h: float) -> None:
    """Let the files of the log have been changed so many hours ago."""
    for segment, age_h in zip(store.log.segments, ages_h, strict=True):
        changed_s = clock.now_ms() / 1000 - age_h * 3600
        os.utime(segment.path, (changed_s, changed_s))


def _at_hour(hour: int) -> FakeClock:
    """A clock that shows this hour of the day where we are."""
    return FakeClock(now_ms=int(time.mktime((2024, 5, 6, hour, 30, 0, 0, 0, -1))) * 1000)


def test_old_files_go_at_four_in_the_morning_and_the_indexes_follow(tmp_path: Path) -> None:
    clock = _at_hour(4)
    with open_store(tmp_path, clock=clock, disk=FailingDisk()) as store:
        starts = _fill(store, 90)
        store.flush()
        store.checkpoint()
        ages = [100.0] * 10 + [1.0] * 20
        _age(store, clock, *ages)
        assert store.clean() == 10
        assert store.log.log_start == 10 * SIZE == starts[30]
        queue = store.queues.find(TOPIC, 0)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (30, 90)
        assert bodies(store) == numbered(*range(30, 90))
        assert _found(store, "all", max_count=1000) == numbered(*reversed(range(30, 90)))
        assert min(int(path.name) for path in (tmp_path / "consumequeue" / TOPIC / "0").iterdir()) == 600
        with pytest.raises(OffsetOutOfRange):
            store.records(TOPIC, 0, 29, 1)
        assert store.clean() == 0
    with open_store(tmp_path) as store:
        assert bodies(store) == numbered(*range(30, 90))


def test_index_files_of_deleted_messages_go(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, max_index_num=5)
    disk = FailingDisk()
    with open_store(tmp_path, settings, disk=disk) as store:
        _fill(store)
        store.checkpoint()
        disk.used = 0.88
        assert len(list((tmp_path / "index").iterdir())) == 3
        store.clean()
        assert len(list((tmp_path / "index").iterdir())) == 2


def test_old_files_wait_for_the_hour_unless_asked(tmp_path: Path) -> None:
    clock = _at_hour(5)
    with open_store(tmp_path, clock=clock, disk=FailingDisk()) as store:
        _fill(store)
        store.flush()
        _age(store, clock, 100, 100, 100)
        assert store.clean() == 0
        assert store.clean(is_asked=True) == 2
        assert bodies(store) == numbered(6, 7, 8)


def test_a_full_disk_refuses_writes_and_lets_them_go_on(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_store(tmp_path, clock=_at_hour(5), disk=disk) as store:
        disk.used = 0.95
        store.clean()
        with pytest.raises(NotWritable, match="95% full"):
            store.append(make_message())
        disk.used = 0.5
        store.clean()
        store.append(make_message())


def test_a_disk_with_room_does_not_lift_a_refusal_of_another_kind(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_store(tmp_path, clock=_at_hour(5), disk=disk) as store:
        store.log.refusal = "this broker is a slave"
        for used in (0.95, 0.5):
            disk.used = used
            store.clean()
            assert store.log.refusal == "this broker is a slave"


def test_what_is_not_durable_or_not_indexed_is_not_deleted(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_store(tmp_path, disk=disk) as store:
        starts = _fill(store, 3)
        for number in range(3, 9):
            store.append(make_message(number, body_bytes=1000))
        disk.used = 0.88
        assert store.clean() == 0
        store.flush()
        assert store.clean() == 0
        store.dispatch(starts[0] + SIZE)
        assert store.clean() == 1
        store.dispatch()
        assert store.clean() == 1
        assert bodies(store) == numbered(6, 7, 8)


def test_epochs_of_deleted_files_are_forgotten(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_store(tmp_path, disk=disk) as store:
        store.begin_epoch(1)
        _fill(store, 4)
        store.begin_epoch(2)
        second = store.log.log_end
        _fill(store, 5)
        store.flush()
        disk.used = 0.88
        assert store.clean() == 2
    with open_store(tmp_path) as store:
        assert store.epochs.epochs == ((2, second),)


# Many queues


def _open_file_count() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_ten_thousand_queues_need_few_open_files(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        SMALL, mapped_file_size_commit_log=4 << 20, mapped_file_size_consume_queue=20
    )
    before = _open_file_count()
    store = open_store(tmp_path, settings)
    for topic in range(100):
        for queue_id in range(100):
            store.append(make_message(queue_id, topic=f"topic-{topic}", queue_id=queue_id))
    store.dispatch()
    assert len(store.queues) == 10_000
    assert _open_file_count() - before < 600
    assert store.queues.open_file_count <= 512
    assert bodies(store, "topic-7", 42) == numbered(42)
    kill(store)
    assert _open_file_count() - before < 10


def test_the_newest_message_is_found_by_its_key_in_its_own_second_after_a_crash(tmp_path: Path) -> None:
    clock = FakeClock(now_ms=1_700_000_000_000)
    store = open_store(tmp_path, clock=clock)
    store.append(make_message(0, keys="first"))
    clock.advance_ms(900)
    store.append(make_message(1, keys="last"))
    store.dispatch()
    kill(store)
    with open_store(tmp_path, clock=clock) as store:
        found = store.find_by_key(TOPIC, "last", begin_ms=clock.now_ms(), end_ms=clock.now_ms())
        assert len(found) == 1


def test_a_checkpoint_never_claims_what_a_queue_has_in_memory_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    store.append(make_message(0))
    store.append(make_message(0, topic="Other"))
    store.dispatch()
    store.checkpoint()
    for number in range(1, 6):
        store.append(make_message(number))
    store.dispatch()
    really_write = File.write

    def refuse(file: File, position: int, data: bytes) -> None:
        if TOPIC in file.path.parts:
            raise DiskFull(file.path, len(data))
        really_write(file, position, data)

    with monkeypatch.context() as full:
        full.setattr(File, "write", refuse)
        for _ in range(3):
            with pytest.raises(DiskFull):
                store.checkpoint()
    kill(store)
    with open_store(tmp_path) as store:
        assert bodies(store) == numbered(*range(6))
        assert store.append(make_message(6)).queue_offset == 6


def test_a_short_batch_can_not_make_records_without_end(store: MessageStore) -> None:
    packed = encode_batch([(0, b"", b"")] * 1000)
    with pytest.raises(RemoteProtocolError, match="take more than"):
        store.append_packed(Message(topic=TOPIC, queue_id=0, body=packed, properties=b"P\x01" + b"x" * 9000))
    assert store.log.log_end == 0


@pytest.mark.behaviour("S1-100")
def test_a_store_that_was_closed_takes_nothing_from_a_master_and_says_so(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        raw = bytes(store.log.read(store.append(make_message()).log_offset, store.log.log_end))
    with pytest.raises(NotWritable, match="message store has shutdown, so appendToPhyQueue is forbidden"):
        store.append_raw(store.log.log_end, raw)


# Where the last whole record ends


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize("dispatched", [0, 3])
def test_a_log_that_a_master_sent_in_part_is_whole_up_to_its_last_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_native: bool, dispatched: int
) -> None:
    if not is_native:
        monkeypatch.setattr(plain_records, "native", None)
    with open_store(tmp_path / "master") as master:
        appended = [master.append(make_message(number, body_bytes=300)) for number in range(30)]
        log_end = master.log.log_end
        log = b"".join(segment.view for segment in master.log.segments)[:log_end]
    places = [place.log_offset for place in appended]
    # With files of 4096 bytes there are blanks between.
    ends = {*places, *(place.log_offset + place.size_bytes for place in appended)}
    assert len(ends) > 31
    with open_store(tmp_path / "slave") as slave:
        assert slave.whole_to == 0
        slave.append_raw(0, log[: places[dispatched]])
        slave.dispatch()
        for end in (*range(places[dispatched] + 1, log_end, 37), log_end):
            slave.append_raw(slave.log.log_end, log[slave.log.log_end : end])
            assert slave.whole_to == max(whole for whole in ends if whole <= end)


@pytest.mark.behaviour("S2-18", "S2-19")
def test_behind_bytes_that_are_no_record_nothing_is_whole(tmp_path: Path) -> None:
    with open_store(tmp_path / "master") as master:
        places = [master.append(make_message(number)).log_offset for number in range(6)]
        log = bytes(master.log.read(0, master.log.log_end))
    damaged = log[: places[3] + 4] + b"!" + log[places[3] + 5 :]
    with open_store(tmp_path / "slave") as slave:
        slave.append_raw(0, damaged)
        assert slave.whole_to == places[3]
        slave.truncate_to(slave.whole_to)
        slave.dispatch()
        assert bodies(slave) == numbered(0, 1, 2)
        # All of it is dispatched now, and there is nothing to look at.
        assert slave.whole_to == slave.log.log_end == places[3]
