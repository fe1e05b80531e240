"""A disk that takes the writes of a process by the trickle: a control group limits them, of either version.

Only the superuser may make one, and only where the files lie on a device of the machine. What a process has
in memory reaches the disk when it is synced, so only who waits for that notices.
"""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.chaos.means import NotPossible

_BYTES_PER_S = 128 << 10
_ROOTS = (Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup"))
_V1, _V2 = "blkio.throttle.write_bps_device", "io.max"


class SlowDisk:
    """The limit for a folder's device. It holds for whoever is slowed, and ends with the block."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = f"tanist-{os.getpid()}-{name}"

    def __enter__(self) -> Self:
        for root in _ROOTS:
            self._group = root / self._name
            try:
                self._group.mkdir()
                self._limit()
            except OSError:
                with suppress(OSError):
                    self._group.rmdir()
            else:
                return self
        raise NotPossible("writes can not be limited here: no control group may be made for this disk")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()
        self._group.rmdir()

    def slowed(self) -> list[str]:
        """The processes that write by the trickle."""
        return (self._group / "cgroup.procs").read_text(encoding="ascii").split()

    def slow(self, *pids: int) -> None:
        """Have these processes, and those that they start, write by the trickle."""
        for pid in pids:
            with suppress(ProcessLookupError):
                (self._group / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def free(self) -> None:
        """Let all of them write as they like."""
        for pid in self.slowed():
            with suppress(OSError):
                (self._group.parent / "cgroup.procs").write_text(pid, encoding="ascii")

    def _limit(self) -> None:
        # The device may not be one, as that of a disk in memory; then the system says so.
        device = self._folder.stat().st_dev
        name = f"{os.major(device)}:{os.minor(device)}"
        if (self._group / _V1).exists():
            (self._group / _V1).write_text(f"{name} {_BYTES_PER_S}", encoding="ascii")
        else:
            (self._group / _V2).write_text(f"{name} wbps={_BYTES_PER_S}", encoding="ascii")
