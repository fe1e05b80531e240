"""Archives a store's files: its log is walked from where the last batch ended to its valid end."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from tanist.spark.archive.layout import file_name
from tanist.spark.archive.records import STORE, BrokenPlace, Positions, TaskResult
from tanist.spark.archive.sources import NewBatch, Planned
from tanist.spark.archive.writing import READ_COLUMNS, PartitionedWriter
from tanist.spark.audit.certificate import files_of
from tanist.spark.commitlog.logs import valid_end
from tanist.spark.commitlog.planning import Piece, StorePlan, open_store, plan_store
from tanist.spark.commitlog.reading import Reading
from tanist.spark.commitlog.walking import FileRange
from tanist.spark.errors import SparkError
from tanist.spark.making import Broken, Origin
from tanist.spark.wanted import Bounds, Wanted
from tanist.store.reader import StoreReader

BATCH_BYTES = 1 << 30
"""So much of the log is one batch: as much is done again after a crash, and is not seen before it is done."""
_TAIL_BYTES = 4096


class LogPosition(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Up to where a log has been archived, and a digest of its last bytes, by which it is known again."""

    log_end: int
    tail_bytes: int
    tail_digest: str


class StoreSource:
    """One store. ``broker`` is whose it is: files do not tell, and several stores are told apart by it."""

    kind = STORE
    unit = "bytes"

    def __init__(
        self,
        path: str,
        *,
        broker: str | None = None,
        topics: Iterable[str] | None = None,
        batch_bytes: int = BATCH_BYTES,
        may_lose: bool = False,
    ) -> None:
        self._path = path
        self._broker = broker
        self._topics = None if topics is None else frozenset(topics)
        self._batch_bytes = batch_bytes
        self._may_lose = may_lose

    def check(self, positions: Positions) -> None:
        with open_store(self._path) as reader:
            self._check_topics(reader)
            self._check_same(reader, self._position(positions))

    def next_batch(self, positions: Positions, batch: NewBatch) -> Planned | None:
        position = self._position(positions)
        with open_store(self._path) as reader:
            # Each time: a slave may have cut its log meanwhile, and written something else from there on.
            self._check_same(reader, position)
            log_start, log_end = reader.segments.start, valid_end(reader)
        start = log_start if position is None else max(position.log_end, log_start)
        plan = plan_store(self._path, Wanted(log_offsets=Bounds(start, log_end - 1)))
        pieces, end = _first_pieces(plan.pieces, self._batch_bytes, log_end)
        if start >= end:
            return None
        wanted = Wanted(log_offsets=Bounds(start, end - 1))
        if self._topics is not None:
            wanted = wanted.of_topics(self._topics)
        bare = replace(plan, pieces=[], origin=Origin(self._broker, plan.origin.epochs))
        work = partial(archive_piece, bare, wanted, batch.staging, batch.number)
        after = positions | {self._broker or "": msgspec.to_builtins(self._reached(end))}
        return Planned(list(pieces), work, after, log_end - end)

    def _check_same(self, reader: StoreReader, position: LogPosition | None) -> None:
        """Refuse a log that is not the one that was archived up to there, and one that lacks what follows."""
        if position is None:
            return
        start, end = reader.segments.start, valid_end(reader)
        if position.log_end > end:
            raise SparkError(
                f"the archive has come to {position.log_end} in the log of broker {self._shown}, and the "
                f"log of {self._path} ends at {end}: it is another, or was cut; name its broker with "
                "--broker-name"
            )
        if position.log_end < start and not self._may_lose:
            raise SparkError(
                f"the log of {self._path} begins at {start} now, and was to be archived from "
                f"{position.log_end} on: what lies between is deleted; --allow-loss goes on with the rest"
            )
        is_kept = position.log_end - position.tail_bytes >= start
        if is_kept and _tail(reader, position.log_end, position.tail_bytes) != position.tail_digest:
            raise SparkError(
                f"the log of {self._path} is not the one that was archived as broker {self._shown}: they "
                f"differ before {position.log_end}; name its broker with --broker-name"
            )

    def _reached(self, end: int) -> LogPosition:
        with open_store(self._path) as reader:
            size = min(_TAIL_BYTES, end - reader.segments.start)
            return LogPosition(log_end=end, tail_bytes=size, tail_digest=_tail(reader, end, size))

    @property
    def _shown(self) -> str:
        return self._broker or "(without a name)"

    def _position(self, positions: Positions) -> LogPosition | None:
        found = positions.get(self._broker or "")
        return None if found is None else msgspec.convert(found, LogPosition)

    def _check_topics(self, reader: StoreReader) -> None:
        known = {topic for (topic, _), _ in reader.queues}
        for topic in sorted(self._topics or ()):
            if topic not in known:
                raise SparkError(
                    f"there is no topic {topic} in {self._path}; there is {', '.join(sorted(known))}"
                )


def archive_piece(plan: StorePlan, wanted: Wanted, staging: Path, number: int, piece: Piece) -> TaskResult:
    """What a task does: walk some of the log, and write its messages aside."""
    broken: list[BrokenPlace] = []

    def note(found: Broken) -> None:
        if wanted.log_offsets.least <= found.log_offset <= wanted.log_offsets.most:
            broken.append(
                BrokenPlace(log_offset=found.log_offset, size_bytes=found.size_bytes, reason=found.reason)
            )

    ranges = [f"log {plan.origin.broker_name} {_range(span, wanted.log_offsets)}" for span in piece]
    writer = PartitionedWriter(staging, file_name(number, ranges))
    for batch in Reading(READ_COLUMNS, wanted, fails_on_broken=False).batches(plan, piece, note):
        writer.write(batch)
    return TaskResult(files=writer.finish(), broken=broken)


def _range(span: object, bounds: Bounds) -> str:
    assert isinstance(span, FileRange), "a log is walked"
    return f"{max(span.start, bounds.least)}-{min(span.end, bounds.most + 1)}"


def _first_pieces(pieces: list[Piece], most_bytes: int, log_end: int) -> tuple[list[Piece], int]:
    """As many pieces from the first on as make about so many bytes, and where the last of them ends."""
    taken: list[Piece] = []
    size = end = 0
    for piece in pieces:
        if size >= most_bytes:
            break
        taken.append(piece)
        size += sum(span.about_bytes for span in piece)
        last = piece[-1]
        assert isinstance(last, FileRange), "a log is walked"
        end = min(last.end, log_end)
    return taken, end


def _tail(reader: StoreReader, end: int, size: int) -> str:
    files = files_of(reader)
    try:
        return hashlib.sha256(files.read_across(end - size, size).tobytes()).hexdigest()
    finally:
        files.close()
