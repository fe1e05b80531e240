"""What the indexes get of one file of the log, on its way into them.

It is the store's own dispatch that reads the log here, with recorders in the place of queues and index: so
what is built can not be other than what a broker would have built. Entries of queues are shared out among so
many files as workers will build queues; keys are one array, in the order of the log.
"""

import secrets
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast
from zlib import crc32

import numpy as np

from tanist.protocol.key_index import Keyed, key_hash
from tanist.spark.errors import SparkError
from tanist.store.dispatch import Dispatcher
from tanist.store.segments import Segments

KEYED = np.dtype([("hash", "<i4"), ("log_offset", "<i8"), ("store_ms", "<i8")])

# topic_bytes, queue_id, queue_offset, indexed_to, data_bytes
_BLOCK = struct.Struct("<HiqqI")


class Entries(NamedTuple):
    """Entries of one queue that follow each other."""

    topic: str
    queue_id: int
    queue_offset: int
    data: bytes
    indexed_to: int


class Staged(NamedTuple):
    """What was taken of one file of the log, and where it lies.

    ``attempt`` is in the names of the files: a task that is done again, or twice at once, writes its own.
    """

    number: int
    attempt: str
    record_count: int
    key_count: int
    dispatched_to: int
    share_bytes: tuple[int, ...]
    """How much there is for each share."""

    def entries_path(self, folder: Path, share: int) -> Path:
        return entries_path(folder, self.number, self.attempt, share)

    def keys_path(self, folder: Path) -> Path:
        return keys_path(folder, self.number, self.attempt)


def entries_path(folder: Path, number: int, attempt: str, share: int) -> Path:
    return folder / f"{number}-{attempt}-{share}.entries"


def keys_path(folder: Path, number: int, attempt: str) -> Path:
    return folder / f"{number}-{attempt}.keys"


def stage(
    segments: Segments,
    start: int,
    end: int,
    folder: Path,
    number: int,
    *,
    shares: int,
    levels: tuple[int, ...],
) -> Staged:
    """Take what the indexes get of ``[start, end)``, which lies in one file of the log."""
    attempt = secrets.token_hex(8)
    paths = [entries_path(folder, number, attempt, share) for share in range(shares)]
    queues, keys = _QueueRecorder(paths), _KeyRecorder(keys_path(folder, number, attempt))
    try:
        # Of the log, the queues and the index dispatch uses no more than these have.
        log: Any = _LogPart(segments, start, end)
        dispatcher = Dispatcher(log, cast("Any", queues), cast("Any", keys), delay_levels=levels)
        count = dispatcher.run()
    finally:
        queues.close()
        keys.close()
    share_bytes = tuple(path.stat().st_size for path in paths)
    return Staged(number, attempt, count, keys.count, int(dispatcher.dispatched_to), share_bytes)


class _LogPart(NamedTuple):
    segments: Segments
    log_start: int
    log_end: int


class _QueueRecorder:
    """In the place of the store's queues."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [path.open("xb") for path in paths]

    def append(
        self, topic: str, queue_id: int, queue_offset: int, data: bytes | bytearray, indexed_to: int
    ) -> None:
        name = topic.encode()
        share = crc32(name + b"/%d" % queue_id) % len(self._files)
        head = _BLOCK.pack(len(name), queue_id, queue_offset, indexed_to, len(data))
        self._files[share].writelines((head, name, data))

    def close(self) -> None:
        for file in self._files:
            file.close()


class _KeyRecorder:
    """In the place of the store's key index."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self.count = 0

    def put(self, topic: str, keys: Sequence[str], log_offset: int, store_timestamp_ms: int) -> None:
        self.extend([(key_hash(topic, key), log_offset, store_timestamp_ms) for key in keys])

    def extend(self, keyed: Sequence[Keyed]) -> None:
        self._file.write(np.array(keyed, KEYED).tobytes())
        self.count += len(keyed)

    def write_many(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self._file.close()


def read_entries(staged: Staged, folder: Path, share: int) -> Iterator[Entries]:
    """The entries of one share, in the order of the log."""
    path = staged.entries_path(folder, share)
    _check_size(path, staged.share_bytes[share])
    with path.open("rb") as file:
        while head := file.read(_BLOCK.size):
            topic_bytes, queue_id, queue_offset, indexed_to, data_bytes = _BLOCK.unpack(head)
            topic = file.read(topic_bytes).decode()
            yield Entries(topic, queue_id, queue_offset, file.read(data_bytes), indexed_to)


class StagedKeys:
    """The keys of all files of the log as one array, which is read in parts."""

    def __init__(self, folder: Path, staged: Sequence[Staged]) -> None:
        self._paths = [one.keys_path(folder) for one in staged]
        self._ends = np.cumsum(np.array([one.key_count for one in staged], np.int64))
        for path, one in zip(self._paths, staged, strict=True):
            _check_size(path, one.key_count * KEYED.itemsize)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def read(self, start: int, end: int) -> list[Keyed]:
        found: list[Keyed] = []
        while start < end:
            number = int(np.searchsorted(self._ends, start, side="right"))
            begin = int(self._ends[number - 1]) if number else 0
            stop = min(end, int(self._ends[number]))
            part = np.fromfile(
                self._paths[number], KEYED, stop - start, offset=(start - begin) * KEYED.itemsize
            )
            found += part.tolist()
            start = stop
        return found


def _check_size(path: Path, wanted: int) -> None:
    """A file that ends early would be taken for all there is."""
    found = path.stat().st_size if path.exists() else None
    if found != wanted:
        what = "it is not there" if found is None else f"it has {found}"
        raise SparkError(
            f"a task wrote {wanted} bytes to {path}, and {what}; all workers must see the folder under the "
            "same path"
        )
