"""When an end of a link has to say something, and when it has waited too long for the other. Pure."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class LinkTimes:
    """When the other end was last heard, and when it was last sent something."""

    now_s: float
    """When the link began."""
    heartbeat_s: float
    """After so long without a byte to the other end, it is sent a heartbeat."""
    silence_s: float
    """After so long without a byte from it, the link is given up."""
    read_s: float = field(init=False)
    written_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.read_s = self.written_s = self.now_s

    @property
    def next_tick_s(self) -> float:
        """When one of both is over."""
        return min(self.read_s + self.silence_s, self.written_s + self.heartbeat_s)

    def silent_ms(self, now_s: float) -> float | None:
        """How long the other end has been silent, if that is too long."""
        silent_s = now_s - self.read_s
        return silent_s * 1000 if silent_s >= self.silence_s else None

    def take_heartbeat(self, now_s: float) -> bool:
        """Whether a heartbeat is to be sent, which then counts as sent."""
        if now_s - self.written_s < self.heartbeat_s:
            return False
        self.written_s = now_s
        return True
