"""What of a store's log counts: from its first byte to its valid, confirmed end."""

from dataclasses import dataclass

from tanist.spark.commitlog.files import StoreFiles
from tanist.spark.commitlog.planning import open_store, readable_end
from tanist.store.reader import StoreReader
from tanist.store.recovery import scan, trusted_to


@dataclass(frozen=True, slots=True)
class LogSeen:
    """A log, and what of it counts."""

    root: str
    segment_bytes: int
    start: int
    end: int

    def files(self) -> StoreFiles:
        return StoreFiles(self.root, self.segment_bytes)


def look_at(path: str) -> LogSeen:
    """The part of a store's log that counts."""
    with open_store(path) as reader:
        return LogSeen(str(reader.root), reader.segments.size_bytes, reader.segments.start, valid_end(reader))


def valid_end(reader: StoreReader) -> int:
    """Where the log ends: behind its last sound record, and no further than is confirmed."""
    start = trusted_to(reader.segments, reader.queues, reader.checkpoint, was_closed=reader.was_closed)
    found = scan(reader.segments, start, flushed_to=reader.flushed_to)
    return min(found.end, readable_end(reader))
