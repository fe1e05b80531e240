"""Keeps what is cut off a log because no other replica has it.

    diverged/20261116T181704.123Z-4711/
        00000000000000004711    the bytes of the log from 4711 on, as they lay there
        report.json             from where to where, which epochs, how many messages of which topics

The report is written last, and all is durable before the log is cut. A crash between leaves a folder without
report, whose messages are still in the log, or a second copy of what is cut after the next start. Nothing
here is ever read by a broker: what to do with it is for people to say.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tanist.errors import ForeignFile, NotWritable
from tanist.model.epochs import EpochHistory
from tanist.protocol.java_json import BAD_JSON
from tanist.protocol.record import MAGIC_BLANK, Record, decode_record, peek_record
from tanist.store.commitlog import CommitLog
from tanist.store.disk import Disk, File
from tanist.store.plain_records import pass_plain

_log = logging.getLogger(__name__)

FOLDER_NAME = "diverged"
"""In the store's root. RocketMQ ignores it."""
REPORT_NAME = "report.json"

_COPY_BYTES = 1 << 20


class EpochPart(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an epoch that was cut, or all of it."""

    epoch: int
    start: int
    """Where the epoch began, which may be before what was cut."""


class DivergedReport(msgspec.Struct, frozen=True, rename="camel"):
    """What was cut: ``[start, end)`` of the log."""

    start: int
    end: int
    cut_ms: int
    epochs: tuple[EpochPart, ...]
    message_count: int
    topics: dict[str, int]
    """How many messages of each topic."""


def keep_diverged(
    disk: Disk,
    root: Path,
    log: CommitLog,
    *,
    start: int,
    end: int,
    epochs: EpochHistory,
    now_ms: int,
    is_dropped: Callable[[], bool] = lambda: False,
) -> Path | None:
    """Copy the records from ``start`` to ``end`` into a folder of their own; None if there are none.

    Raises NotWritable, and leaves nothing, as soon as ``is_dropped`` says that nobody wants it any more.
    """
    topics = _count_topics(log, start, end)
    if not topics:
        return None
    parts = [EpochPart(*epoch) for epoch in epochs.epochs if (epochs.end_at(epoch.start) or end) > start]
    report = DivergedReport(start, end, now_ms, tuple(parts), topics.total(), dict(topics))
    folder = _new_folder(disk, root / FOLDER_NAME, report)
    try:
        _copy(log, start, end, disk.create(folder / f"{start:020}"), is_dropped)
        disk.sync_dirs()
        disk.write_durably(folder / REPORT_NAME, msgspec.json.format(msgspec.json.encode(report), indent=2))
    except Exception:
        # There is no room, say. Half a copy would only take more of it, and the log has all of it still.
        disk.remove_tree(folder)
        raise
    _log.warning(
        "messages that no other replica has are kept folder=%s from=%d to=%d messages=%d topics=%s",
        *(folder, start, end, report.message_count, ",".join(sorted(topics))),
    )
    return folder


def diverged_folders(root: Path, *, disk: Disk | None = None) -> list[Path]:
    """The folders of what was cut, the oldest first; also those of copies that a crash interrupted."""
    return [root / FOLDER_NAME / name for name in (disk or Disk()).folders(root / FOLDER_NAME)]


def read_report(folder: Path) -> DivergedReport | None:
    """What a folder holds; None if a crash came before it was whole."""
    path = folder / REPORT_NAME
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=DivergedReport)
    except BAD_JSON as error:
        raise ForeignFile(path, f"it is no report of what was cut: {error}", "move it away") from error


def read_diverged(folder: Path, report: DivergedReport) -> Iterator[Record]:
    """The messages that a folder holds, in the order in which the log had them."""
    data = memoryview((folder / f"{report.start:020}").read_bytes())
    position = 0
    while position < len(data):
        size, magic = peek_record(data, position)
        if magic == MAGIC_BLANK:
            position += size
            continue
        yield decode_record(data, position)
        position += size


def _count_topics(log: CommitLog, start: int, end: int) -> Counter[str]:
    """How many messages of each topic lie there."""
    topics: Counter[str] = Counter()
    position = start
    while position < end:
        segment = log.segments.at(position)
        behind, passed = pass_plain(segment, position, end)
        topics.update(passed)
        if behind == position:
            size, magic = peek_record(segment.view, position - segment.start)
            if magic != MAGIC_BLANK:
                topics[decode_record(segment.view, position - segment.start).topic] += 1
            behind += size
        position = behind
    return topics


def _new_folder(disk: Disk, parent: Path, report: DivergedReport) -> Path:
    time = datetime.fromtimestamp(report.cut_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    name = f"{time}Z-{report.start}"
    folder, number = parent / name, 1
    while disk.exists(folder):
        number += 1
        folder = parent / f"{name}-{number}"
    disk.make_dir(folder)
    return folder


def _copy(log: CommitLog, start: int, end: int, file: File, is_dropped: Callable[[], bool]) -> None:
    with file:
        # The space first: so a full disk shows before the work.
        file.allocate(0, end - start)
        position = start
        while position < end:
            if is_dropped():
                raise NotWritable("the messages are not to be cut any more")
            piece = log.read_ahead(position, min(_COPY_BYTES, end - position))
            file.write(position - start, piece)
            position += len(piece)
        file.sync()
