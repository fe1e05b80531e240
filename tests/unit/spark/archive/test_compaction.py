import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from tanist.spark.archive import compaction
from tanist.spark.archive.catalogue import Found, read_catalogue
from tanist.spark.archive.compaction import choose, compact
from tanist.spark.archive.locks import COMPACTION, locked
from tanist.spark.archive.records import Holds
from tests.support.archives import archive_in_steps, archive_store, files_in, rows_in
from tests.support.messages import make_message, open_store


def found(path: str, size: int) -> Found:
    return Found(path=Path(path), file_bytes=size, holds=Holds(topic="t", date="d", rows=1, runs=[]))


def names(files: list[Found]) -> list[list[str]]:
    return [[one.path.name for one in group.files] for group in choose(files, 100)]


def test_small_files_of_one_folder_become_one_and_large_ones_stay() -> None:
    assert names([found("a/3", 10), found("a/1", 10), found("a/2", 60), found("b/1", 5)]) == [["1", "3"]]


def test_files_are_merged_up_to_the_target() -> None:
    files = [found(f"a/{number}", 40) for number in range(5)]

    assert names(files) == [["0", "1"], ["2", "3"]]


def test_compacted_it_holds_the_same_in_fewer_files(tmp_path: Path) -> None:
    root = archive_in_steps(tmp_path)
    before, catalogue = rows_in(root), read_catalogue(root)
    assert len(files_in(root)) == 8

    report = compact(root)

    assert (report.files_before, report.files_after) == (catalogue.files, 2)
    assert len(files_in(root)) == 2
    assert rows_in(root) == before
    assert read_catalogue(root).queues == catalogue.queues
    assert compact(root).rows == 0
    assert not (root / "_tanist" / "compacting").exists()


def test_the_archive_goes_on_after_a_compaction_without_repeating_anything(tmp_path: Path) -> None:
    root = archive_in_steps(tmp_path)
    compact(root)
    with open_store(tmp_path / "store") as store:
        store.append(make_message(40, topic="Topic0"))
        store.flush()
        store.dispatch()

    assert archive_store(root, tmp_path / "store", broker="broker-a").rows == 1
    assert read_catalogue(root).rows == 41
    compact(root)
    assert [queue.repeated for queue in read_catalogue(root).queues] == [0, 0, 0, 0]


def test_a_folder_that_was_opened_before_is_listed_in_full_until_an_archive_starts(tmp_path: Path) -> None:
    root = archive_in_steps(tmp_path)
    day = next((root / "data").glob("*/*"))
    before = sorted(path.name for path in day.iterdir())
    opened = os.open(day, os.O_RDONLY | os.O_DIRECTORY)
    try:
        compact(root)
        assert sorted(os.listdir(opened)) == before  # noqa: PTH208 - it is the folder, whatever its name is.
    finally:
        os.close(opened)
    assert len(list(day.iterdir())) == 1

    archive_store(root, tmp_path / "store", broker="broker-a")

    assert not (root / "_tanist" / "compacting").exists()


def test_an_archive_that_starts_leaves_a_compaction_alone(tmp_path: Path) -> None:
    root = archive_in_steps(tmp_path, steps=1)
    (root / "_tanist" / "compacting").mkdir()

    with locked(root, COMPACTION):
        archive_store(root, tmp_path / "store", broker="broker-a")

    assert (root / "_tanist" / "compacting").exists()


@pytest.mark.parametrize("step", ["swap", "_log.info"])
def test_a_crash_at_whatever_step_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Right before the folders are exchanged, or right after it."""
    root = archive_in_steps(tmp_path)
    before = rows_in(root)
    with monkeypatch.context() as patched:
        patched.setattr(f"{compaction.__name__}.{step}", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compact(root)
    assert rows_in(root) == before

    compact(root)

    assert rows_in(root) == before
    assert len(files_in(root)) == 2


def test_what_a_writer_moves_in_while_files_are_merged_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = archive_in_steps(tmp_path)
    with open_store(tmp_path / "other") as store:
        for number in range(6):
            store.append(make_message(number, topic=f"Topic{number % 2}"))
        store.flush()
        store.dispatch()
    merge = compaction.merge

    def merge_late(aside: Path, group: compaction.Group) -> Path:
        merged = merge(aside, group)
        archive_store(root, tmp_path / "other", broker="broker-b")
        return merged

    monkeypatch.setattr(compaction, "merge", merge_late)
    compact(root)

    assert len(rows_in(root)) == 46
    assert {row["brokerName"] for row in rows_in(root)} == {"broker-a", "broker-b"}
