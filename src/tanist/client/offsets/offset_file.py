"""A broadcasting consumer's ``offsets.json``, as Java's clients write it.

The text is that of RocketMQ's LocalFileOffsetStore, which has queues themselves as keys and so is not
quite JSON. A change replaces the file as one step, and the content before it becomes ``.bak``. Java
writes over the file in place, so that a crash of it may leave half a file; then the backup counts.
"""

import fcntl
import logging
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from tanist.errors import ForeignFile, RemoteProtocolError, StoreLocked
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.reset import OffsetTable

_log = logging.getLogger(__name__)

_LOCK_TRIES = 60
_LOCK_PAUSE_S = 0.05
"""A write takes milliseconds: who has to wait for longer waits for a process that was stopped."""

Offsets = dict[MessageQueue, QueueOffset]


@dataclass(frozen=True, slots=True)
class Kept:
    """What was read. ``data`` is the file itself, if it is good: then the offsets are not its backup's."""

    offsets: Offsets = field(default_factory=Offsets)
    data: bytes | None = None


class OffsetFile:
    """The file and its backup. Every call waits for the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._backup_path = path.with_name(path.name + ".bak")

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold off other writers, also those in other processes: all on a machine share the file.

        Raises StoreLocked if one of them holds it for seconds: it was stopped in the middle of a write.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(self.path.name + ".lock").open("w") as lock:
            self._take(lock)
            yield

    def _take(self, lock: IO[str]) -> None:
        for left in reversed(range(_LOCK_TRIES)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not left:
                    raise StoreLocked(
                        f"{lock.name} is held by another process; offsets are kept when it lets go"
                    ) from None
                time.sleep(_LOCK_PAUSE_S)
            else:
                return

    def read(self) -> Kept:
        """The offsets of the file or else of its backup; none if there is neither.

        Raises ForeignFile if there is something and none of it can be read: to begin without would
        deliver everything again, or skip it.
        """
        data, offsets, reason = _read(self.path)
        if offsets is not None:
            return Kept(offsets, data)
        _, backup, backup_reason = _read(self._backup_path)
        if backup is not None:
            _log.warning(
                "backup is used path=%s backup=%s reason=%s",
                *(self.path, self._backup_path.name, reason or "the file is missing or empty"),
            )
            return Kept(backup)
        if not reason and not backup_reason:
            return Kept()
        raise ForeignFile(
            self.path if reason else self._backup_path,
            reason or backup_reason,
            f"mend {self.path.name}, or delete it and {self._backup_path.name} to begin without offsets",
        )

    def write(self, offsets: Mapping[MessageQueue, QueueOffset], before: Kept) -> None:
        """Replace the file. Only whoever holds ``locked`` may, with what it read meanwhile."""
        if before.data is not None:
            _replace(self._backup_path, before.data)
        _replace(self.path, encode_offsets(offsets))


def encode_offsets(offsets: Mapping[MessageQueue, QueueOffset]) -> bytes:
    """The text that Java's clients write, with the queues sorted."""
    return b'{\n\t"offsetTable":{%b\n\t}\n}' % b",".join(
        b'{\n\t\t\t"brokerName":%b,\n\t\t\t"queueId":%d,\n\t\t\t"topic":%b\n\t\t}:%d'
        % (msgspec.json.encode(queue.broker_name), queue.queue_id, msgspec.json.encode(queue.topic), offset)
        for queue, offset in sorted(offsets.items())
    )


def _read(path: Path) -> tuple[bytes, Offsets | None, str]:
    """The content and the offsets in it; or None for them and why, without a reason if nothing is there."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return b"", None, ""
    except OSError as error:
        return b"", None, error.strerror or str(error)
    # Java leaves an empty file behind if it is killed at the wrong moment, and takes it for none.
    if not data:
        return b"", None, ""
    try:
        table = decode_java_json(data, OffsetTable, is_trusted=True).offset_table
    except RemoteProtocolError as error:
        return data, None, str(error)
    # Java may write -1, which means none.
    return data, {queue: offset for queue, offset in table.items() if offset >= 0}, ""


def _replace(path: Path, data: bytes) -> None:
    """Replace a file as one step: a crash leaves the old content or the new, nothing between."""
    fresh = path.with_name(path.name + ".tmp")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
