import shutil
from pathlib import Path

import pytest

from tanist.errors import CorruptRecord, ForeignFile, StoreLocked
from tanist.protocol.ha_hello import NO_INCARNATION
from tanist.store.set_aside import NOTE_NAME, Earlier, aside_folders, drop_aside, set_aside
from tests.support.failing_disk import FailingDisk, Stopped
from tests.support.messages import bodies, make_message, numbered, open_store, tree

INCARNATION = bytes(range(16))


def _make_store(root: Path) -> dict[str, bytes]:
    """A store with something of every kind; its files, but for the lock."""
    with open_store(root) as store:
        store.begin_epoch(3)
        for number in range(12):
            store.append(make_message(number, topic=f"T{number % 2}", keys="key", body_bytes=700))
        store.delete_topics(["T1"])
        store.make_incarnation(INCARNATION)
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_bytes(b"{}")
    (root / "config" / "timercheck").write_bytes(bytes(4096))
    (root / "timerlog").mkdir()
    (root / "timerlog" / ("0" * 20)).write_bytes(b"units")
    (root / "timerwheel").write_bytes(b"wheel")
    return _files(root)


def _files(root: Path) -> dict[str, bytes]:
    files = tree(root)
    del files["lock"]
    return files


def _kept(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name == "config/topics.json"}


def test_all_of_the_log_is_set_aside_and_the_tables_stay(tmp_path: Path) -> None:
    files = _make_store(tmp_path)
    assert "epochFileCheckpoint" in files
    assert "deletedTopics" in files
    folder = set_aside(tmp_path, 4711)
    assert folder == tmp_path / "aside-4711"
    moved = {name: data for name, data in files.items() if name not in _kept(files)}
    assert tree(folder) == moved
    assert _files(tmp_path) == _kept(files) | {f"aside-4711/{name}": data for name, data in moved.items()}


def test_a_store_whose_log_was_set_aside_begins_anew(tmp_path: Path) -> None:
    _make_store(tmp_path)
    set_aside(tmp_path, 4711)
    with open_store(tmp_path) as store:
        assert (store.log.log_end, len(store.queues), store.epochs.last) == (0, 0, None)
        assert store.incarnation == NO_INCARNATION
        assert store.recovery.was_closed
        assert store.append(make_message(1)).queue_offset == 0


def test_what_was_set_aside_is_a_store_of_its_own(tmp_path: Path) -> None:
    _make_store(tmp_path)
    with open_store(set_aside(tmp_path, 4711)) as store:
        assert bodies(store, "T0") == numbered(*range(0, 12, 2))
        assert bodies(store, "T1") == []
        assert store.incarnation == INCARNATION


