"""Rebuilds the indexes of a store: the log is read file by file, then queues and index files are built.

What is built is what dispatch would build, byte for byte; only the names of index files are not, which tell
when they were begun: here that is the store time of their first message.
"""

import logging
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from tanist.errors import CorruptRecord
from tanist.spark.commitlog.logs import valid_end
from tanist.spark.commitlog.planning import open_store
from tanist.spark.errors import SparkError
from tanist.spark.rebuild.staging import Staged, StagedKeys, read_entries, stage
from tanist.spark.running import Run, in_turn
from tanist.store.deletions import Deletions
from tanist.store.disk import Disk
from tanist.store.guard import StoreGuard
from tanist.store.index_file import IndexFile
from tanist.store.key_index import NAME_DIGITS
from tanist.store.queues import Queues
from tanist.store.settings import StoreSettings

_log = logging.getLogger(__name__)

DEFAULT_SHARES = 8
_STAGING = "staging"
_QUEUES, _INDEX = "consumequeue", "index"
_BEFORE = ".before-rebuild"
_KEYS_AT_ONCE = 1 << 16


class RebuildReport(msgspec.Struct, kw_only=True, rename="camel"):
    """What was built."""

    store: str
    built_in: str
    log_start: int
    log_end: int
    record_count: int
    queue_count: int
    key_count: int
    index_files: int
    problems: list[str]
    """Messages that dispatch would not have queued either."""


class _Built(NamedTuple):
    folder: str
    queue_count: int
    problems: list[str]


class _IndexPart(NamedTuple):
    """One index file: its name, and which of all keys are in it."""

    name: str
    start: int
    end: int


def rebuild(
    store: str,
    to: str | None = None,
    *,
    settings: StoreSettings | None = None,
    shares: int = DEFAULT_SHARES,
    run: Run = in_turn,
) -> RebuildReport:
    """Build the indexes of a store again.

    Into the folder ``to``, which must not be there yet; or, without one, in the place of the store's own,
    which stay beside them with ``.before-rebuild`` behind their names. The store must not be in use then.
    """
    root, given = Path(store), settings or StoreSettings()
    if to is not None:
        return _rebuild(root, Path(to), given, shares, run)
    open_store(store).close()
    guard = StoreGuard(Disk(), root)
    guard.acquire()
    try:
        built_in = root / "rebuilt"
        report = _rebuild(root, built_in, given, shares, run)
        _replace(root, built_in)
        report.built_in = str(root)
        return report
    finally:
        guard.release()


def _rebuild(root: Path, to: Path, settings: StoreSettings, shares: int, run: Run) -> RebuildReport:
    if to.exists():
        raise SparkError(f"{to} is there already; name a folder that is not, or remove it")
    staging = to / _STAGING
    with open_store(str(root)) as reader:
        start, end = reader.segments.start, valid_end(reader)
        queue_file_bytes = reader.queues.file_bytes if len(reader.queues) else settings.queue_file_bytes
        spans = [(max(one.start, start), min(one.end, end)) for one in reader.segments.between(start, end)]
    staging.mkdir(parents=True)
    parts = [(number, *span) for number, span in enumerate(spans)]
    levels = settings.delay_levels
    staged = run(partial(_stage, str(root), str(staging), shares, levels), parts, size_of=_span_bytes)
    for one, span in zip(staged, spans, strict=True):
        if one.dispatched_to < span[1]:
            raise SparkError(f"the log of {root} can not be read from {one.dispatched_to} to {span[1]}")
    build_share = partial(_build_queues, str(root), str(to), staged, queue_file_bytes)
    queues = run(build_share, range(shares))
    for one in queues:
        _move_queues(to, Path(one.folder))
    index = list(_index_parts(StagedKeys(staging, staged), settings.max_index_num - 1))
    run(partial(_build_index, str(to), staged, settings.max_hash_slot_num, settings.max_index_num), index)
    Disk().remove_tree(staging)
    _log.info(
        "rebuilt store=%s log_start=%d log_end=%d read_bytes=%d records=%d index_files=%d",
        root, start, end, end - start, sum(one.record_count for one in staged), len(index),
    )  # fmt: skip
    return RebuildReport(
        store=str(root),
        built_in=str(to),
        log_start=start,
        log_end=end,
        record_count=sum(one.record_count for one in staged),
        queue_count=sum(one.queue_count for one in queues),
        key_count=sum(one.key_count for one in staged),
        index_files=len(index),
        problems=[problem for one in queues for problem in one.problems],
    )


def _span_bytes(part: tuple[int, int, int]) -> int:
    return part[2] - part[1]


