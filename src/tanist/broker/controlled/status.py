"""How a replica stands with its controllers, for those who ask why it does what it does."""

from dataclasses import dataclass
from enum import Enum

from tanist.broker.controlled.joining import JoinState


class HeldRole(Enum):
    """What a replica under a controller is now."""

    NONE = "none yet"
    MASTER = "master"
    SLAVE = "slave"
    SWITCHING = "switching"


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """The last time that a controller said that this replica is master."""

    epoch: int
    controller: str
    sent_s: float
    """When the question was sent, on the monotonic clock."""
    is_weak: bool
    """Whether it is one of RocketMQ's, which promises to wait for as long only while the connection lasts."""


@dataclass(slots=True)
class ControlledStatus:
    """One replica. ``reasons`` says what keeps it from running well, the newest of each kind."""

    state: JoinState = JoinState.INITIAL
    controller: str | None = None
    """Who leads, as far as is known."""
    broker_id: int | None = None
    role: HeldRole = HeldRole.NONE
    epoch: int = 0
    """Of the role that is held, or being taken."""
    lease: LeaseGrant | None = None
    refused_count: int = 0
    """How many of the controllers' answers were refused, because their epochs were too low."""
    joining_failure: str | None = None
    switch_failure: str | None = None
    refusal: str | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not as it should be; nothing if it is."""
        found = (self.joining_failure, self.switch_failure, self.refusal)
        return tuple(reason for reason in found if reason is not None)
