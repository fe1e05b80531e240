"""What a judge finds."""

from collections import Counter
from enum import StrEnum

import msgspec

SHOWN_PER_KIND = 20
"""So many anomalies of a kind are kept with their words; all are counted."""


class Kind(StrEnum):
    """What can be wrong with a history."""

    LOST = "lost"
    """Acknowledged, and behind the end of the final log."""
    LOST_IN_THE_MIDDLE = "lost in the middle"
    """Acknowledged, not in the final log, and others behind it are."""
    TWO_VALUES = "two values at one offset"
    DUPLICATE = "stored twice"
    """One message at more places than it was sent times."""
    DELIVERED_TWICE = "delivered twice"
    """To one group, though nothing was broken or the group's offset was past it."""
    PHANTOM = "phantom"
    """A message that nobody sent."""
    ABORTED_READ = "refused but stored"
    ORDER_OF_SENDS = "sends out of order"
    """A message lies before one that was acknowledged before it was sent."""
    ORDER_OF_READS = "reads out of order"
    SKIPPED = "skipped"
    """Stored, and never handed to a group that has read past it."""
    STALE = "stale end"
    """A queue was said to end before what was acknowledged already."""
    DIFFERS = "replicas differ"


class Anomaly(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong, and where."""

    kind: Kind
    where: str
    what: str


class Counts(msgspec.Struct):
    """What the history holds."""

    sent: int = 0
    acknowledged: int = 0
    refused: int = 0
    unknown: int = 0
    read: int = 0
    read_again: int = 0
    """Deliveries that are allowed to be second ones: their message was in flight while something broke."""
    queues: int = 0
    faults: int = 0

    def add(self, other: "Counts") -> None:
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))


class Verdict(msgspec.Struct):
    """All that was found; a history is sound if there is no anomaly in it."""

    counts: Counts = msgspec.field(default_factory=Counts)
    anomaly_counts: dict[Kind, int] = msgspec.field(default_factory=dict[Kind, int])
    anomalies: list[Anomaly] = msgspec.field(default_factory=list[Anomaly])
    unjudged: list[str] = msgspec.field(default_factory=list[str])
    """What could not be judged because the history does not tell of it."""

    @property
    def is_sound(self) -> bool:
        return not self.anomaly_counts

    def found(self, kind: Kind, where: str, what: str) -> None:
        """Take down one anomaly."""
        count = self.anomaly_counts.get(kind, 0) + 1
        self.anomaly_counts[kind] = count
        if count <= SHOWN_PER_KIND:
            self.anomalies.append(Anomaly(kind, where, what))

    def add(self, other: "Verdict") -> None:
        """Take in what another judge found in another part of the history."""
        self.counts.add(other.counts)
        kept = Counter(anomaly.kind for anomaly in self.anomalies)
        for anomaly in other.anomalies:
            kept[anomaly.kind] += 1
            if kept[anomaly.kind] <= SHOWN_PER_KIND:
                self.anomalies.append(anomaly)
        for kind, count in other.anomaly_counts.items():
            self.anomaly_counts[kind] = self.anomaly_counts.get(kind, 0) + count
        self.unjudged += [text for text in other.unjudged if text not in self.unjudged]