def _stage(
    root: str, staging: str, shares: int, levels: tuple[int, ...], part: tuple[int, int, int]
) -> Staged:
    number, start, end = part
    with open_store(root) as reader:
        return stage(reader.segments, start, end, Path(staging), number, shares=shares, levels=levels)


def _build_queues(root: str, to: str, staged: Sequence[Staged], queue_file_bytes: int, share: int) -> _Built:
    """Build the queues of one share, in the order of the log.

    In a folder of this attempt's own: a task that is done again begins anew, and one that was given up and
    goes on all the same harms nobody.
    """
    disk, problems = Disk(), list[str]()
    deletions = Deletions(disk, Path(root))
    deletions.load()
    folder = Path(to) / _STAGING / f"queues-{share}-{secrets.token_hex(8)}"
    queues = Queues(disk, folder, queue_file_bytes, deletions)
    for taken in staged:
        for one in read_entries(taken, Path(to) / _STAGING, share):
            try:
                queues.append(one.topic, one.queue_id, one.queue_offset, one.data, one.indexed_to)
            except CorruptRecord as error:
                # Dispatch leaves out what follows no gap that a queue may have, and so do we.
                problems.append(f"{one.topic}/{one.queue_id} before {one.indexed_to}: {error}")
    queues.write()
    for path in queues.take_dirty():
        disk.sync_file(path)
    disk.sync_dirs()
    queues.close()
    return _Built(str(folder), len(queues), problems)


def _move_queues(to: Path, folder: Path) -> None:
    """Put the queues that a task built where they belong. A topic's queues may come from several tasks."""
    disk = Disk()
    for built in sorted(folder.glob("*/*")):
        place = to / _QUEUES / built.relative_to(folder)
        disk.make_dir(place.parent)
        disk.replace(built, place)
    disk.sync_dirs()


def _index_parts(keys: StagedKeys, room: int) -> Iterator[_IndexPart]:
    """Which keys go into which file: a message is in one file with all its keys."""
    start, last_name = 0, ""
    while start < len(keys):
        end, following = _end_of_file(keys, start, room)
        name = _name_at(keys.read(start, start + 1)[0][2])
        last_name = max(name, f"{int(last_name) + 1:0{NAME_DIGITS}d}" if last_name else name)
        yield _IndexPart(last_name, start, end)
        start = following


def _end_of_file(keys: StagedKeys, start: int, room: int) -> tuple[int, int]:
    """Where the keys of a file end, and where those of the next begin."""
    end = start + room
    if end >= len(keys):
        return len(keys), len(keys)
    while end > start and _message_at(keys, end) == _message_at(keys, end - 1):
        end -= 1
    if end > start:
        return end, end
    # A message with more keys than a file has room for is found by the first of them.
    following = start + room
    while following < len(keys) and _message_at(keys, following) == _message_at(keys, start):
        following += 1
    return start + room, following


def _message_at(keys: StagedKeys, position: int) -> int:
    return keys.read(position, position + 1)[0][1]


def _name_at(store_ms: int) -> str:
    at = datetime.fromtimestamp(store_ms / 1000).astimezone()
    return f"{at:%Y%m%d%H%M%S}{at.microsecond // 1000:03d}"


def _build_index(
    to: str, staged: Sequence[Staged], slot_count: int, max_entries: int, part: _IndexPart
) -> None:
    """Build one index file, under a name of this attempt's own, and rename it when it is whole."""
    disk = Disk()
    keys = StagedKeys(Path(to) / _STAGING, staged)
    disk.make_dir(Path(to) / _INDEX)
    aside = Path(to) / _STAGING / f"{part.name}-{secrets.token_hex(8)}"
    file = IndexFile.create(disk, aside, slot_count, max_entries)
    for start in range(part.start, part.end, _KEYS_AT_ONCE):
        file.put(keys.read(start, min(start + _KEYS_AT_ONCE, part.end)))
    file.close()
    disk.sync_file(file.path)
    disk.replace(aside, Path(to) / _INDEX / part.name)
    disk.sync_dirs()


def _replace(root: Path, built_in: Path) -> None:
    """Put what was built in the place of what was there.

    Whoever is killed in the midst of it leaves a store that lacks an index, which a broker builds by itself.
    """
    disk = Disk()
    for name in (_QUEUES, _INDEX):
        old, kept, fresh = root / name, root / (name + _BEFORE), built_in / name
        if kept.exists():
            disk.remove_tree(kept)
        if old.exists():
            disk.replace(old, kept)
        disk.make_dir(fresh)
        disk.replace(fresh, old)
    disk.remove_tree(built_in)
    disk.sync_dirs()