def test_a_store_that_is_open_is_not_set_aside(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        with pytest.raises(StoreLocked):
            set_aside(tmp_path, 4711)
        assert store.append(make_message()).log_offset == 0
    assert aside_folders(tmp_path) == []


def test_where_nothing_is_nothing_is_moved(tmp_path: Path) -> None:
    assert tree(set_aside(tmp_path / "store", 4711)) == {}


@pytest.mark.parametrize("name", ["commitlog", "timerwheel", "config"])
def test_what_lies_elsewhere_is_refused_before_anything_is_moved(tmp_path: Path, name: str) -> None:
    root = tmp_path / "store"
    _make_store(root)
    (root / name).rename(tmp_path / "elsewhere")
    (root / name).symlink_to(tmp_path / "elsewhere")
    files = _files(root)
    with pytest.raises(ForeignFile, match="link") as caught:
        set_aside(root, 4711)
    assert caught.value.path == root / name
    assert _files(root) == files


# What was set aside before


def test_a_second_time_is_refused_by_itself(tmp_path: Path) -> None:
    _make_store(tmp_path)
    first = set_aside(tmp_path, 4711)
    files = tree(tmp_path)
    with pytest.raises(ForeignFile, match="set aside here before") as caught:
        set_aside(tmp_path, 5000)
    assert caught.value.path == first
    with pytest.raises(ForeignFile, match="set aside here before"):
        set_aside(tmp_path, 4711, earlier=Earlier.KEEP)
    assert tree(tmp_path) == files


@pytest.mark.parametrize(
    ("earlier", "names"), [(Earlier.KEEP, ["aside-999", "aside-5000"]), (Earlier.DROP, ["aside-5000"])]
)
def test_the_first_is_kept_or_dropped_as_is_said(tmp_path: Path, earlier: Earlier, names: list[str]) -> None:
    _make_store(tmp_path)
    set_aside(tmp_path, 999)
    set_aside(tmp_path, 5000, earlier=earlier)
    assert [folder.name for folder in aside_folders(tmp_path)] == names


def test_what_is_dropped_is_gone_and_nothing_else(tmp_path: Path) -> None:
    files = _make_store(tmp_path)
    folder = set_aside(tmp_path, 4711)
    other, mine = tmp_path / "aside-mine", tmp_path / "precious"
    other.mkdir()
    mine.mkdir()
    (mine / "file").touch()
    (folder / "link").symlink_to(mine)
    with open_store(tmp_path) as store:
        store.append(make_message(1))
        assert drop_aside(tmp_path) == 1
        assert drop_aside(tmp_path) == 0
        store.dispatch()
        assert bodies(store) == numbered(1)
    assert not folder.exists()
    assert other.exists()
    assert (mine / "file").exists()
    assert _kept(_files(tmp_path)) == _kept(files)


def test_a_folder_that_is_kept_elsewhere_stays_there_when_it_is_dropped(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    _make_store(root)
    folder = set_aside(root, 4711)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    files = tree(elsewhere)
    assert drop_aside(root) == 1
    assert not folder.is_symlink()
    assert tree(elsewhere) == files


# Crashes


def test_opening_the_store_finishes_what_a_crash_interrupted_anywhere(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    files = _make_store(origin)
    moved = {name: data for name, data in files.items() if name not in _kept(files)}
    outcomes: list[bool] = []
    for stop_at in range(100):
        root = tmp_path / "store"
        shutil.copytree(origin, root)
        try:
            set_aside(root, 4711, disk=FailingDisk(stop_at=stop_at))
            break
        except Stopped:
            pass
        with open_store(root) as store:
            is_aside = store.log.log_end == 0
            assert is_aside or bodies(store, "T0") == numbered(*range(0, 12, 2))
        outcomes.append(is_aside)
        assert not (root / NOTE_NAME).exists()
        if is_aside:
            assert tree(root / "aside-4711") == moved
        else:
            assert aside_folders(root) == []
        shutil.rmtree(root)
    # First nothing was written down, then all was.
    assert outcomes == sorted(outcomes)
    assert len(set(outcomes)) == 2


def test_a_drop_that_was_interrupted_is_finished_by_the_next(tmp_path: Path) -> None:
    _make_store(tmp_path)
    set_aside(tmp_path, 4711)
    with pytest.raises(Stopped):
        drop_aside(tmp_path, disk=FailingDisk(stop_at=3))
    assert drop_aside(tmp_path) == 1
    assert aside_folders(tmp_path) == []


@pytest.mark.parametrize("text", [b"", b"../elsewhere\n", b"aside-x", b"aside-1/..", b"\xff"])
def test_a_note_that_names_no_folder_is_refused_and_kept(tmp_path: Path, text: bytes) -> None:
    files = _make_store(tmp_path)
    (tmp_path / NOTE_NAME).write_bytes(text)
    with pytest.raises(CorruptRecord, match="no folder's name"):
        open_store(tmp_path)
    with pytest.raises(CorruptRecord, match="no folder's name"):
        set_aside(tmp_path, 4711)
    assert _files(tmp_path) == files | {NOTE_NAME: text}
