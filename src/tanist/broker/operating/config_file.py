"""The config file that a broker was started with, which follows the changes that are made over the wire."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from tanist.config import with_settings
from tanist.config.properties import MAX_FILE_BYTES, parse_properties, read_text
from tanist.errors import UnreadableConfig


class ConfigFile:
    """One file on disk. Links are followed: the file itself is replaced, not its name in another folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def change(self, changes: Mapping[str, str]) -> None:
        """Set these keys and keep the rest, as one step: a crash leaves the old file or the new one."""
        text = with_settings(read_text(self._path), changes, source=self._path)
        data = text.encode()
        written = parse_properties(text, source=self._path)
        if len(data) > MAX_FILE_BYTES or any(written.get(key) != value for key, value in changes.items()):
            # The next start would not get what was asked for, or not begin at all.
            found = f"with these changes it would have {len(data)} bytes, or say something else"
            raise UnreadableConfig(self._path, found, f"at most {MAX_FILE_BYTES} bytes")
        path = self._path.resolve()
        try:
            _replace(path, data)
        except OSError as error:
            found = f"it can not be written: {error.strerror or error}"
            raise UnreadableConfig(self._path, found, "a file that the broker may write") from error


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_name(path.name + ".tmp")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _write(fresh, data, like=path.stat())
        fresh.replace(path)
        os.fsync(folder)
    finally:
        fresh.unlink(missing_ok=True)
        os.close(folder)


def _write(fresh: Path, data: bytes, *, like: os.stat_result) -> None:
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, _owned_like(fd, like))
        file.write(data)
        file.flush()
        os.fsync(fd)


def _owned_like(fd: int, like: os.stat_result) -> int:
    """Give a file the owner and the group of another one as far as we may; then the mode that it may have.

    Whoever may not read the old file may hold no right to the new one either: it may hold secrets.
    """
    mode = stat.S_IMODE(like.st_mode)
    for owner in (like.st_uid, -1):
        try:
            os.fchown(fd, owner, like.st_gid)
        except PermissionError:
            continue
        return mode
    return mode & ~stat.S_IRWXG
