"""Goes round: plan a batch, have it written aside, have it count, and again."""

import logging
import time
from collections.abc import Callable

import msgspec

from tanist.spark.archive.folder import ArchiveFolder
from tanist.spark.archive.records import BrokenPlace
from tanist.spark.archive.sources import NewBatch, Planned, Source
from tanist.spark.progress import Progress, Tell, tell_nobody
from tanist.spark.running import Run, in_turn

_log = logging.getLogger(__name__)

Pause = Callable[[bool], bool]
"""Called after each batch, with whether there is nothing more just now: then it waits until it is worth
looking again. False if the job is to end.
"""


class ArchiveReport(msgspec.Struct, kw_only=True, rename="camel"):
    """What one run has archived."""

    archive: str
    batches: int = 0
    rows: int = 0
    bytes: int = 0
    """What the messages took in the log."""
    files: int = 0
    file_bytes: int = 0
    seconds: float = 0.0
    broken: list[BrokenPlace] = []


def end_when_done(is_idle: bool) -> bool:
    """Do not wait for more: take what is there, and end."""
    return not is_idle


def archive(
    folder: ArchiveFolder,
    source: Source,
    run: Run = in_turn,
    *,
    tasks: int = 1,
    pause: Pause = end_when_done,
    tell: Tell = tell_nobody,
) -> ArchiveReport:
    """Archive what there is, and what comes for as long as ``pause`` says.

    >>> source = ClusterSource(namesrv="127.0.0.1:9876", pattern=".*")
    >>> with open_for_writing(Path("/archive"), new_about(CLUSTER)) as folder:
    ...     report = archive(folder, source, on_spark(spark),
    ...                      tasks=spark.sparkContext.defaultParallelism)
    """
    source.check(folder.positions)
    report = ArchiveReport(archive=str(folder.root))
    progress = Progress(time.monotonic())
    while True:
        batch = NewBatch(folder.next_number, folder.new_staging(), tasks)
        planned = source.next_batch(folder.positions, batch)
        if planned is not None:
            _do_batch(folder, planned, run, report)
            progress.rows, progress.bytes = report.rows, report.bytes
            progress.left_rows = planned.left if source.unit == "messages" else None
            progress.left_bytes = planned.left if source.unit == "bytes" else None
            report.seconds = time.monotonic() - progress.started_s
            tell(progress)
        if not pause(planned is None or not planned.left):
            return report


def _do_batch(folder: ArchiveFolder, planned: Planned, run: Run, report: ArchiveReport) -> None:
    batch = folder.commit(run(planned.work, planned.parts), planned.positions)
    file_bytes = sum(file.file_bytes for file in batch.files)
    report.batches += 1
    report.rows += batch.rows
    report.bytes += batch.bytes
    report.files += len(batch.files)
    report.file_bytes += file_bytes
    report.broken += batch.broken
    _log.info(
        "archived batch=%d rows=%d bytes=%d files=%d file_bytes=%d broken=%d",
        batch.number, batch.rows, batch.bytes, len(batch.files), file_bytes, len(batch.broken),
    )  # fmt: skip
