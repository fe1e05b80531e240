import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tanist.errors import DiskFull
from tanist.store.disk import Disk, ReadOnlyDisk


class _SyncsSeen(Disk):
    def __init__(self) -> None:
        super().__init__()
        self.synced: list[Path] = []

    def sync_dir(self, directory: Path) -> None:
        self.synced.append(directory)
        super().sync_dir(directory)


def _failing(number: int) -> Callable[..., int]:
    def fail(*_args: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    with Disk().create(tmp_path / "a") as file:
        file.resize(100)
        file.write(10, b"hello")
        assert file.size_bytes == 100
        assert file.read(8, 9) == b"\0\0hello\0\0"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_the_file_and_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with Disk().create(tmp_path / "a") as file:
        monkeypatch.setattr(os, "posix_fallocate", _failing(number))
        monkeypatch.setattr(os, "pwrite", _failing(number))
        with pytest.raises(DiskFull, match="4096 bytes") as caught:
            file.allocate(0, 4096)
        assert caught.value.path == tmp_path / "a"
        with pytest.raises(DiskFull, match="5 bytes"):
            file.write(0, b"hello")


def test_another_failure_of_the_disk_is_not_called_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Disk().create(tmp_path / "a") as file:
        monkeypatch.setattr(os, "pwrite", _failing(errno.EIO))
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            file.write(0, b"hello")


def test_a_write_that_takes_only_a_part_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite

    def write_two(fd: int, data: memoryview, position: int) -> int:
        return pwrite(fd, data[:2], position)

    with Disk().create(tmp_path / "a") as file:
        monkeypatch.setattr(os, "pwrite", write_two)
        file.write(0, b"hello")
        assert file.read(0, 9) == b"hello"


def test_zeroing_clears_everything_from_a_byte_on_and_counts_it(tmp_path: Path) -> None:
    size = 3 << 20
    with Disk().create(tmp_path / "a") as file:
        file.resize(size)
        file.write(0, b"keep" + b"stale")
        file.write(size - 3, b"end")
        assert file.zero_from(4) >= len(b"stale" + b"end")
        assert file.read(0, size) == b"keep".ljust(size, b"\0")
        assert file.zero_from(4) == 0


def test_what_was_only_stored_through_a_mapping_counts_as_written(tmp_path: Path) -> None:
    with Disk().create(tmp_path / "a") as file:
        file.allocate(0, 1 << 16)
        mapped = file.map(1 << 16)
        mapped[40000:40005] = b"hello"
        assert any(begin <= 40000 < end for begin, end in file.written_ranges(0))
        assert file.zero_from(0) > 0
        assert not any(mapped[:])
        mapped.close()


def test_a_file_is_made_once(tmp_path: Path) -> None:
    Disk().create(tmp_path / "a").close()
    with pytest.raises(FileExistsError):
        Disk().create(tmp_path / "a")


def test_a_durable_write_replaces_the_content_and_leaves_nothing_else(tmp_path: Path) -> None:
    disk = Disk()
    disk.write_durably(tmp_path / "a", b"old content")
    disk.write_durably(tmp_path / "a", b"new")
    assert disk.read(tmp_path / "a") == b"new"
    assert disk.names(tmp_path) == ["a"]


def test_a_durable_write_gets_over_the_leftover_of_an_interrupted_one(tmp_path: Path) -> None:
    (tmp_path / "a.tmp").write_bytes(b"half of a much longer content")
    Disk().write_durably(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert not (tmp_path / "a.tmp").exists()


def test_a_copy_keeps_the_content_from_before_a_durable_write(tmp_path: Path) -> None:
    disk = Disk()
    (tmp_path / "b").write_bytes(b"something older")
    disk.write_durably(tmp_path / "a", b"old")
    disk.copy(tmp_path / "a", tmp_path / "b")
    disk.write_durably(tmp_path / "a", b"new")
    assert disk.read(tmp_path / "b") == b"old"


def test_files_and_folders_are_told_apart_and_sorted(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).touch()
        (tmp_path / f"folder {name}").mkdir()
    assert Disk().names(tmp_path) == ["a", "b"]
    assert Disk().folders(tmp_path) == ["folder a", "folder b"]


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert Disk().names(tmp_path / "none") == Disk().folders(tmp_path / "none") == []


def test_every_folder_whose_names_have_changed_is_synced_once(tmp_path: Path) -> None:
    disk = _SyncsSeen()
    disk.make_dir(tmp_path / "x" / "y")
    disk.create(tmp_path / "x" / "y" / "a").close()
    disk.create(tmp_path / "x" / "y" / "b").close()
    disk.sync_dirs()
    assert sorted(disk.synced) == [tmp_path, tmp_path / "x", tmp_path / "x" / "y"]
    disk.sync_dirs()
    assert len(disk.synced) == 3


@pytest.mark.parametrize("change", ["remove", "replace", "copy"])
def test_a_name_that_goes_or_changes_is_synced_too(tmp_path: Path, change: str) -> None:
    (tmp_path / "a").touch()
    disk = _SyncsSeen()
    match change:
        case "remove":
            disk.remove(tmp_path / "a")
        case "replace":
            disk.replace(tmp_path / "a", tmp_path / "b")
        case _:
            disk.copy(tmp_path / "a", tmp_path / "b")
    disk.sync_dirs()
    assert disk.synced == [tmp_path]


def test_all_names_in_a_tree_can_be_synced_whoever_made_them(tmp_path: Path) -> None:
    (tmp_path / "store" / "x" / "y").mkdir(parents=True)
    disk = _SyncsSeen()
    disk.sync_tree(tmp_path / "store")
    folders = [tmp_path, tmp_path / "store", tmp_path / "store" / "x", tmp_path / "store" / "x" / "y"]
    assert sorted(disk.synced) == folders


def test_a_disk_without_room_for_a_name_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", _failing(errno.ENOSPC))
    with pytest.raises(DiskFull, match="a"):
        Disk().create(tmp_path / "a")


def test_removing_and_syncing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    disk = Disk()
    disk.remove(tmp_path / "a")
    disk.sync_file(tmp_path / "a")
    disk.sync_dir(tmp_path / "none")


def test_the_disk_is_between_empty_and_full(tmp_path: Path) -> None:
    assert 0 < Disk().used_ratio(tmp_path) <= 1


def test_a_deleted_file_knows_it(tmp_path: Path) -> None:
    with Disk().create(tmp_path / "a") as file:
        assert not file.is_deleted
        (tmp_path / "a").unlink()
        assert file.is_deleted


def test_a_read_only_disk_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello")
    disk = ReadOnlyDisk()
    disk.make_dir(tmp_path / "none")
    with pytest.raises(PermissionError):
        disk.create(tmp_path / "b")
    with pytest.raises(PermissionError):
        disk.remove(tmp_path / "a")
    with disk.open(tmp_path / "a") as file:
        assert file.read(0, 9) == b"hello"
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            file.write(0, b"j")
        mapped = file.map(5)
        with pytest.raises(TypeError):
            mapped[0] = 0
        mapped.close()
    assert disk.names(tmp_path) == ["a"]
    assert disk.folders(tmp_path) == []


def test_removing_a_folder_with_all_that_is_in_it_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "kept")
    Disk().remove_tree(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "kept" / "file").exists()
