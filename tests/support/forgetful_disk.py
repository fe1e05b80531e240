"""A disk that remembers what was made durable, so that a test can take its power away.

It works on real files. Beside them it keeps what each file held at its last sync and at every change
since, and which names each folder had at its last sync and got since. ``crash_image`` lays out what a
loss of power may leave: of every sector any of these contents, of every name any of its meanings.

What it takes for granted: a sector is written whole or not at all, a synced file keeps its content, and
a synced folder keeps its names. It grants nothing else: neither an order between two writes or two
names that were not synced in between, nor the name of a file that was synced while its folder was not.
"""

import mmap
import os
import random
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from tanist.store.disk import Disk, File

SECTOR_BYTES: Final = 512
PAGE_BYTES: Final = 4096

_T = TypeVar("_T")


class PowerLost(Exception):
    """The power is gone: the operation was not done, and no later one is."""


class Loss(Enum):
    """What a crash takes of that which was not synced."""

    NOTHING = "nothing"
    """The process was killed and the machine lives."""
    EVERYTHING = "everything"
    SECTORS = "sectors"
    """Any sector may have any content that it had since the sync, and so may any name."""
    PAGES = "pages"
    """The same in pieces of a page, as the kernel writes them."""


class ForgetfulDisk(Disk):
    """The files under ``root``, which is there; what is in it already counts as durable.

    Operations that change something are counted: stores into a mapping, writes, changes of length,
    syncs, and changes of names. Instead of number ``lose_power_at`` (the first is 0) and of all later
    ones ``PowerLost`` is raised.
    """

    def __init__(self, root: Path, *, lose_power_at: int | None = None) -> None:
        super().__init__()
        self._root = root
        self._nodes: list[_Node] = []
        self._files: list[File] = []
        self._tree = self._adopt(root)
        self._lose_power_at = lose_power_at
        self.operation_count = 0

    def restart(self, *, lose_power_at: int | None = None) -> None:
        """Let a new process use the disk. What was not synced is still there, and still not durable."""
        self._close_files()
        self._changed_dirs.clear()
        self._lose_power_at = lose_power_at
        self.operation_count = 0

    def crash_image(self, target: Path, rng: random.Random, loss: Loss) -> None:
        """Lay out in a new folder what a crash now could leave."""
        self._tree.lay_out(target, _Dice(rng, loss))

    def let_go(self) -> None:
        """Close everything: the disk is thrown away."""
        self._close_files()
        for node in self._nodes:
            os.close(node.fd)
        self._nodes.clear()

    def count(self) -> None:
        """One operation is about to happen."""
        if self._lose_power_at is not None and self.operation_count >= self._lose_power_at:
            raise PowerLost(f"the power was lost instead of operation {self._lose_power_at}")
        self.operation_count += 1

    def settle_file(self, node: "_Node") -> None:
        """A file was synced."""
        node.settle()

    # The disk

    def make_dir(self, directory: Path) -> None:
        for path in reversed((directory, *directory.parents)):
            if not path.exists():
                self.count()
                super().make_dir(path)
                self._folder(path.parent).put(path.name, _Folder())

    def create(self, path: Path) -> File:
        self.count()
        super().create(path).close()
        node = self._watch(path)
        self._folder(path.parent).put(path.name, node)
        return self._opened(node, path, os.O_RDWR)

    def open(self, path: Path, *, read_only: bool = False) -> File:
        node = self._folder(path.parent).get(path.name)
        if not isinstance(node, _Node):
            raise FileNotFoundError(path)
        return self._opened(node, path, os.O_RDONLY if read_only else os.O_RDWR)

    def replace(self, source: Path, target: Path) -> None:
        self.count()
        super().replace(source, target)
        moved, there = self._folder(source.parent).get(source.name), self._folder(target.parent)
        # The kernel does nothing if both names mean the same file.
        if moved is not there.get(target.name):
            there.put(target.name, moved)
            self._folder(source.parent).put(source.name, None)

    def copy(self, source: Path, target: Path) -> None:
        self.count()
        super().copy(source, target)
        self._folder(target.parent).put(target.name, self._folder(source.parent).get(source.name))

    def remove(self, path: Path) -> None:
        if path.exists():
            self.count()
            self._folder(path.parent).put(path.name, None)
        super().remove(path)

    def remove_dir(self, directory: Path) -> None:
        if directory.exists():
            self.count()
        super().remove_dir(directory)
        if not directory.exists():
            self._folder(directory.parent).put(directory.name, None)

    def sync_dirs(self) -> None:
        """In the same order in every run, so that a failure can be run again."""
        while self._changed_dirs:
            directory = min(self._changed_dirs)
            del self._changed_dirs[directory]
            self.sync_dir(directory)

    def sync_dir(self, directory: Path) -> None:
        self.count()
        if directory.exists():
            self._folder(directory).settle()

    def used_ratio(self, directory: Path) -> float:
        """The same on every machine: how full its disk is must not decide what a test does."""
        return 0.1

    # Inside

    def _adopt(self, path: Path) -> "_Folder":
        folder = _Folder()
        for inner in sorted(path.iterdir()):
            found = self._adopt(inner) if inner.is_dir() else self._watch(inner)
            folder.put(inner.name, found)
        folder.settle()
        return folder

    def _opened(self, node: "_Node", path: Path, mode: int) -> File:
        file = _WatchedFile(self, node, path, mode)
        self._files.append(file)
        return file

    def _close_files(self) -> None:
        """Close what a killed process had no chance to close."""
        for file in self._files:
            file.close()
        self._files.clear()

    def _watch(self, path: Path) -> "_Node":
        # The descriptor keeps the content of a file whose last name is removed.
        node = _Node(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        self._nodes.append(node)
        return node

    def _folder(self, path: Path) -> "_Folder":
        folder = self._tree
        for name in path.relative_to(self._root).parts:
            inner = folder.get(name)
            if not isinstance(inner, _Folder):
                raise FileNotFoundError(path)
            folder = inner
        return folder


class _Dice:
    """Decides what survives."""

    def __init__(self, rng: random.Random, loss: Loss) -> None:
        self._rng = rng
        self._loss = loss
        # Some crashes lose nearly all and some nearly nothing; both find mistakes that the middle hides.
        self._keep_chance = rng.random()

    def pick(self, states: list[_T]) -> _T:
        """One of the states since the last sync, which is the first of them."""
        match self._loss:
            case Loss.NOTHING:
                return states[-1]
            case Loss.EVERYTHING:
                return states[0]
            case Loss.SECTORS | Loss.PAGES:
                is_kept = len(states) == 1 or self._rng.random() < self._keep_chance
                return states[-1] if is_kept else self._rng.choice(states)

    def content(self, versions: list[bytes]) -> bytes:
        if len(versions) == 1 or self._loss in (Loss.NOTHING, Loss.EVERYTHING):
            return self.pick(versions)
        piece_bytes = PAGE_BYTES if self._loss is Loss.PAGES else SECTOR_BYTES
        size = len(self.pick(versions))
        content = bytearray(size)
        for start in range(0, size, piece_bytes):
            piece = self.pick(versions)[start : min(start + piece_bytes, size)]
            content[start : start + len(piece)] = piece
        return bytes(content)


class _Node:
    """One file, whatever it is called: its content at the last sync and before every change since."""

    __slots__ = ("fd", "versions")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.versions = [self._content()]

    def note(self) -> None:
        content = self._content()
        if content != self.versions[-1]:
            self.versions.append(content)

    def settle(self) -> None:
        self.versions = [self._content()]

    def lay_out(self, target: Path, dice: _Dice) -> None:
        self.note()
        content = dice.content(self.versions)
        with target.open("wb") as file:
            # Zeros at the end become a hole, as in a file that was only given its length.
            file.write(content.rstrip(b"\0"))
            file.truncate(len(content))

    def _content(self) -> bytes:
        return os.pread(self.fd, os.fstat(self.fd).st_size, 0)


class _Folder:
    """What each name meant at the last sync and since: a file, a folder or nothing."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: dict[str, list[_Node | _Folder | None]] = {}

    def get(self, name: str) -> "_Node | _Folder | None":
        return self.names.get(name, [None])[-1]

    def put(self, name: str, meaning: "_Node | _Folder | None") -> None:
        self.names.setdefault(name, [None]).append(meaning)

    def settle(self) -> None:
        self.names = {name: states[-1:] for name, states in self.names.items() if states[-1] is not None}

    def lay_out(self, target: Path, dice: _Dice) -> None:
        target.mkdir()
        for name, states in self.names.items():
            meaning = dice.pick(states)
            if meaning is not None:
                meaning.lay_out(target / name, dice)


class _WatchedFile(File):
    """Tells of every change before it is made."""

    __slots__ = ("_disk", "_node")

    def __init__(self, disk: ForgetfulDisk, node: _Node, path: Path, mode: int) -> None:
        super().__init__(path, os.open(path, mode | os.O_CLOEXEC))
        self._disk = disk
        self._node = node

    def write(self, position: int, data: bytes | memoryview) -> None:
        self._before_change()
        super().write(position, data)

    def resize(self, size_bytes: int) -> None:
        self._before_change()
        super().resize(size_bytes)

    def allocate(self, position: int, size_bytes: int) -> None:
        self._before_change()
        super().allocate(position, size_bytes)

    def map(self, size_bytes: int) -> mmap.mmap:
        watched = _WatchedMap(self._fd, size_bytes, access=mmap.ACCESS_WRITE)
        watched.before_change = self._before_change
        return watched

    def sync(self) -> None:
        self._disk.count()
        self._disk.settle_file(self._node)

    def _before_change(self) -> None:
        self._disk.count()
        self._node.note()


class _WatchedMap(mmap.mmap):
    """Tells of every store by slice. One through a buffer is seen with the next."""

    before_change: Callable[[], None]

    def __setitem__(self, key: Any, value: Any, /) -> None:
        self.before_change()
        super().__setitem__(key, value)
