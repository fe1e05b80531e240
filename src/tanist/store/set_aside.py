"""Puts a store's log out of the way, with all that belongs to it, so that an empty one can begin.

    write down where to  ->  move one by one  ->  strike it out

A slave whose log is not its master's gets a new one so, and the old files are kept until it is in step.
Tables of topics, groups and offsets stay: they are the broker's and not the log's. A crash leaves the
note, and whoever opens the store next finishes the work before looking at anything else.
"""

import logging
import re
from enum import Enum
from pathlib import Path

from tanist.errors import CorruptRecord, ForeignFile
from tanist.store import deletions, epoch_file, incarnation, scrub_note, truncation
from tanist.store.disk import Disk
from tanist.store.guard import StoreGuard

_log = logging.getLogger(__name__)

NOTE_NAME = "settingAside"
"""The note's file in the store's root. RocketMQ ignores it."""

_FOLDER_NAME = re.compile(r"aside-\d+")
_MOVED_NAMES = (
    "commitlog",
    "consumequeue",
    "index",
    "checkpoint",
    "abort",
    "timerlog",
    "timerwheel",
    "config/timercheck",
    # Under the id that a controller gave it believes that this replica holds what it acked.
    "brokerIdentity",
    "brokerIdentity-temp",
    truncation.NOTE_NAME,
    incarnation.FILE_NAME,
    scrub_note.FILE_NAME,
    *(name + end for name in (epoch_file.FILE_NAME, deletions.FILE_NAME) for end in ("", ".bak")),
)


class Earlier(Enum):
    """What becomes of files that were set aside before and are still there."""

    REFUSE = "refuse"
    KEEP = "keep"
    DROP = "drop"


def aside_folders(root: Path, *, disk: Disk | None = None) -> list[Path]:
    """The folders of what was set aside, the oldest first."""
    names = filter(_FOLDER_NAME.fullmatch, (disk or Disk()).folders(root))
    return [root / name for name in sorted(names, key=lambda name: int(name.removeprefix("aside-")))]


def set_aside(
    root: Path, now_ms: int, *, earlier: Earlier = Earlier.REFUSE, disk: Disk | None = None
) -> Path:
    """Move the log of a store that nobody has open into a folder of its own, which is returned.

    Raises StoreLocked while the store is open, and ForeignFile, before anything is changed, for what can
    not be moved and for folders that are there already unless ``earlier`` says what to do with them.
    """
    disk = disk or Disk()
    disk.make_dir(root)
    guard = StoreGuard(disk, root)
    guard.acquire()
    try:
        finish_set_aside(root, disk=disk)
        folder = root / f"aside-{now_ms}"
        _check_movable(disk, root, folder, earlier)
        if earlier is Earlier.DROP:
            drop_aside(root, disk=disk)
        disk.write_durably(root / NOTE_NAME, f"{folder.name}\n".encode())
        _move_all(disk, root, folder)
    finally:
        guard.release()
    return folder


def finish_set_aside(root: Path, *, disk: Disk) -> None:
    """Go on where a crash interrupted; nothing if none did. The caller holds the store's lock."""
    note = root / NOTE_NAME
    if not disk.exists(note):
        return
    text = disk.read(note)
    name = text.decode("ascii", "replace").strip()
    if not _FOLDER_NAME.fullmatch(name):
        raise CorruptRecord(
            note, 0, f"it holds {text[:32]!r} and no folder's name; see which files were moved, and delete it"
        )
    _log.warning("setting aside goes on after a crash folder=%s", root / name)
    _move_all(disk, root, root / name)


def drop_aside(root: Path, *, disk: Disk | None = None) -> int:
    """Delete all that was set aside; how many folders. The store may be open, and any thread may do it."""
    disk = disk or Disk()
    folders = aside_folders(root, disk=disk)
    for folder in folders:
        disk.remove_tree(folder)
        _log.info("files set aside are deleted folder=%s", folder)
    disk.sync_dirs()
    return len(folders)


def _check_movable(disk: Disk, root: Path, folder: Path, earlier: Earlier) -> None:
    found = aside_folders(root, disk=disk)
    if found and (earlier is Earlier.REFUSE or (folder in found and earlier is Earlier.KEEP)):
        raise ForeignFile(
            found[0],
            "files were set aside here before",
            "delete the folder if nobody needs them any more, or say that they are kept or dropped",
        )
    for name in (*_MOVED_NAMES, "config"):
        path = root / name
        if disk.leads_elsewhere(path):
            raise ForeignFile(path, "it is a link or a mounted disk", "set aside by hand what is in it")


def _move_all(disk: Disk, root: Path, folder: Path) -> None:
    """Each step can be done again: what is not there any more was moved before."""
    disk.make_dir(folder)
    for name in _MOVED_NAMES:
        if disk.exists(root / name):
            disk.make_dir((folder / name).parent)
            disk.replace(root / name, folder / name)
    # All must be where it belongs before the note is gone.
    disk.sync_dirs()
    disk.remove(root / NOTE_NAME)
    disk.sync_dirs()
    _log.info("log set aside folder=%s", folder)
