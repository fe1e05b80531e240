"""A small file that is replaced as one step, with its content before the last change kept as ``.bak``.

RocketMQ's files have no room for a checksum, so it may stand beside them, in ``.sum``. A disk that changes
bytes leaves the file's time as it is: only of a file with the time that was noted is the checksum compared,
and what RocketMQ or a person has written since is taken at its word.
"""

import logging
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from tanist.errors import DiskFull, ForeignFile, RemoteProtocolError
from tanist.store.disk import Disk

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


class BackedFile:
    """A file that can not be read is left as it is: the backup is used, and named in a warning.

    If there is no good backup either, loading is refused: an empty table in place of a lost one
    would be a lie.
    """

    def __init__(self, disk: Disk, path: Path, *, is_summed: bool = False) -> None:
        self._disk = disk
        self._path = path
        self._backup_path = path.with_name(path.name + ".bak")
        self._sum_path = path.with_name(path.name + ".sum") if is_summed else None
        self._is_main_good = False

    def load(self, parse: Callable[[bytes], _T]) -> _T | None:
        """What ``parse`` makes of the file or else of its backup; None if there is neither."""
        main, main_reason = self._read(self._path, parse)
        if main is not None:
            self._is_main_good = True
            return main
        backup, backup_reason = self._read(self._backup_path, parse)
        if backup is not None:
            reason = main_reason or "the file is missing"
            _log.warning(
                "backup is used path=%s backup=%s reason=%s", self._path, self._backup_path.name, reason
            )
            return backup
        if main_reason or backup_reason:
            raise ForeignFile(
                self._path if main_reason else self._backup_path,
                main_reason or backup_reason,
                f"restore {self._path.name} from a replica or a backup, or delete it to begin without",
            )
        return None

    def save(self, data: bytes) -> None:
        """Replace the content. What was there before becomes the backup, if it was good."""
        self._disk.make_dir(self._path.parent)
        if self._is_main_good:
            kept = self._backup_path.with_name(self._backup_path.name + ".tmp")
            self._disk.copy(self._path, kept)
            self._disk.replace(kept, self._backup_path)
        if self._sum_path is not None:
            # No crash may leave the new content beside the old checksum.
            self._disk.remove(self._sum_path)
        self._disk.write_durably(self._path, data)
        self._is_main_good = True
        if self._sum_path is not None:
            self._note_sum(self._sum_path, data)

    def _read(self, path: Path, parse: Callable[[bytes], _T]) -> tuple[_T | None, str]:
        """The content, or None and why; no reason if there is no such file."""
        try:
            data = self._disk.read(path)
        except FileNotFoundError:
            return None, ""
        if not data.strip():
            return None, "the file is empty"
        if path == self._path and self._sum_path is not None and self._is_changed(self._sum_path, data):
            return None, "its bytes are not those that were written: they do not match its checksum"
        try:
            return parse(data), ""
        except RemoteProtocolError as error:
            return None, str(error)

    def _note_sum(self, path: Path, data: bytes) -> None:
        """Not durable, nor needed: without it nothing is compared."""
        with suppress(DiskFull, OSError):
            noted = f"{zlib.crc32(data):08x} {self._modified_ms()}"
            with self._disk.create(path) as file:
                file.write(0, f"{noted} {zlib.crc32(noted.encode()):08x}\n".encode())

    def _is_changed(self, path: Path, data: bytes) -> bool:
        """Whether the content is another than was written, and nobody has written it since."""
        try:
            noted, _, check = self._disk.read(path).decode().strip().rpartition(" ")
            crc, modified_ms = noted.split()
            is_known = int(check, 16) == zlib.crc32(noted.encode())
            return is_known and int(modified_ms) == self._modified_ms() and int(crc, 16) != zlib.crc32(data)
        except (OSError, ValueError):
            return False

    def _modified_ms(self) -> int:
        with self._disk.open(self._path, read_only=True) as file:
            return file.modified_ms
