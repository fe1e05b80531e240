"""What a slave's end of a link is to its shell, whichever dialect it speaks."""

from typing import Protocol

from tanist.ha.actions import SlaveAction
from tanist.protocol.ha_link import AckKind


class SlaveEnd(Protocol):
    """SlaveLink, or its classic twin."""

    log_end: int
    """Where our log ends."""
    master_log_end: int
    """Where the master's does, as far as it told."""
    ack_kind: AckKind
    acked_to: int
    """Up to where that was acked."""

    @property
    def is_transferring(self) -> bool:
        """Whether the master lets us in."""
        ...

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        ...

    def on_connected(self) -> list[SlaveAction]: ...

    def on_bytes(self, view: memoryview, *, now_s: float) -> tuple[list[SlaveAction], int]: ...

    def on_appended(self, log_end: int) -> None: ...

    def on_truncated(self) -> list[SlaveAction]:
        """Our log is cut as was asked for."""
        ...

    def on_held(self, held_to: int, *, now_s: float) -> list[SlaveAction]: ...

    def on_tick(self, *, now_s: float) -> list[SlaveAction]: ...

    def on_lost(self) -> None: ...
