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
