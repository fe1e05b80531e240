"""What a broker with a coordinator has to know after a restart, on its own disk."""

from pathlib import Path

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.protocol.java_json import BAD_JSON
from tanist.store.backed_file import BackedFile
from tanist.store.disk import Disk

FILE_NAME = "slaveConsume.json"


class SavedStanding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A master's part, and a slave's: the roles are fixed, so only one of them is ever filled."""

    adopted_term: int = 0
    """The last slave consumption whose offsets the master has taken over,"""
    adopted_round: int = 0
    """and which of its hand-backs brought them."""
    base_term: int = 0
    """The slave consumption in which this slave was read last."""
    base: dict[str, dict[int, QueueOffset]] = {}
    """Where the groups stood when it began, by ``topic@group`` and queue: what differs has changed since."""


class SavedStandingFile:
    """The file, beside the offsets. Its calls wait for the disk."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._file = BackedFile(disk, root / "config" / FILE_NAME)

    def load(self) -> SavedStanding:
        """What was saved last. Raises ForeignFile if neither the file nor its backup can be read."""
        return self._file.load(_decode) or SavedStanding()

    def save(self, saved: SavedStanding) -> None:
        """Replace what was saved; on return no crash takes it back."""
        self._file.save(msgspec.json.encode(saved))


def _decode(data: bytes) -> SavedStanding:
    try:
        return msgspec.json.decode(data, type=SavedStanding)
    except BAD_JSON as error:
        raise RemoteProtocolError(f"no standing in slave consumption: {error}") from error
