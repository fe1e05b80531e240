"""What a consumer saw of one switch from a master to its slave and back. Pure."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

_NS = 1_000_000_000

Place: TypeAlias = tuple[int, int]
"""A queue and an offset in it."""


class Delivery(NamedTuple):
    """When a consumer was given the message at a place."""

    time_ns: int
    queue_id: int
    queue_offset: int

    @property
    def place(self) -> Place:
        return self.queue_id, self.queue_offset


@dataclass(frozen=True)
class Moments:
    """When the master was killed, and when it was started again."""

    killed_ns: int
    restarted_ns: int


@dataclass(frozen=True)
class Outage:
    """How long a consumer had nothing; without end if it did not go on before the master was back."""

    gap_s: float
    """The longest time between two messages."""
    back_s: float
    """From the kill to the message after that gap."""


NEVER = Outage(math.inf, math.inf)


@dataclass(frozen=True)
class Seen:
    """One consumer's view of one switch."""

    outage: Outage
    hand_back_s: float
    """The longest time between two messages once the master was started again."""
    stored: int
    lost: int
    """Stored and acknowledged, and never delivered."""
    unacknowledged: int
    """Delivered before the kill, or before the consumer ended, and not acknowledged to the master."""
    duplicates_at_switch: int
    duplicates_at_hand_back: int


def judge(
    known: set[Place],
    deliveries: Sequence[Delivery],
    moments: Moments,
    *,
    stored: Collection[Place],
    committed: Mapping[int, int],
    held_most: int,
    ended_ns: int | None = None,
) -> Seen:
    """``known`` are the places that were delivered before; these are added.

    ``committed`` are the offsets that the master held at the kill. A consumer holds at most ``held_most``
    messages that it has read ahead: only one that is given more of them has gone on. One that ended after
    the kill, and was started again, could acknowledge nothing until ``ended_ns``.
    """
    in_order = sorted(deliveries)
    at_switch = at_hand_back = 0
    fresh: list[Delivery] = []
    for one in in_order:
        if one.place not in known:
            known.add(one.place)
            fresh.append(one)
        elif moments.killed_ns < one.time_ns < moments.restarted_ns:
            at_switch += 1
        else:
            at_hand_back += 1
    until_ns = moments.killed_ns if ended_ns is None else ended_ns
    before = {one.place for one in fresh if one.time_ns <= until_ns}
    return Seen(
        outage=_outage(fresh, moments, held_most),
        hand_back_s=_hand_back_s(fresh, moments.restarted_ns),
        stored=len(stored),
        lost=sum(place not in known for place in stored),
        unacknowledged=sum(offset >= committed[queue_id] for queue_id, offset in before),
        duplicates_at_switch=at_switch,
        duplicates_at_hand_back=at_hand_back,
    )


def _outage(fresh: Sequence[Delivery], moments: Moments, held_most: int) -> Outage:
    during = [one.time_ns for one in fresh if moments.killed_ns < one.time_ns < moments.restarted_ns]
    if len(during) <= held_most:
        return NEVER
    last_ns = max(
        (one.time_ns for one in fresh if one.time_ns <= moments.killed_ns), default=moments.killed_ns
    )
    begun_ns, ended_ns = max(pairwise([last_ns, *during]), key=lambda gap: gap[1] - gap[0])
    return Outage((ended_ns - begun_ns) / _NS, (ended_ns - moments.killed_ns) / _NS)


def _hand_back_s(fresh: Sequence[Delivery], restarted_ns: int) -> float:
    after = [one.time_ns for one in fresh if one.time_ns >= restarted_ns]
    return max((b - a for a, b in pairwise([restarted_ns, *after])), default=0) / _NS
