"""What a master sends to all its slaves alike."""

from dataclasses import dataclass
from typing import Protocol

from tanist.ha.notes import MasterNotes
from tanist.ha.tables import FeedMaker
from tanist.protocol.crc import crc32


class LogSource(Protocol):
    """The log that is sent."""

    @property
    def log_end(self) -> int: ...

    def read_ahead(self, log_offset: int, max_bytes: int, /) -> memoryview: ...


class Crcs:
    """The CRC of the frame's body that was sent last: all slaves in step are sent the same."""

    def __init__(self) -> None:
        self._range = (-1, -1)
        self._crc = 0

    def of(self, log_offset: int, body: memoryview) -> int:
        if self._range != (log_offset, len(body)):
            self._crc = crc32(body)
            self._range = (log_offset, len(body))
        return self._crc


@dataclass(frozen=True, slots=True)
class Sending:
    """What all connections of one master send, and how."""

    log: LogSource
    crcs: Crcs
    make_feed: FeedMaker | None
    bytes_per_second: int
    """0 for as fast as it goes."""
    notes: MasterNotes | None = None
    """Who hears what they note."""
