"""The epoch file: a checked text file with one line an epoch.

2               how many
435744268       checksum of the lines below, 0 for "do not check"
1-0             epoch 1 began at log offset 0
3-500
"""

from pathlib import Path

from tanist.errors import RemoteProtocolError
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.record import crc32
from tanist.store.backed_file import BackedFile
from tanist.store.disk import Disk

FILE_NAME = "epochFileCheckpoint"


def encode_epochs(history: EpochHistory) -> bytes:
    lines = "".join(f"{epoch}-{start}\n" for epoch, start in history.epochs)
    return f"{len(history.epochs)}\n{crc32(lines.encode())}\n{lines}".encode()


def decode_epochs(data: bytes) -> EpochHistory:
    """Raises RemoteProtocolError for anything but a whole, matching file."""
    try:
        count, checksum, *lines = data.decode("ascii").splitlines()
        content = "".join(line + "\n" for line in lines)
        if int(count) != len(lines):
            raise RemoteProtocolError(f"{count} epochs are announced and {len(lines)} are there")
        if int(checksum) not in (0, crc32(content.encode())):
            raise RemoteProtocolError("the epochs do not match their checksum")
        pairs = (line.split("-") for line in lines)
        return EpochHistory(Epoch(int(epoch), LogOffset(int(start))) for epoch, start in pairs)
    except ValueError as error:
        raise RemoteProtocolError(f"not an epoch file: {error}") from error


class EpochFile:
    """Keeps the epochs of one store."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._file = BackedFile(disk, root / FILE_NAME)

    def load(self) -> EpochHistory:
        """The epochs on disk; none if the store never had a controller."""
        return self._file.load(decode_epochs) or EpochHistory()

    def save(self, history: EpochHistory) -> None:
        self._file.save(encode_epochs(history))


class StoredEpochs:
    """The epochs of a store that is open. Every change is on disk before it counts."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._file = EpochFile(disk, root)
        self.history = EpochHistory()

    def load(self) -> None:
        self.history = self._file.load()

    def begin(self, epoch: int, log_end: int) -> None:
        """A new master's reign begins at the log's end."""
        history = EpochHistory(self.history.epochs)
        history.begin(epoch, log_end)
        self._save(history)

    def cut(self, log_offset: int) -> None:
        """Forget the epochs that begin at or behind an offset."""
        history = EpochHistory(self.history.epochs)
        history.cut(log_offset)
        self._save(history)

    def raise_start(self, log_start: int) -> None:
        """Forget the epochs whose every byte is deleted."""
        history = EpochHistory(self.history.epochs)
        history.raise_start(log_start)
        self._save(history)

    def _save(self, history: EpochHistory) -> None:
        if history.epochs != self.history.epochs:
            self._file.save(history)
            self.history = history
