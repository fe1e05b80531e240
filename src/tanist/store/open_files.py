"""A bounded number of open files, those used last: many queues need not mean many descriptors."""

from collections import OrderedDict
from pathlib import Path

from tanist.store.disk import Disk, File

MAX_OPEN_FILES = 512


class OpenFiles:
    """Opens files when they are asked for and closes those that nobody asked for longest."""

    def __init__(self, disk: Disk, limit: int = MAX_OPEN_FILES) -> None:
        self.disk = disk
        self._limit = limit
        self._files: OrderedDict[Path, File] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: Path) -> File:
        file = self._files.get(path)
        if file is not None:
            self._files.move_to_end(path)
            return file
        return self._keep(self.disk.open(path))

    def create(self, path: Path) -> File:
        return self._keep(self.disk.create(path))

    def remove(self, path: Path) -> None:
        """Close a file and delete it."""
        file = self._files.pop(path, None)
        if file is not None:
            file.close()
        self.disk.remove(path)

    def close(self) -> None:
        while self._files:
            self._files.popitem()[1].close()

    def _keep(self, file: File) -> File:
        while len(self._files) >= self._limit:
            self._files.popitem(last=False)[1].close()
        self._files[file.path] = file
        return file
