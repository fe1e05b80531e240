import errno
import logging
import os
from pathlib import Path

import pytest

from tanist.errors import ForeignFile, RemoteProtocolError
from tanist.store.backed_file import BackedFile
from tanist.store.disk import Disk, File
from tests.support.failing_disk import FailingDisk, Stopped


def _parse(data: bytes) -> str:
    if not data.startswith(b"good"):
        raise RemoteProtocolError("it is not good")
    return data.decode()


def _file(tmp_path: Path, disk: Disk | None = None, *, is_summed: bool = False) -> BackedFile:
    return BackedFile(disk or Disk(), tmp_path / "config" / "table", is_summed=is_summed)


def _write(tmp_path: Path, *, main: bytes | None = None, backup: bytes | None = None) -> None:
    (tmp_path / "config").mkdir()
    if main is not None:
        (tmp_path / "config" / "table").write_bytes(main)
    if backup is not None:
        (tmp_path / "config" / "table.bak").write_bytes(backup)


def _read(tmp_path: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tmp_path / "config").iterdir()}


def test_a_file_that_was_never_written_is_none(tmp_path: Path) -> None:
    assert _file(tmp_path).load(_parse) is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    _file(tmp_path).save(b"good 1")
    assert _file(tmp_path).load(_parse) == "good 1"
    assert _read(tmp_path) == {"table": b"good 1"}


def test_the_content_before_the_last_change_is_kept(tmp_path: Path) -> None:
    file = _file(tmp_path)
    for content in (b"good 1", b"good 2", b"good 3"):
        file.save(content)
    assert _read(tmp_path) == {"table": b"good 3", "table.bak": b"good 2"}


def test_loading_makes_the_file_the_next_backup(tmp_path: Path) -> None:
    _write(tmp_path, main=b"good 1")
    file = _file(tmp_path)
    file.load(_parse)
    file.save(b"good 2")
    assert _read(tmp_path) == {"table": b"good 2", "table.bak": b"good 1"}


@pytest.mark.parametrize("main", [b"bad", b"", b" \n", None])
def test_the_backup_is_used_and_named_if_the_file_is_bad_or_gone(
    tmp_path: Path, main: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    _write(tmp_path, main=main, backup=b"good 1")
    before = _read(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert _file(tmp_path).load(_parse) == "good 1"
    assert "table.bak" in caplog.text
    assert _read(tmp_path) == before


def test_a_bad_file_never_becomes_the_backup(tmp_path: Path) -> None:
    _write(tmp_path, main=b"bad", backup=b"good 1")
    file = _file(tmp_path)
    file.load(_parse)
    file.save(b"good 2")
    assert _read(tmp_path) == {"table": b"good 2", "table.bak": b"good 1"}


@pytest.mark.parametrize(
    ("main", "backup", "named"),
    [(b"bad", b"bad", "table"), (b"bad", None, "table"), (None, b"bad", "table.bak"), (b"", b"", "table")],
)
def test_without_a_good_content_loading_is_refused_and_nothing_changed(
    tmp_path: Path, main: bytes | None, backup: bytes | None, named: str
) -> None:
    _write(tmp_path, main=main, backup=backup)
    before = _read(tmp_path)
    with pytest.raises(ForeignFile, match="restore table from a replica") as caught:
        _file(tmp_path).load(_parse)
    assert caught.value.path == tmp_path / "config" / named
    assert _read(tmp_path) == before


@pytest.mark.parametrize("is_summed", [False, True])
def test_a_save_that_is_interrupted_anywhere_leaves_the_old_or_the_new(
    tmp_path: Path, is_summed: bool
) -> None:
    for stop_at in range(100):
        root = tmp_path / str(stop_at)
        root.mkdir()
        _write(root, main=b"good 2", backup=b"good 1")
        _file(root, is_summed=is_summed).save(b"good 2")
        file = _file(root, FailingDisk(stop_at=stop_at), is_summed=is_summed)
        file.load(_parse)
        try:
            file.save(b"good 3")
        except Stopped:
            assert _file(root, is_summed=is_summed).load(_parse) in ("good 2", "good 3")
        else:
            break
    else:
        pytest.fail("the save never came to its end")
    assert stop_at >= 4
    assert _file(root, is_summed=is_summed).load(_parse) == "good 3"


def _summed(tmp_path: Path) -> BackedFile:
    return _file(tmp_path, is_summed=True)


def _save_two(tmp_path: Path) -> Path:
    file = _summed(tmp_path)
    file.save(b"good 1")
    file.save(b"good 2")
    return tmp_path / "config" / "table"


def _rewrite(path: Path, content: bytes, *, later_ms: int) -> None:
    """Write other bytes, and have the file say that this was so much later than its last change."""
    modified_ns = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(modified_ns, modified_ns + later_ms * 1_000_000))


def test_bytes_that_a_disk_has_changed_are_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = _save_two(tmp_path)
    _rewrite(path, b"good 3", later_ms=0)
    file = _summed(tmp_path)
    assert file.load(_parse) == "good 1"
    assert "its bytes are not those that were written" in caplog.text
    # The damaged content never becomes the backup.
    file.save(b"good 4")
    assert path.with_name("table.bak").read_bytes() == b"good 1"
    assert _summed(tmp_path).load(_parse) == "good 4"


def test_what_somebody_has_written_since_is_taken_at_its_word(tmp_path: Path) -> None:
    _rewrite(_save_two(tmp_path), b"good 3", later_ms=1)
    assert _summed(tmp_path).load(_parse) == "good 3"


@pytest.mark.parametrize("content", [None, b"", b"00000000 1", b"00000000 1 00000000\n", b"\xff" * 9])
def test_without_a_sound_checksum_nothing_is_compared(tmp_path: Path, content: bytes | None) -> None:
    path = _save_two(tmp_path)
    sum_path = path.with_name("table.sum")
    if content is None:
        sum_path.unlink()
    else:
        sum_path.write_bytes(content)
    _rewrite(path, b"good 3", later_ms=0)
    assert _summed(tmp_path).load(_parse) == "good 3"


class _UnreadableTime(Disk):
    """Refuses to look at a file once more, as where all numbers of open files are taken."""

    def open(self, path: Path, *, read_only: bool = False) -> File:
        del read_only
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))


def test_what_is_saved_is_saved_though_its_checksum_can_not_be_noted(tmp_path: Path) -> None:
    file = _file(tmp_path, _UnreadableTime(), is_summed=True)
    file.save(b"good 1")
    assert _read(tmp_path) == {"table": b"good 1"}
    assert _summed(tmp_path).load(_parse) == "good 1"


def test_a_checksum_that_can_not_be_read_keeps_nobody_from_the_file(tmp_path: Path) -> None:
    path = _save_two(tmp_path)
    sum_path = path.with_name("table.sum")
    sum_path.unlink()
    sum_path.mkdir()
    assert _summed(tmp_path).load(_parse) == "good 2"
