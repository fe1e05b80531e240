"""From start to running, as the controller lets a replica in. Pure.

    INITIAL --leader--> METADATA --id--> APPLYING --ours--> NAMED --known--> REGISTERED --master--> RUNNING
                            ^___another's____|                ^__forgotten_______|____________________|

Files decide where it begins once a leader is known: with an id applied for it applies again, with one that is
its own it registers at once. What fails is done again after a pause that grows from 50 ms to 2 s. A replica
is fenced until it runs: it holds no role.
"""

from dataclasses import dataclass, field
from enum import Enum

from tanist.backoff import Backoff
from tanist.broker.controlled.identity import AppliedIdentity, Identity

_LONGEST_PAUSE_S = 2.0


class JoinState(Enum):
    """How far a replica has come. The words are shown to operators."""

    INITIAL = "looking for the controller that leads"
    METADATA = "asking for an id"
    APPLYING = "applying for an id"
    NAMED = "registering with the controller"
    REGISTERED = "waiting for a master of the group"
    RUNNING = "running"


@dataclass(slots=True)
class Joining:
    """One replica's way. The shell does what ``state`` says and tells how it went."""

    kept: Identity | AppliedIdentity | None
    """What the files said at the start."""
    state: JoinState = field(default=JoinState.INITIAL, init=False)
    applied: AppliedIdentity | None = field(default=None, init=False)
    identity: Identity | None = field(default=None, init=False)
    reason: str | None = field(default=None, init=False)
    """Why the last step failed; None if it did not."""
    _backoff: Backoff = field(default_factory=lambda: Backoff(most_s=_LONGEST_PAUSE_S), init=False)

    def on_leader(self) -> None:
        """A controller leads."""
        assert self.state is JoinState.INITIAL
        if isinstance(self.kept, Identity):
            self.identity = self.kept
            self._advance(JoinState.NAMED)
        elif isinstance(self.kept, AppliedIdentity):
            self.on_next_id(self.kept)
        else:
            self._advance(JoinState.METADATA)

    def on_next_id(self, applied: AppliedIdentity) -> None:
        """This id is to be applied for; it is written down."""
        self.applied = applied
        self._advance(JoinState.APPLYING)

    def on_id_taken(self, reason: str, *, chance: float) -> float:
        """Somebody else was given the id. Another one is free, after so long a pause."""
        assert self.state is JoinState.APPLYING
        self.applied = None
        self.state = JoinState.METADATA
        return self.on_failed(reason, chance=chance)

    def on_applied(self, identity: Identity) -> None:
        """The id is ours, and written down."""
        assert self.state is JoinState.APPLYING
        self.identity, self.applied = identity, None
        self._advance(JoinState.NAMED)

    def on_registered(self) -> None:
        """The controller knows this replica's address."""
        assert self.state is JoinState.NAMED
        self._advance(JoinState.REGISTERED)

    def on_forgotten(self) -> None:
        """The controller knows the group or this replica no more: register again."""
        if self.state in (JoinState.REGISTERED, JoinState.RUNNING):
            self._advance(JoinState.NAMED)

    def on_role(self) -> None:
        """The group has a master, and this replica its role."""
        if self.state is JoinState.REGISTERED:
            self._advance(JoinState.RUNNING)

    def on_asked(self) -> None:
        """The controller answered: nothing is wrong."""
        self._advance(self.state)

    def on_failed(self, reason: str, *, chance: float) -> float:
        """A step failed; for how long to pause before it is done again."""
        self.reason = reason
        return self._backoff.next_s(chance)

    def _advance(self, state: JoinState) -> None:
        self.state, self.reason = state, None
        self._backoff.reset()
