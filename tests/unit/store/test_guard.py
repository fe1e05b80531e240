import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.errors import StoreLocked
from tanist.store.disk import Disk
from tanist.store.guard import StoreGuard

# Java's file locks are POSIX locks of the process, of the first byte.
_LOCK_AS_JAVA = """
import fcntl, sys
file = open(sys.argv[1], "a+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def _java_broker(root: Path) -> Generator[None, None, None]:
    with subprocess.Popen(
        [sys.executable, "-c", _LOCK_AS_JAVA, str(root / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"locked\n"
            yield
        finally:
            process.stdin.close()


def _is_locked_for_java(root: Path) -> bool:
    result = subprocess.run(
        [sys.executable, "-c", _LOCK_AS_JAVA, str(root / "lock")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return b"locked" not in result.stdout


def _guard(root: Path) -> StoreGuard:
    return StoreGuard(Disk(), root)


def test_a_locked_store_says_so_and_has_rocketmqs_four_bytes(tmp_path: Path) -> None:
    guard = _guard(tmp_path)
    guard.acquire()
    assert guard.is_held
    assert (tmp_path / "lock").read_bytes() == b"lock"
    guard.release()
    assert not guard.is_held


def test_the_same_process_can_not_open_a_store_twice(tmp_path: Path) -> None:
    first = _guard(tmp_path)
    first.acquire()
    with pytest.raises(StoreLocked, match="lock"):
        _guard(tmp_path).acquire()
    first.release()


def test_a_refused_opening_does_not_unlock_the_store(tmp_path: Path) -> None:
    first = _guard(tmp_path)
    first.acquire()
    with pytest.raises(StoreLocked):
        _guard(tmp_path).acquire()
    assert _is_locked_for_java(tmp_path)
    first.release()


def test_a_java_broker_is_kept_out(tmp_path: Path) -> None:
    guard = _guard(tmp_path)
    guard.acquire()
    assert _is_locked_for_java(tmp_path)
    guard.release()
    assert not _is_locked_for_java(tmp_path)


def test_a_java_broker_keeps_us_out(tmp_path: Path) -> None:
    guard = _guard(tmp_path)
    with _java_broker(tmp_path):
        with pytest.raises(StoreLocked):
            guard.acquire()
        assert not guard.is_held
    guard.acquire()
    guard.release()


def test_a_released_store_can_be_locked_again(tmp_path: Path) -> None:
    guard = _guard(tmp_path)
    for _ in range(2):
        guard.acquire()
        guard.release()
    guard.release()


def test_the_abort_file_stands_while_the_store_is_open(tmp_path: Path) -> None:
    guard = _guard(tmp_path)
    assert guard.was_closed()
    guard.mark_open()
    assert not guard.was_closed()
    assert (tmp_path / "abort").read_text().isdigit()
    guard.mark_closed()
    assert guard.was_closed()
    assert list(tmp_path.iterdir()) == []
