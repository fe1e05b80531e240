"""Reads one piece of a store, in a Python worker: from files to batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tanist.spark.arrow import RecordBatch
from tanist.spark.columns import BODY, BROKEN, Column
from tanist.spark.commitlog.by_queue import QueueRange, read_queue
from tanist.spark.commitlog.files import StoreFiles
from tanist.spark.commitlog.planning import Piece, StorePlan
from tanist.spark.commitlog.walking import FileRange, walk_range
from tanist.spark.decoding import Located
from tanist.spark.errors import SparkError
from tanist.spark.making import Broken, make_batch, make_broken
from tanist.spark.wanted import Wanted


@dataclass(frozen=True, slots=True)
class Reading:
    """How the pieces of a plan are read: which columns, which records, and what to do with what is broken."""

    columns: tuple[Column, ...]
    wanted: Wanted
    fails_on_broken: bool

    def batches(
        self, plan: StorePlan, piece: Piece, on_broken: Callable[[Broken], None]
    ) -> Iterator[RecordBatch]:
        """The messages of a piece. ``on_broken`` is told of every broken place, shown in a column or not."""
        names = {column.name for column in self.columns}
        files = StoreFiles(plan.root, plan.segment_bytes)
        try:
            for span in piece:
                for found in _found(files, span, checks_bodies=BODY in names):
                    if isinstance(found, Broken):
                        if self.fails_on_broken:
                            raise SparkError(f"{_place(plan, found)}: {found.reason}")
                        on_broken(found)
                        if BROKEN in names:
                            yield make_broken(found, self.columns)
                        continue
                    chosen = self.wanted.chosen(found, plan.deleted)
                    if len(chosen):
                        yield make_batch(chosen, self.columns, plan.origin)
        finally:
            files.close()


def broken_line(plan: StorePlan, found: Broken) -> str:
    """What the log of a worker says of a broken place."""
    return f"broken {_place(plan, found)} size_bytes={found.size_bytes} reason={found.reason}"


def _place(plan: StorePlan, found: Broken) -> str:
    return f"{plan.root} log_offset={found.log_offset}"


def _found(
    files: StoreFiles, span: FileRange | QueueRange, *, checks_bodies: bool
) -> Iterator[Located | Broken]:
    if isinstance(span, FileRange):
        yield from walk_range(files.reader_of(span.path), span, checks_bodies=checks_bodies)
        return

    def read_entries(position: int, size: int) -> bytes:
        return files.read_queue(span.directory, span.file_bytes, position, size)

    yield from read_queue(read_entries, files.read_log, span, checks_bodies=checks_bodies)
