import asyncio
import errno
from pathlib import Path

import msgspec
import pytest

from tanist.model.topics import SCHEDULE_TOPIC
from tanist.protocol import record_sums
from tanist.protocol.queue_entry import ENTRY_BYTES, encode_entry
from tanist.store import soundness
from tanist.store.disk import File
from tanist.store.scrub import MAX_PLACES, Damage, Scrub
from tanist.store.set_aside import set_aside
from tanist.store.soundness import BadRecord, Piece, Soundness
from tanist.store.store import MessageStore
from tests.support.clocks import FakeClock
from tests.support.messages import SMALL, TOPIC, make_message, open_store

COUNT = 9
FAR_FUTURE_MS = 10_000_000_000_000
QUEUE_FILE = f"consumequeue/{TOPIC}/0/{0:020d}"


@pytest.fixture(params=["native", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(record_sums, "native", None)
        monkeypatch.setattr(soundness, "native", None)


def _fill(root: Path, count: int = COUNT) -> tuple[MessageStore, list[int]]:
    """Messages in one queue, three in a file, all on disk; where each lies."""
    settings = msgspec.structs.replace(SMALL, file_reserved_time=0)
    store = open_store(root, settings, clock=FakeClock(now_ms=FAR_FUTURE_MS))
    starts = [int(store.append(make_message(number, body_bytes=1000)).log_offset) for number in range(count)]
    store.dispatch()
    store.checkpoint()
    return store, starts


def _change(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def _damage_record(store: MessageStore, log_offset: int, at: int = 100) -> None:
    segment = store.log.segments.at(log_offset)
    position = log_offset - segment.start + at
    _change(segment.path, position, bytes([segment.view[position] ^ 1]))


def _scrub(store: MessageStore) -> Scrub:
    scrub = Scrub(store, FakeClock())
    scrub.recall()
    asyncio.run(scrub.run_round())
    return scrub


@pytest.mark.usefixtures("engine")
def test_a_sound_store_is_read_to_its_end_and_nothing_is_found(tmp_path: Path) -> None:
    store, _ = _fill(tmp_path)
    with store:
        scrub = _scrub(store)
        assert scrub.damage == []
        assert scrub.checked_bytes == store.log.log_end


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("at", [0, 4, 28, 100], ids=["size", "magic", "place", "body"])
def test_a_damaged_record_is_named_once_and_what_lies_behind_it_is_looked_at(tmp_path: Path, at: int) -> None:
    store, starts = _fill(tmp_path)
    with store:
        _damage_record(store, starts[3], at)
        _damage_record(store, starts[5])
        found: list[Damage] = []
        scrub = Scrub(store, FakeClock())
        scrub.on_found = found.append
        for _ in range(2):
            asyncio.run(scrub.run_round())
        assert [damage.log_offset for damage in found] == [starts[3], starts[5]]
        assert found == scrub.damage
        position = starts[3] - store.log.segments.at(starts[3]).start
        assert f"{store.log.segments.at(starts[3]).path} at byte {position}: " in str(found[0])
        assert not found[0].is_in_queue


@pytest.mark.usefixtures("engine")
def test_a_wrong_entry_of_a_queue_is_named_with_its_queue(tmp_path: Path) -> None:
    store, starts = _fill(tmp_path)
    with store:
        _change(tmp_path / QUEUE_FILE, 4 * ENTRY_BYTES, encode_entry(starts[6], 20, 0))
        (damage,) = _scrub(store).damage
        assert (damage.log_offset, damage.is_in_queue) == (starts[4], True)
        assert str(damage).startswith(f"queue {TOPIC}/0 offset 4: ")


@pytest.mark.usefixtures("engine")
def test_another_hash_of_a_tag_is_damage_and_another_due_time_is_none(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        delayed = make_message(1, topic=SCHEDULE_TOPIC, DELAY="3")
        places = [store.append(message) for message in (make_message(tag="red"), delayed)]
        store.dispatch()
        store.checkpoint()
        entries = [encode_entry(place.log_offset, place.size_bytes, 1) for place in places]
        _change(tmp_path / QUEUE_FILE, 0, entries[0])
        _change(tmp_path / QUEUE_FILE.replace(TOPIC, SCHEDULE_TOPIC), 0, entries[1])
        (damage,) = _scrub(store).damage
        assert str(damage).startswith(f"queue {TOPIC}/0 offset 0: ")


def test_what_a_deleted_topic_had_is_not_missed_in_its_queues(tmp_path: Path) -> None:
    store, _ = _fill(tmp_path)
    with store:
        store.delete_topics([TOPIC])
        _change(tmp_path / QUEUE_FILE, 0, bytes(ENTRY_BYTES * COUNT))
        assert _scrub(store).damage == []


def test_what_is_not_on_disk_yet_is_not_looked_at(tmp_path: Path) -> None:
    store, _ = _fill(tmp_path)
    with store:
        settled_to = store.settled_to
        store.append(make_message(99, body_bytes=1000))
        assert _scrub(store).checked_bytes == settled_to < store.log.log_end


def test_a_disk_that_does_not_give_its_bytes_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, starts = _fill(tmp_path)
    bad, read = store.log.segments[1].path, File.read

    def read_or_fail(file: File, position: int, size_bytes: int) -> bytes:
        if file.path == bad:
            raise OSError(errno.EIO, "Input/output error")
        return read(file, position, size_bytes)

    monkeypatch.setattr(File, "read", read_or_fail)
    with store:
        (damage,) = _scrub(store).damage
        assert damage.log_offset == starts[3]
        assert "Input/output error" in str(damage)


def test_damage_is_known_to_the_next_start_until_it_is_mended(tmp_path: Path) -> None:
    store, starts = _fill(tmp_path)
    with store:
        _damage_record(store, starts[2])
        assert len(_scrub(store).damage) == 1
    with open_store(tmp_path) as store:
        scrub = Scrub(store, FakeClock())
        scrub.recall()
        assert [damage.log_offset for damage in scrub.damage] == [starts[2]]
        _damage_record(store, starts[2])
        asyncio.run(scrub.run_round())
        assert scrub.damage == []
    with open_store(tmp_path) as store:
        scrub = Scrub(store, FakeClock())
        scrub.recall()
        assert scrub.damage == []


def test_damage_goes_with_its_file(tmp_path: Path) -> None:
    store, starts = _fill(tmp_path)
    with store:
        _damage_record(store, starts[0])
        scrub = _scrub(store)
        assert len(scrub.damage) == 1
        assert store.clean(is_asked=True) > 0
        assert scrub.damage == []


def test_what_is_set_aside_takes_its_damage_along(tmp_path: Path) -> None:
    store, starts = _fill(tmp_path)
    with store:
        _damage_record(store, starts[2])
        _scrub(store)
    set_aside(tmp_path, 1)
    assert not (tmp_path / "scrub").exists()


def test_more_damage_than_a_person_reads_is_told_up_to_a_bound(tmp_path: Path) -> None:
    store, starts = _fill(tmp_path, MAX_PLACES + 5)
    with store:
        for start in starts:
            _damage_record(store, start)
        assert [damage.log_offset for damage in _scrub(store).damage] == starts[:MAX_PLACES]


def test_the_next_round_begins_where_the_last_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = _fill(tmp_path)
    (tmp_path / "scrub").write_text('{"nextFile":4096}')
    looked: list[int] = []

    def look(_soundness: object, _file: File, *, start: int, end: int, **_more: int) -> Piece:
        looked.append(start)
        return Piece(end)

    monkeypatch.setattr(Soundness, "look", look)
    with store:
        _scrub(store)
    assert looked == [4096, 8192, 0]


def test_a_note_that_is_none_is_told_and_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, starts = _fill(tmp_path)
    (tmp_path / "scrub").write_text("{")
    with store:
        _damage_record(store, starts[1])
        assert len(_scrub(store).damage) == 1
    assert "scrub begins anew" in caplog.text


def test_what_was_cut_while_it_was_read_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, starts = _fill(tmp_path)

    def look_while_it_is_cut(*_arguments: object, end: int, **_more: int) -> Piece:
        store.truncate_to(starts[1])
        return Piece(end, BadRecord(0, "half of it was cut"))

    monkeypatch.setattr(Soundness, "look", look_while_it_is_cut)
    with store:
        assert _scrub(store).damage == []
