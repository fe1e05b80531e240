"""Makes few large files of many small ones, and nobody notices: a day's folder is exchanged as a whole.

The files of a topic's day are merged aside. A new folder gets the merged file, and a second name for every
file that stays; then it takes the place of the old one in one step. Who lists the folder sees all of the old
files or all of the new. So there is nothing to make good after a crash: what lies aside counts for nobody.
The old folder stays there until a compaction or an archive starts again, for those who have it open.
"""

import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from tanist.spark.archive.catalogue import Found, find_files, merged_runs
from tanist.spark.archive.folder import open_about, sync_folder
from tanist.spark.archive.layout import COMPACTING, DATA, OURS, SUFFIX, merged_name
from tanist.spark.archive.locks import COMPACTION, locked, publishing
from tanist.spark.archive.records import Holds
from tanist.spark.archive.swapping import swap
from tanist.spark.archive.writing import close_durably, parquet_writer
from tanist.spark.progress import Progress, Tell, tell_nobody
from tanist.spark.running import Run, in_turn

TARGET_BYTES = 256 << 20
"""A file that has half of this stays as it is; files are merged until they have about so much."""
_ROW_GROUP_BYTES = 32 << 20
_AT_ONCE = 16
"""So many groups are merged before their folders are exchanged, and progress is told."""

_log = logging.getLogger(__name__)


class Group(msgspec.Struct, kw_only=True, frozen=True):
    """Files of one folder that become one."""

    folder: Path
    files: list[Found]


class CompactionReport(msgspec.Struct, kw_only=True, rename="camel"):
    """What a compaction has done."""

    archive: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    rows: int = 0
    """In the files that were merged."""
    seconds: float = 0.0


def choose(files: Iterable[Found], target_bytes: int = TARGET_BYTES) -> list[Group]:
    """What to merge: neighbours among the small files of a folder, up to about the target."""
    by_folder: dict[Path, list[Found]] = {}
    for one in files:
        if one.file_bytes < target_bytes // 2:
            by_folder.setdefault(one.path.parent, []).append(one)
    groups: list[Group] = []
    for folder, small in sorted(by_folder.items()):
        taken: list[Found] = []
        for one in sorted(small, key=lambda found: found.path.name):
            if taken and sum(each.file_bytes for each in taken) + one.file_bytes > target_bytes:
                groups.append(Group(folder=folder, files=taken))
                taken = []
            taken.append(one)
        groups.append(Group(folder=folder, files=taken))
    return [group for group in groups if len(group.files) > 1]


def compact(
    root: Path, run: Run = in_turn, *, target_bytes: int = TARGET_BYTES, tell: Tell = tell_nobody
) -> CompactionReport:
    """Merge the small files of an archive. A writer may go on meanwhile."""
    open_about(root)
    started = time.monotonic()
    with locked(root, COMPACTION):
        aside = root / OURS / COMPACTING
        # What the last one left for those who had it open.
        shutil.rmtree(aside, ignore_errors=True)
        before = find_files(root)
        groups = choose(before, target_bytes)
        report = CompactionReport(
            archive=str(root),
            files_before=len(before),
            files_after=len(before),
            bytes_before=sum(one.file_bytes for one in before),
            bytes_after=sum(one.file_bytes for one in before),
        )
        progress = Progress(started, left_bytes=_bytes(groups))
        for first in range(0, len(groups), _AT_ONCE):
            some = groups[first : first + _AT_ONCE]
            merged = run(partial(merge, aside), some)
            for group, path in zip(some, merged, strict=True):
                exchange(root, group, path)
                report.bytes_after += (group.folder / path.name).stat().st_size - _bytes([group])
                report.files_after -= len(group.files) - 1
                report.rows += sum(one.holds.rows for one in group.files)
                progress.add(sum(one.holds.rows for one in group.files), _bytes([group]))
            progress.left_bytes = _bytes(groups[first + _AT_ONCE :])
            tell(progress)
    report.seconds = time.monotonic() - started
    return report


def merge(aside: Path, group: Group) -> Path:
    """What a task does: write what some files hold into one. Their rows stay in their order."""
    parquet: Any = import_module("pyarrow.parquet")
    path = aside / secrets.token_hex(8) / merged_name(one.path.name for one in group.files)
    writer = parquet_writer(path)
    waiting: list[Any] = []
    size = 0
    for one in group.files:
        with parquet.ParquetFile(one.path) as file:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number)
                waiting.append(table)
                size += table.nbytes
                if size >= _ROW_GROUP_BYTES:
                    _write(writer, waiting)
                    waiting, size = [], 0
    _write(writer, waiting)
    holds = group.files[0].holds
    merged = Holds(
        topic=holds.topic,
        date=holds.date,
        rows=sum(one.holds.rows for one in group.files),
        runs=merged_runs(run for one in group.files for run in one.holds.runs),
    )
    close_durably(writer, path, merged)
    return path


def exchange(root: Path, group: Group, merged: Path) -> None:
    """Put the merged file into the place of the others. What a writer has moved there since stays."""
    fresh = merged.parent
    gone = {one.path.name for one in group.files}
    with publishing(root):
        for path in group.folder.iterdir():
            if path.name not in gone and path.suffix == SUFFIX:
                os.link(path, fresh / path.name)
        sync_folder(fresh)
        swap(fresh, group.folder)
    sync_folder(group.folder.parent)
    sync_folder(fresh.parent)
    # What was the folder lies aside now, and stays for a while: who has opened it may not have listed it yet,
    # and would find nothing in it.
    _log.info(
        "compacted folder=%s files=%d into=%s",
        group.folder.relative_to(root / DATA), len(group.files), merged.name,
    )  # fmt: skip


def _write(writer: Any, tables: list[Any]) -> None:
    if tables:
        table = import_module("pyarrow").concat_tables(tables).replace_schema_metadata(None)
        writer.write_table(table, row_group_size=max(1, table.num_rows))


def _bytes(groups: Iterable[Group]) -> int:
    return sum(one.file_bytes for group in groups for one in group.files)
