"""What a master's end of a link is to its shell, whichever dialect it speaks."""

from typing import Protocol

from tanist.ha.actions import CloseLink, MasterAction
from tanist.ha.crcs import Crcs
from tanist.ha.replicas import Dialect


class MasterEnd(Protocol):
    """MasterLink, or its classic twin."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def max_body_bytes(self) -> int:
        """The most of the log that one frame carries."""
        ...

    @property
    def is_transferring(self) -> bool:
        """Whether the slave is let in."""
        ...

    @property
    def sent_to(self) -> int:
        """Up to where the log was sent."""
        ...

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        ...

    def on_bytes(self, data: bytes, *, now_s: float) -> list[MasterAction]: ...

    def on_sent(self, log_end: int, *, now_s: float) -> None: ...

    def on_tick(self, *, log_end: int, now_s: float) -> list[MasterAction]: ...

    def on_lost(self) -> CloseLink | None:
        """The connection is gone; what that means, if it means something."""
        ...

    def header(self, log_offset: int, body: bytes | memoryview, *, log_end: int, crcs: Crcs) -> bytes: ...
