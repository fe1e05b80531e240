"""How much memory a process may have."""

import resource
from pathlib import Path

_SPARE_BYTES = 1 << 20


def cap(pid: int) -> None:
    """Let a process have hardly more than it has: what it asks for from now on it does not get."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
    _limit(pid, pages * resource.getpagesize() + _SPARE_BYTES)


def uncap(pid: int) -> None:
    """Let it have what it wants."""
    _limit(pid, resource.RLIM_INFINITY)


def _limit(pid: int, size_bytes: int) -> None:
    # The hard limit stays, or nobody but the superuser could lift it again.
    _, most = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (size_bytes, most))
