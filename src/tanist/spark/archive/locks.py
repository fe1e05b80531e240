"""Who is at an archive: one writer, one compaction, and one at a time of the two who changes what is seen.

The locks are of the open file: they are gone with the process that held them, however it ended.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Generator
from pathlib import Path

from tanist.spark.archive.layout import OURS
from tanist.spark.errors import SparkError

WRITER = "writer.lock"
COMPACTION = "compaction.lock"
_PUBLISHING = "publishing.lock"
_MOST_TEXT_BYTES = 200


@contextlib.contextmanager
def locked(root: Path, name: str) -> Generator[None]:
    """Hold a lock. One clear error, which says who holds it, if another process does."""
    fd = _open(root, name)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, _MOST_TEXT_BYTES, 0).decode("utf-8", "replace").strip() or "another process"
            doing = "written to" if name == WRITER else "compacted"
            raise SparkError(
                f"the archive in {root} is being {doing} by {holder}; wait for it, or stop it first"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def publishing(root: Path) -> Generator[None]:
    """Wait until nobody else changes what is seen. Nobody does for long."""
    fd = _open(root, _PUBLISHING)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _open(root: Path, name: str) -> int:
    return os.open(root / OURS / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
