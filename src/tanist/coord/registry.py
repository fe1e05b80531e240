"""What every home of the registry gives.

A record is a path with a value of bytes and a version that counts its changes. Several changes are made in
one step or not at all, each under a condition. What was read may be old by the time it is looked at: it is
never a reason to act; only a change that succeeded is.

    CONNECTED <--> SUSPENDED --> LOST      our session, which ephemeral records live as long as

While SUSPENDED nobody knows whether the session still lives. ``held_until_s`` is the promise to build on:
before that time, on our monotonic clock, nobody can have ended it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from tanist.errors import MQError

ABSENT = None
"""The version of a record that is not there."""

NOT_THERE = -1
"""What a commit gives as the version of a record that it checked not to be there."""


class RegistryError(MQError):
    """The registry did not do what it was asked."""


class RegistryUnavailable(RegistryError):
    """It can not be reached, or our session with it is over. What was asked may have been done."""


class Conflict(RegistryError):
    """A condition did not hold, and nothing was changed."""

    def __init__(self, change: "Change") -> None:
        super().__init__(f"{change.path} is not as was expected by {type(change).__name__.lower()}")
        self.change = change


class SessionState(Enum):
    """How we stand to the registry."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Record:
    """What a path has.

    A new record has version 0, also one that was deleted and made again: a version tells the changes of one
    record apart, not one record from the next at its path. An ephemeral record of our own needs no more than
    that, since it goes with our session, in which nothing can be committed then.
    """

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """Make a record that is not there yet. Parents that are missing are made, with empty values."""

    path: str
    value: bytes
    is_ephemeral: bool = False
    """Whether it goes when our session ends."""


@dataclass(frozen=True, slots=True)
class Put:
    """Give a record another value, if it still has this version."""

    path: str
    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a record, if it still has this version and no children."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, but only if a record has this version; with None, if it is not there."""

    path: str
    version: int | None


Change: TypeAlias = Create | Put | Delete | Check


class Watch(Protocol):
    """What ``watch`` gives; closing it ends the calls."""

    def close(self) -> None: ...


class Registry(Protocol):
    """One session with the registry."""

    @property
    def session(self) -> SessionState: ...

    @property
    def held_until_s(self) -> float:
        """Up to when, on the monotonic clock, our session can not have been ended by anybody else."""
        ...

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Have ``listener`` called on the event loop whenever the session's state changes.

        A session that is LOST stays so, and its watches end: the owner opens another. Closing is not told.
        """
        ...

    async def read(self, path: str) -> Record | None:
        """A record as it is, or was a moment ago; None if it is not there."""
        ...

    async def children(self, path: str) -> list[str]:
        """The names right below a path, sorted; none if it is not there."""
        ...

    async def commit(self, *changes: Change) -> list[int]:
        """Make all changes in one step; the version of each record after it (a deleted one's last).

        Raises Conflict if a condition does not hold, and RegistryUnavailable if nobody knows. Missing parents
        may have been made even so.
        """
        ...

    def watch(self, path: str, listener: Callable[[], None]) -> Watch:
        """Have ``listener`` called on the event loop after a record, or which children it has, changed.

        It is called once soon after the beginning too, so nothing is missed between a look and the watch, and
        again after a connection came back. Several changes may be one call, and a call may come without a
        change, as when somebody checked that the record is not there.
        """
        ...

    async def close(self) -> None:
        """End the session: what is ephemeral goes at once."""
        ...
