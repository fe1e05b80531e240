"""The lock of a cluster's folder, which all its processes hold as long as one of them lives.

Children outlive a ``tanist up`` that was killed, and two brokers on one store would ruin it. So each of them
inherits the open lock, and the next start finds out.
"""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from tanist.errors import MQError

_FILE = "lock"


class HomeTaken(MQError):
    """Processes of another start work in this folder."""


@contextlib.contextmanager
def locked_home(home: Path) -> Generator[int]:
    """Hold the folder while the block lasts, and as long as a process lives that inherited the descriptor.

    Raises HomeTaken.
    """
    lock = os.open(home / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HomeTaken(_who_holds(home)) from error
        yield lock
    finally:
        os.close(lock)


def _who_holds(home: Path) -> str:
    pids = " ".join(str(pid) for pid in _holders(home / _FILE))
    if not pids:
        return f"other processes work in {home}; find them with: fuser {home / _FILE}"
    return f"processes of an earlier start work in {home}; stop them with: kill {pids}"


def _holders(file: Path) -> list[int]:
    """The processes that have the file open, of those that may be looked at; never this one."""
    wanted = file.stat()
    found: set[int] = set()
    for each in Path("/proc").glob("[0-9]*/fd/*"):
        pid = int(each.parts[2])
        with contextlib.suppress(OSError):
            if pid != os.getpid() and os.path.samestat(each.stat(), wanted):
                found.add(pid)
    return sorted(found)
