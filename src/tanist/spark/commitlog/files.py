"""The only door from a read to the disk: bytes of the log and of the queues, by where they lie."""

import os
from pathlib import Path

import numpy as np

from tanist.spark.arrow import Bytes
from tanist.spark.commitlog.walking import ReadAt
from tanist.spark.errors import SparkError
from tanist.store.segment import segment_name


class StoreFiles:
    """The files of one store. They are read, not mapped: one that is cut short meanwhile kills nobody.

    What a read returns is good until the next one: it is the same memory again.
    """

    def __init__(self, root: str, segment_bytes: int) -> None:
        self._log = Path(root) / "commitlog"
        self._segment_bytes = segment_bytes
        self._open: dict[Path, int] = {}
        self._buffer = np.empty(0, np.uint8)

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def reader_of(self, path: str) -> ReadAt:
        """Reads of one file, by positions in it."""
        file = Path(path)
        return lambda position, size: self._read(file, position, size)

    def read_log(self, log_offset: int, size: int) -> Bytes:
        """Some bytes of the log that lie in one file; fewer where that file ends."""
        start = log_offset - log_offset % self._segment_bytes
        return self._read(self._log / segment_name(start), log_offset - start, size)

    def read_across(self, log_offset: int, size: int) -> Bytes:
        """Some bytes of the log, over the ends of its files; fewer where the log ends. A copy."""
        parts: list[Bytes] = []
        while size > 0:
            wanted = min(size, self._segment_bytes - log_offset % self._segment_bytes)
            part = self.read_log(log_offset, wanted).copy()
            parts.append(part)
            if len(part) < wanted:
                break
            log_offset, size = log_offset + wanted, size - wanted
        return np.concatenate(parts) if parts else np.empty(0, np.uint8)

    def read_queue(self, directory: str, file_bytes: int, position: int, size: int) -> bytes:
        """Some bytes of a queue, over the ends of its files."""
        parts: list[bytes] = []
        while size > 0:
            start = position - position % file_bytes
            wanted = min(size, start + file_bytes - position)
            part = self._read(Path(directory) / segment_name(start), position - start, wanted).tobytes()
            parts.append(part)
            if len(part) < wanted:
                break
            position, size = position + wanted, size - wanted
        return b"".join(parts)

    def _read(self, path: Path, position: int, size: int) -> Bytes:
        fd = self._fd(path)
        if len(self._buffer) < size:
            self._buffer = np.empty(size, np.uint8)
        filled = 0
        while filled < size:
            got = os.preadv(fd, [self._buffer.data[filled:size]], position + filled)
            if not got:
                break
            filled += got
        return self._buffer[:filled]

    def _fd(self, path: Path) -> int:
        fd = self._open.get(path)
        if fd is None:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError as error:
                raise SparkError(
                    f"{path} is gone since the read began: its broker deletes old files; read again"
                ) from error
            self._open[path] = fd
        return fd
