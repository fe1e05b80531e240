from pathlib import Path
from unittest.mock import Mock

import pytest

from tanist.spark.archive import folder as folders
from tanist.spark.archive.folder import ArchiveFolder, new_about, open_about, open_for_writing
from tanist.spark.archive.records import CLUSTER, STORE, TaskResult, Written
from tanist.spark.errors import SparkError

PATH = "topic=a/date=2026-11-18/0000000000-x.parquet"


def stage(folder: ArchiveFolder, text: str, path: str = PATH) -> TaskResult:
    staging = folder.new_staging()
    staging.mkdir(parents=True)
    (staging / "one.parquet").write_text(text)
    file = Written(staged=f"{staging.name}/one.parquet", path=path, rows=3, bytes=300, file_bytes=len(text))
    return TaskResult(files=[file])


def data(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root / "data")): path.read_text() for path in root.glob("data/**/*.parquet")}


def test_a_batch_is_seen_when_it_counts_and_positions_come_along(tmp_path: Path) -> None:
    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        folder.commit([stage(folder, "first")], {"at": 3})

    assert data(tmp_path / "a") == {PATH: "first"}
    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        assert (folder.positions, folder.next_number) == ({"at": 3}, 1)


@pytest.mark.parametrize(("left", "found"), [(None, "it is not there"), ("fir", "it has 3 bytes")])
def test_a_batch_whose_files_are_not_here_does_not_count(
    tmp_path: Path, left: str | None, found: str
) -> None:
    """A worker on another machine wrote them into a folder of the same name."""
    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        result = stage(folder, "first")
        path = tmp_path / "a" / "_tanist" / "staging" / result.files[0].staged
        path.unlink()
        if left is not None:
            path.write_text(left)

        with pytest.raises(SparkError, match=f"with 5 bytes, and {found}; nothing of this batch is archived"):
            folder.commit([result], {"at": 3})

    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        assert folder.positions == {}


def test_all_names_above_a_file_are_on_disk_before_its_batch_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        result = stage(folder, "first")
        synced: list[Path] = []
        monkeypatch.setattr(folders, "sync_folder", synced.append)
        folder.commit([result], {"at": 3})

    ours = tmp_path / "a" / "_tanist"
    before = synced[: synced.index(ours / "batches")]
    assert set(before) == {ours, ours / "staging", (ours / "staging" / result.files[0].staged).parent}


def test_files_of_a_batch_that_never_counted_are_forgotten(tmp_path: Path) -> None:
    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        stage(folder, "half")

    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        assert folder.positions == {}
    assert data(tmp_path / "a") == {}
    assert not (tmp_path / "a" / "_tanist" / "staging").exists()


def test_a_batch_that_counts_is_moved_by_whoever_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder, monkeypatch.context() as patched:
        patched.setattr(ArchiveFolder, "_publish", Mock())
        folder.commit([stage(folder, "first")], {"at": 3})
    assert data(tmp_path / "a") == {}

    with open_for_writing(tmp_path / "a", new_about(CLUSTER)) as folder:
        assert folder.positions == {"at": 3}
    assert data(tmp_path / "a") == {PATH: "first"}


def test_one_process_at_a_time_writes(tmp_path: Path) -> None:
    with (
        open_for_writing(tmp_path / "a", new_about(CLUSTER)),
        pytest.raises(SparkError, match=r"is being written to by process \d+ on .*; wait for it, or stop it"),
        open_for_writing(tmp_path / "a", new_about(CLUSTER)),
    ):
        pass


def test_a_folder_with_other_things_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()

    with (
        pytest.raises(SparkError, match=r"is no archive and is not empty \(photo.jpg\)"),
        open_for_writing(tmp_path, new_about(CLUSTER)),
    ):
        pass
    with pytest.raises(SparkError, match=r"is no archive: it has no _tanist/archive.json"):
        open_about(tmp_path)
    with pytest.raises(SparkError, match="there is no such folder"):
        open_about(tmp_path / "none")


def test_an_archive_of_brokers_takes_no_store_and_the_other_way_round(tmp_path: Path) -> None:
    with open_for_writing(tmp_path / "a", new_about(CLUSTER)):
        pass

    with (
        pytest.raises(SparkError, match="has source cluster, and store is asked for"),
        open_for_writing(tmp_path / "a", new_about(STORE)),
    ):
        pass


def test_an_archive_takes_no_other_cluster_whose_brokers_have_the_same_names(tmp_path: Path) -> None:
    with open_for_writing(tmp_path / "a", new_about(CLUSTER, clusters=["east", "west"])):
        pass
    with open_for_writing(tmp_path / "a", new_about(CLUSTER, clusters=["east"])):
        pass

    with (
        pytest.raises(SparkError, match="is of cluster east,west, and the topics are of cluster north; use"),
        open_for_writing(tmp_path / "a", new_about(CLUSTER, clusters=["north"])),
    ):
        pass
