"""Which log this is: a random name that a master gives to its log once, and its slaves take over.

Two logs of one broker name may have the same length and nothing else in common: a master that was
deployed anew begins again at 0. Offsets can not tell them apart, the incarnation can.
"""

import re
from pathlib import Path

from tanist.errors import CorruptRecord, LocalProtocolError
from tanist.protocol.ha_hello import INCARNATION_BYTES, NO_INCARNATION
from tanist.store.disk import Disk

FILE_NAME = "incarnation"
"""In the store's root: 32 hexadecimal digits and a line end. RocketMQ ignores it."""

_CONTENT = re.compile(rb"[0-9a-f]{32}\n")
_REMEDY = "restore it from a backup, or delete it: a master makes a new one, and its slaves are rebuilt"


class Incarnation:
    """The incarnation of one store, in memory and on disk."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._path = root / FILE_NAME
        self.value = NO_INCARNATION

    def load(self) -> None:
        """Read the file; a store without one has no incarnation yet."""
        if not self._disk.exists(self._path):
            self.value = NO_INCARNATION
            return
        data = self._disk.read(self._path)
        if not _CONTENT.fullmatch(data) or (value := bytes.fromhex(data.decode())) == NO_INCARNATION:
            raise CorruptRecord(self._path, 0, f"it holds {data[:40]!r} and no incarnation; {_REMEDY}")
        self.value = value

    def make(self, fresh: bytes) -> bytes:
        """Take ``fresh`` if there is none yet; the one there is then."""
        if self.value == NO_INCARNATION:
            self.adopt(fresh)
        return self.value

    def adopt(self, value: bytes) -> None:
        """Be this from now on; on return no crash takes it back."""
        if len(value) != INCARNATION_BYTES or value == NO_INCARNATION:
            raise LocalProtocolError(
                f"value: an incarnation has {INCARNATION_BYTES} bytes that are not all 0, not {value.hex()!r}"
            )
        if value != self.value:
            self._disk.write_durably(self._path, f"{value.hex()}\n".encode())
            self.value = value
