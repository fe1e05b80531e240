"""What a master sends to all its slaves alike."""

from dataclasses import dataclass
from typing import Protocol

from tanist.ha.crcs import Crcs
from tanist.ha.notes import MasterNotes
from tanist.ha.tables import FeedMaker


class LogSource(Protocol):
    """The log that is sent."""

    @property
    def log_end(self) -> int: ...

    def read_ahead(self, log_offset: int, max_bytes: int, /) -> memoryview: ...


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
