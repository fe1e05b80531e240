"""A small file that is replaced as one step, with its content before the last change kept as ``.bak``."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tanist.errors import ForeignFile, RemoteProtocolError
from tanist.store.disk import Disk

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


class BackedFile:
    """A file that can not be read is left as it is: the backup is used, and named in a warning.

    If there is no good backup either, loading is refused: an empty table in place of a lost one
    would be a lie.
    """

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self._backup_path = path.with_name(path.name + ".bak")
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
        self._disk.write_durably(self._path, data)
        self._is_main_good = True

    def _read(self, path: Path, parse: Callable[[bytes], _T]) -> tuple[_T | None, str]:
        """The content, or None and why; no reason if there is no such file."""
        try:
            data = self._disk.read(path)
        except FileNotFoundError:
            return None, ""
        if not data.strip():
            return None, "the file is empty"
        try:
            return parse(data), ""
        except RemoteProtocolError as error:
            return None, str(error)
