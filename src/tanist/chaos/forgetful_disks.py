"""A disk of its own for a broker that loses what was not synced, as any may when its machine loses power.

It is a folder shown by a program of ours through FUSE, so it needs ``/dev/fuse``, libfuse 3 (Debian's
libfuse3-3), the package mfusepy and, to mount it, the superuser.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.chaos.forgetful_files import LOSE, LOST, READY
from tanist.chaos.means import NotPossible, command

_BINDING = "mfusepy"
_PROGRAM = "from tanist.chaos.forgetful_files import main; main()"
_END_S = 60.0
"""What the dead have left in the page cache comes first, and is thrown away."""


class ForgetfulDisk:
    """A disk at a folder, whose bytes lie in another beside it. It is gone after the block, and they stay."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._kept = place.with_name(f"{place.name}.kept")

    def __enter__(self) -> Self:
        if find_spec(_BINDING) is None:
            raise NotPossible(f"no disk can forget here: install the package {_BINDING}")
        for folder in (self._place, self._kept):
            folder.mkdir(parents=True, exist_ok=True)
        self.mount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unmount()

    def mount(self) -> None:
        """Be there, with what was kept. Raises NotPossible."""
        self._program = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _PROGRAM, self._kept, self._place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._told() != READY:
            _, said = self._program.communicate()
            raise NotPossible(f"no disk can forget here: {(said.strip().splitlines() or ['no reason'])[-1]}")

    def lose(self) -> None:
        """Forget what was not synced, and be gone. Whoever wrote has to be dead: he is told nothing of it."""
        assert self._program.stdin is not None
        self._program.stdin.write(f"{LOSE}\n")
        self._program.stdin.flush()
        assert self._told() == LOST
        self._unmount()

    def _unmount(self) -> None:
        if self._place.is_mount():
            # Whoever is dead may not be gone yet, and until then he is there.
            command("umount", "--lazy", str(self._place))
        self._program.communicate(timeout=_END_S)

    def _told(self) -> str:
        assert self._program.stdout is not None
        return self._program.stdout.readline().strip()
