"""What the two standings ask their shell to do."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tanist.broker.slave_consume.live_view import LiveView
from tanist.broker.slave_consume.notes import Offsets
from tanist.model.reading import ReadRecord


@dataclass(frozen=True, slots=True)
class Claim:
    """Write this record, if the one that was read last is still there and the master is not alive."""

    record: ReadRecord


@dataclass(frozen=True, slots=True)
class PutRecord:
    """Write this record, if the one that was read last is still there."""

    record: ReadRecord


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Read the record from the registry, whatever the watch says."""


@dataclass(frozen=True, slots=True)
class SendNote:
    """Send the next note."""


@dataclass(frozen=True, slots=True)
class SendOffsets:
    """Send the offsets that changed while this slave was read, in as many notes as it takes."""

    round: int


@dataclass(frozen=True, slots=True)
class TakeOffsets:
    """Take these offsets over. Those of a round are final: save them, then call ``on_adopted``."""

    offsets: Offsets
    term: int
    round: int
    gone_back: Mapping[str, Collection[int]] = field(default_factory=dict[str, Collection[int]])
    """The queues of these offsets in which groups were reset at the slave."""
    view: LiveView | None = None
    """Who consumed at the slave."""


@dataclass(frozen=True, slots=True)
class Tell:
    """What is permitted may have changed: let those act on it who have to."""


MasterAction: TypeAlias = PutRecord | ReadAgain | SendNote | TakeOffsets | Tell
SlaveAction: TypeAlias = Claim | PutRecord | SendNote | SendOffsets | Tell
