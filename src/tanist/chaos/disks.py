"""A disk of its own for a broker, so small that somebody may fill it. Only the superuser may mount one."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.chaos.means import NotPossible, command

_SIZE_BYTES = 192 << 20
"""Room for the indexes of a new store, which are made in one piece, and some files of its log."""


class SmallDisk:
    """A disk in memory at a folder. It is gone after the block, with all that is on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        options = f"size={_SIZE_BYTES}"
        try:
            command("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self._folder))
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotPossible("no disk can be mounted here", error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        command("umount", "--lazy", str(self._folder))

    def fill(self) -> None:
        """Take all the room that is left."""
        with self._ballast.open("ab") as file:
            while room_bytes := self._room_bytes:
                # The broker takes some of it meanwhile; then it is measured anew.
                with suppress(OSError):
                    os.posix_fallocate(file.fileno(), file.tell(), room_bytes)
                    file.seek(0, os.SEEK_END)

    @property
    def _room_bytes(self) -> int:
        usage = os.statvfs(self._folder)
        return usage.f_bavail * usage.f_frsize

    def free(self) -> None:
        """Give it back."""
        self._ballast.unlink(missing_ok=True)
