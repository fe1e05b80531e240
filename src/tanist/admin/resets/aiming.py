"""From what is known of the queues and what is asked for to a target in each queue. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import (
    AtOffset,
    AtOffsets,
    AtTime,
    Earliest,
    Latest,
    LeaveLag,
    QueueName,
)
from tanist.model.route import MessageQueue

_EXPIRED_TIME = "target expired: the time is before the oldest message that is kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """One queue as its broker tells it."""

    queue: MessageQueue
    now: int | None
    """The group's consumer offset there; None if it has none."""
    min_offset: int
    max_offset: int
    oldest_ms: int | None = None
    """When the oldest message that is kept was stored; None if there is none."""
    at_time: int | None = None
    """The first message at the time that was asked about, if one was."""
    stands: Mapping[str, int] = field(default_factory=dict[str, int])
    """Where each client of a broadcasting group stands, as far as it says so."""


Goal: TypeAlias = Earliest | Latest | AtTime | LeaveLag | AtOffset | AtOffsets
"""A target of which nothing has to be looked up any more but what the facts hold."""


@dataclass(frozen=True, slots=True)
class Aimed:
    """One queue and where the group is to go in it."""

    facts: QueueFacts
    target: int
    warnings: tuple[str, ...] = ()


def aim(
    facts: Iterable[QueueFacts],
    goal: Goal,
    *,
    is_forward_allowed: bool = True,
    message: "Found | None" = None,
) -> list[Aimed]:
    """A target for each queue; those that the goal does not name are left out.

    With ``is_forward_allowed`` False no queue goes forward, as without RocketMQ's force flag. In the queue of
    ``message`` the target is that message. Raises ResetRefused for a queue that is not there, or an offset
    that is past the end of one.
    """
    rows = sorted(facts, key=lambda each: each.queue)
    if isinstance(goal, AtOffsets):
        rows = _named(rows, goal.offsets)
    aimed = [_aim_at_message(each, goal, message) for each in rows]
    return aimed if is_forward_allowed else [_held_back(each) for each in aimed]


@dataclass(frozen=True, slots=True)
class Found:
    """A message that was looked up."""

    name: QueueName
    queue_offset: int
    stored_ms: int


def _aim_at_message(facts: QueueFacts, goal: Goal, message: Found | None) -> Aimed:
    if message is not None and message.name == name_of(facts.queue):
        return _within(facts, message.queue_offset)
    return _aim_one(facts, goal)


def name_of(queue: MessageQueue) -> QueueName:
    return queue.broker_name, queue.queue_id


def shown_queue(queue: MessageQueue | QueueName) -> str:
    broker_name, queue_id = queue if isinstance(queue, tuple) else name_of(queue)
    return f"{broker_name}:{queue_id}"


def _named(rows: list[QueueFacts], offsets: Mapping[QueueName, int]) -> list[QueueFacts]:
    known = {name_of(each.queue) for each in rows}
    for name in offsets:
        if name not in known:
            shown = ", ".join(map(shown_queue, sorted(known)[:8])) + (", …" if len(known) > 8 else "")
            raise ResetRefused(f"the topic has no queue {shown_queue(name)}; it has {shown}")
    return [each for each in rows if name_of(each.queue) in offsets]


def _aim_one(facts: QueueFacts, goal: Goal) -> Aimed:
    match goal:
        case Earliest():
            return Aimed(facts, facts.min_offset)
        case Latest():
            return Aimed(facts, facts.max_offset)
        case LeaveLag(count):
            return _within(facts, max(0, facts.max_offset - count))
        case AtOffset(offset):
            return _within(facts, offset)
        case AtOffsets(offsets):
            return _within(facts, offsets[name_of(facts.queue)])
        case AtTime(at_ms):
            return _at_time(facts, at_ms)


def _at_time(facts: QueueFacts, at_ms: int) -> Aimed:
    assert facts.at_time is not None, "the time was to be looked up first"
    aimed = _within(facts, facts.at_time)
    if facts.min_offset == facts.max_offset:
        return Aimed(facts, aimed.target, ("the queue is empty",))
    if facts.oldest_ms is None or at_ms >= facts.oldest_ms:
        return aimed
    # Where nothing was ever deleted nothing has expired.
    early = "the time is before the first message" if facts.min_offset == 0 else _EXPIRED_TIME
    return Aimed(facts, aimed.target, (early, *aimed.warnings))


def _within(facts: QueueFacts, offset: int) -> Aimed:
    """An offset that is there. One that has expired means the oldest that has not; one to come is refused."""
    if offset > facts.max_offset:
        raise ResetRefused(
            f"offset {offset} of {shown_queue(facts.queue)} is past its end {facts.max_offset}; use latest, "
            "or an offset up to that"
        )
    if offset < facts.min_offset:
        count = facts.min_offset - offset
        gone = f"{count} messages from {offset} on are deleted, the oldest kept is {facts.min_offset}"
        return Aimed(facts, facts.min_offset, (f"target expired: {gone}",))
    return Aimed(facts, offset)


def _held_back(aimed: Aimed) -> Aimed:
    now = aimed.facts.now
    return aimed if now is None or aimed.target <= now else Aimed(aimed.facts, now, aimed.warnings)
