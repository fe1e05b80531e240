"""The config file that a broker was started with, which follows the changes that are made over the wire."""

import os
from collections.abc import Mapping
from pathlib import Path

from tanist.config import with_settings
from tanist.config.properties import read_text
from tanist.errors import UnreadableConfig


class ConfigFile:
    """One file on disk. Links are followed: the file itself is replaced, not its name in another folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def change(self, changes: Mapping[str, str]) -> None:
        """Set these keys and keep the rest, as one step: a crash leaves the old file or the new one."""
        text = with_settings(read_text(self._path), changes, source=self._path)
        path = self._path.resolve()
        try:
            _replace(path, text.encode())
        except OSError as error:
            found = f"it can not be written: {error.strerror or error}"
            raise UnreadableConfig(self._path, found, "a file that the broker may write") from error


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_name(path.name + ".tmp")
    # Whoever may not read the old file may hold no right to the new one either: it may hold secrets.
    mode = path.stat().st_mode & 0o777
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
