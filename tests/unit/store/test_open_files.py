from pathlib import Path

import pytest

from tanist.store.disk import Disk
from tanist.store.open_files import OpenFiles


def _files(tmp_path: Path, limit: int, count: int) -> tuple[OpenFiles, list[Path]]:
    files = OpenFiles(Disk(), limit)
    paths = [tmp_path / str(number) for number in range(count)]
    for path in paths:
        files.create(path).write(0, path.name.encode())
    return files, paths


def test_no_more_files_are_open_than_the_limit(tmp_path: Path) -> None:
    files, paths = _files(tmp_path, 3, 10)
    assert len(files) == 3
    assert [files.get(path).read(0, 9) for path in paths] == [path.name.encode() for path in paths]
    assert len(files) == 3
    files.close()


def test_a_file_in_use_stays_open(tmp_path: Path) -> None:
    files, paths = _files(tmp_path, 3, 3)
    first = files.get(paths[0])
    files.create(tmp_path / "new")
    assert files.get(paths[0]) is first
    files.close()


def test_a_removed_file_is_closed_and_gone(tmp_path: Path) -> None:
    files, paths = _files(tmp_path, 3, 1)
    file = files.get(paths[0])
    files.remove(paths[0])
    assert not paths[0].exists()
    assert len(files) == 0
    with pytest.raises(OSError, match="descriptor"):
        file.read(0, 1)


def test_a_file_that_is_not_open_can_be_removed(tmp_path: Path) -> None:
    files, paths = _files(tmp_path, 1, 2)
    files.remove(paths[0])
    assert not paths[0].exists()
    files.close()


def test_closing_closes_all(tmp_path: Path) -> None:
    files, _ = _files(tmp_path, 5, 5)
    files.close()
    assert len(files) == 0


def test_a_file_that_somebody_else_made_is_emptied_and_taken(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"stale")
    file = OpenFiles(Disk()).create(path)
    assert file.read(0, 5) == bytes(5)
