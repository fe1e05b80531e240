"""The folder of an archive, as the one who writes to it sees it.

A batch counts from the moment its record stands in ``_tanist/batches``. Before that its files lie aside and
nobody sees them; from then on they are moved into their places, and whoever is killed while he moves them is
followed by one who moves the rest. So no message is in ``data`` twice, for everybody who reads files and
knows nothing of us, and none is missing once the next one has begun.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from tanist.protocol.java_json import BAD_JSON
from tanist.spark.archive.layout import ABOUT, BATCHES, COMPACTING, DATA, OURS, STAGING
from tanist.spark.archive.locks import COMPACTION, WRITER, locked, publishing
from tanist.spark.archive.records import (
    ABOUT_KIND,
    ABOUT_VERSION,
    PARQUET,
    About,
    Batch,
    Positions,
    TaskResult,
    Written,
)
from tanist.spark.errors import SparkError

_KEPT_BATCHES = 100
"""So many records are kept, for whoever wants to know what happened. Only the last one is needed."""

Append = Callable[[int, Mapping[Path, str]], None]
"""Has a batch in a table, of this number and once, by its files and where they would be below ``data``."""


def open_about(root: Path) -> About:
    """Whose messages an archive holds. One clear error if this is none."""
    path = root / OURS / ABOUT
    try:
        about = msgspec.json.decode(path.read_bytes(), type=About)
    except FileNotFoundError:
        what = "there is no such folder" if not root.exists() else f"it has no {OURS}/{ABOUT}"
        raise SparkError(
            f"{root} is no archive: {what}; `tanist spark archive --to {root} …` makes one of an empty folder"
        ) from None
    except BAD_JSON as error:
        raise SparkError(f"{path} can not be read: {error}") from error
    if about.kind != ABOUT_KIND or about.version > ABOUT_VERSION:
        raise SparkError(
            f"{path} is {about.kind!r} of version {about.version}, which this tool does not know"
        )
    return about


@contextlib.contextmanager
def open_for_writing(root: Path, wanted: About) -> Generator["ArchiveFolder"]:
    """Have an archive for oneself: make it, or go on with one that is of the same source.

    What a process that died left half done is done first.
    """
    if not (root / OURS / ABOUT).exists():
        _create(root, wanted)
    about = open_about(root)
    _check_same(root, about, wanted)
    with locked(root, WRITER):
        folder = ArchiveFolder(root, about)
        folder.recover()
        yield folder


def new_about(
    source: str,
    *,
    table_format: str = PARQUET,
    topics: Iterable[str] | None = None,
    clusters: Iterable[str] | None = None,
) -> About:
    return About(
        archive_id=secrets.token_hex(8),
        created_at=_now(),
        source=source,
        table_format=table_format,
        topics=None if topics is None else sorted(topics),
        clusters=None if clusters is None else sorted(clusters),
    )


class ArchiveFolder:
    """The folder while it is ours. ``last`` is the batch that it has come to."""

    def __init__(self, root: Path, about: About) -> None:
        self.root = root
        self.about = about
        self.last: Batch | None = None
        self._ours = root / OURS
        self._append: Append | None = None

    @property
    def positions(self) -> Positions:
        return {} if self.last is None else self.last.positions

    @property
    def next_number(self) -> int:
        return 0 if self.last is None else self.last.number + 1

    def recover(self) -> Self:
        """Finish the batch that counts and is not all in its place, and forget those that never counted."""
        records = sorted((self._ours / BATCHES).glob("[0-9]*.json"))
        if records:
            self.last = msgspec.json.decode(records[-1].read_bytes(), type=Batch)
        if self.about.table_format == PARQUET:
            self._settle()
        return self

    def append_with(self, append: Append) -> None:
        """Have batches in a table of Spark's, which was not there to finish the last one with before."""
        self._append = append
        self._settle()

    def _settle(self) -> None:
        if self.last is not None:
            self._publish(self.last)
        shutil.rmtree(self._ours / STAGING, ignore_errors=True)
        self._forget_compacted()

    def _forget_compacted(self) -> None:
        """Remove the folders that a compaction has replaced, unless one is at it now."""
        with contextlib.suppress(SparkError), locked(self.root, COMPACTION):
            shutil.rmtree(self._ours / COMPACTING, ignore_errors=True)

    def new_staging(self) -> Path:
        """A place for the files of a batch. A task of a process that was killed knows another one."""
        return self._ours / STAGING / f"{self.next_number:010d}-{secrets.token_hex(4)}"

    def commit(self, results: Iterable[TaskResult], positions: Positions) -> Batch:
        """Have a batch count, and move its files into their places."""
        found = list(results)
        files = sorted((file for one in found for file in one.files), key=lambda file: file.path)
        batch = Batch(
            number=self.next_number,
            made_at=_now(),
            positions=positions,
            rows=sum(file.rows for file in files),
            bytes=sum(file.bytes for file in files),
            files=files,
            broken=[place for one in found for place in one.broken],
        )
        self._have_staged(files)
        self._write_record(batch)
        self.last = batch
        self._publish(batch)
        return batch

    def _have_staged(self, files: Iterable[Written]) -> None:
        """Have all files of a batch on disk before it counts, and their names, up to the archive's own.

        A worker of another machine that does not share the folder has written them where we have nothing.
        """
        folders: set[Path] = set()
        for file in files:
            path = self._ours / STAGING / file.staged
            found = path.stat().st_size if path.exists() else None
            if found != file.file_bytes:
                what = "it is not there" if found is None else f"it has {found} bytes"
                raise SparkError(
                    f"a task wrote {path} with {file.file_bytes} bytes, and {what}; nothing of this batch is "
                    "archived: all workers must see the archive's folder under the same path"
                )
            folders |= {one for one in path.parents if one.is_relative_to(self._ours)}
        for folder in sorted(folders):
            sync_folder(folder)

    def _write_record(self, batch: Batch) -> None:
        write_whole(self._record_path(batch.number), msgspec.json.encode(batch))
        self._record_path(batch.number - _KEPT_BATCHES).unlink(missing_ok=True)

    def _publish(self, batch: Batch) -> None:
        """Have what lies aside where it is seen. What is not aside any more has been seen to already."""
        staged = {self._ours / STAGING / file.staged: file.path for file in batch.files}
        if self._append is None:
            assert self.about.table_format == PARQUET, "a table is appended to by Spark"
            self._move(staged)
        elif staged and all(path.exists() for path in staged):
            self._append(batch.number, staged)
        for path in {source.parent for source in staged}:
            shutil.rmtree(path, ignore_errors=True)

    def _move(self, staged: Mapping[Path, str]) -> None:
        touched: set[Path] = set()
        with publishing(self.root):
            for source, path in staged.items():
                if not source.exists():
                    continue
                place = self.root / DATA / path
                _make_folder(place.parent, self.root / DATA)
                source.replace(place)
                touched.add(place.parent)
        for path in touched:
            sync_folder(path)

    def _record_path(self, number: int) -> Path:
        return self._ours / BATCHES / f"{number:010d}.json"


