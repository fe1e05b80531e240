"""A bounded number of open files, those used last: many queues need not mean many descriptors."""

import logging
from collections import OrderedDict
from pathlib import Path

from tanist.store.disk import Disk, File

_log = logging.getLogger(__name__)

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
        """A new file. One that is there already is emptied and taken.

        A broker of Java that is started on our store by mistake makes files before it sees the lock.
        """
        try:
            return self._keep(self.disk.create(path))
        except FileExistsError:
            _log.warning("file was made by somebody else and is written anew path=%s", path)
            file = self.get(path)
            file.zero_from(0)
            return file

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
