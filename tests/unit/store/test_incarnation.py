from pathlib import Path

import pytest

from tanist.errors import CorruptRecord, LocalProtocolError
from tanist.protocol.ha_hello import NO_INCARNATION
from tanist.store.incarnation import FILE_NAME
from tests.support.failing_disk import FailingDisk, Stopped
from tests.support.messages import kill, make_message, open_store

FIRST, SECOND = bytes(range(16)), bytes(range(16, 32))


def test_a_new_store_has_no_incarnation(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        assert store.incarnation == NO_INCARNATION
    assert not (tmp_path / FILE_NAME).exists()


def test_a_masters_log_gets_its_incarnation_once(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        assert store.make_incarnation(FIRST) == FIRST
        assert store.make_incarnation(SECOND) == store.incarnation == FIRST
    with open_store(tmp_path) as store:
        assert store.make_incarnation(SECOND) == store.incarnation == FIRST


def test_a_slave_takes_over_the_incarnation_that_it_follows(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.make_incarnation(FIRST)
        store.adopt_incarnation(SECOND)
        assert store.incarnation == SECOND
        kill(store)
    with open_store(tmp_path) as store:
        assert store.incarnation == SECOND


def test_the_file_is_a_line_that_a_person_can_compare(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.adopt_incarnation(FIRST)
    assert (tmp_path / FILE_NAME).read_bytes() == b"000102030405060708090a0b0c0d0e0f\n"


def test_a_log_that_is_cut_keeps_its_incarnation(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.make_incarnation(FIRST)
        store.append(make_message())
        store.truncate_to(0)
        assert store.incarnation == FIRST


@pytest.mark.parametrize("value", [b"", bytes(16), bytes(15) + b"xx"])
def test_what_is_no_incarnation_is_not_taken(tmp_path: Path, value: bytes) -> None:
    with open_store(tmp_path) as store:
        with pytest.raises(LocalProtocolError, match="16 bytes"):
            store.adopt_incarnation(value)
        assert store.incarnation == NO_INCARNATION


@pytest.mark.parametrize("content", [b"", b"x" * 33, FIRST.hex().encode(), b"0" * 32 + b"\n", b"\xff" * 33])
def test_a_file_that_is_none_is_refused_with_the_way_out_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(CorruptRecord, match="delete it") as caught:
        open_store(tmp_path)
    assert caught.value.path == tmp_path / FILE_NAME
    assert (tmp_path / FILE_NAME).read_bytes() == content


def test_a_crash_leaves_the_old_incarnation_or_the_new(tmp_path: Path) -> None:
    seen: set[bytes] = set()
    for stop_at in range(20):
        root = tmp_path / str(stop_at)
        with open_store(root) as store:
            store.adopt_incarnation(FIRST)
        disk = FailingDisk()
        store = open_store(root, disk=disk)
        disk._stop_at = disk.operation_count + stop_at
        try:
            store.adopt_incarnation(SECOND)
        except Stopped:
            pass
        else:
            kill(store)
            break
        kill(store)
        with open_store(root) as store:
            seen.add(store.incarnation)
    assert seen == {FIRST, SECOND}
