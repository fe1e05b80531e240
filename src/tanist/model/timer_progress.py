"""How far a broker's timer is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerProgress:
    """What has to be known after a restart. The offsets are of the timer's queue."""

    read_ms: int = 0
    """All messages of earlier slots that the timer has taken are delivered."""
    taken_to: int = 0
    """The timer has taken all messages before this one."""
    first_waiting: int = 0
    """No message before this one waits."""