def write_whole(path: Path, content: bytes) -> None:
    """Put a file where it belongs, all of it or nothing."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _create(root: Path, about: About) -> None:
    if root.exists() and any(root.iterdir()):
        found = ", ".join(sorted(path.name for path in root.iterdir())[:5])
        raise SparkError(f"{root} is no archive and is not empty ({found}); name an empty or a new folder")
    (root / OURS / BATCHES).mkdir(parents=True, exist_ok=True)
    (root / DATA).mkdir(exist_ok=True)
    write_whole(root / OURS / ABOUT, msgspec.json.format(msgspec.json.encode(about), indent=2))
    sync_folder(root)


def _check_same(root: Path, about: About, wanted: About) -> None:
    """Refuse to mix what would be there twice, or lacks something that nobody would notice."""
    for what, there, asked in (
        ("source", about.source, wanted.source),
        ("table format", about.table_format, wanted.table_format),
        ("topics", about.topics, wanted.topics),
    ):
        if there != asked:
            raise SparkError(
                f"the archive in {root} has {what} {_shown(there)}, and {_shown(asked)} is asked for; "
                "use the same, or another folder"
            )
    # Brokers of two clusters often have the same names, and their queues would be taken for one.
    if about.clusters is not None and not set(wanted.clusters or ()) <= set(about.clusters):
        raise SparkError(
            f"the archive in {root} is of cluster {_shown(about.clusters)}, and the topics are of cluster "
            f"{_shown(wanted.clusters)}; use another folder"
        )


def _shown(value: str | list[str] | None) -> str:
    return "all" if value is None else value if isinstance(value, str) else ",".join(value)


def _make_folder(path: Path, top: Path) -> None:
    """Make a folder with all above it, and have their names on disk."""
    missing = [one for one in (path, *path.parents) if one.is_relative_to(top) and not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        sync_folder(one.parent)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
