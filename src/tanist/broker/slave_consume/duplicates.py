"""How many messages may be consumed twice by a change of who is read, at most. Pure.

A message is consumed twice if a group has got it from one broker, and the other one does not know. Nobody can
tell of a broker that is gone what it has delivered; but it can not have delivered more than there is.
"""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from itertools import islice

from tanist.model.groups import TRANSACTION_GROUP

TopicBounds = Callable[[str], Mapping[int, tuple[int, int]]]
"""By queue of a topic, the first offset that it has, and one past the last. Nothing of an unknown topic."""
PulledTo = Callable[[str, str, int], int | None]
"""Where a group's last pull of a queue of a topic ended; None if there was none."""
CommittedOffsets = Mapping[str, Mapping[int, int]]
"""By ``topic@group`` and queue."""
Counting = Generator[None, None, dict[str, int]]
"""Counts, and yields wherever it may be interrupted."""

TURN_KEYS = 200
"""Some of half a million offsets at a time: a broker has others to serve."""


def duplicates_unknown(
    offsets: CommittedOffsets, bounds: TopicBounds, *, groups: Collection[str] | None = None
) -> dict[str, int]:
    """By group, when it is not known what the other broker delivered: all from its offsets to the ends.

    So at a switch, and when an operator ends a slave consumption without the slave. ``groups`` are those who
    had members at the other broker; None if that is not known. Of a topic in which a group has offsets, each
    queue without one counts whole.
    """
    found: Counter[str] = Counter()
    for topic, group, queues in _consumed(offsets):
        if groups is None or group in groups:
            for queue, (start, end) in bounds(topic).items():
                found[group] += max(0, end - max(start, queues.get(queue, start)))
    return dict(+found)


def unbounded(
    topics: Mapping[str, Iterable[str]], offsets: CommittedOffsets, bounds: TopicBounds
) -> Generator[None, None, list[str]]:
    """The groups that wanted, of the other broker, a topic in which they never committed, by their names.

    Where they began, and how far they came, nobody can tell. Yields wherever it may be interrupted.
    """
    found: list[str] = []
    for number, (group, wanted) in enumerate(sorted(topics.items())):
        if number % TURN_KEYS == 0:
            yield
        unknown = (topic for topic in wanted if not offsets.get(f"{topic}@{group}"))
        if any(end > start for topic in unknown for start, end in bounds(topic).values()):
            found.append(group)
    return found


def duplicates_delivered(offsets: CommittedOffsets, pulled_to: PulledTo) -> dict[str, int]:
    """By group, at a hand-back: what this broker delivered beyond the offsets that it hands back.

    A queue without an offset is not counted: groups that broadcast keep theirs themselves.
    """
    found: Counter[str] = Counter()
    for topic, group, queues in _consumed(offsets):
        for queue, offset in queues.items():
            found[group] += max(0, (pulled_to(group, topic, queue) or 0) - offset)
    return dict(+found)


def in_steps(count: Callable[[CommittedOffsets], dict[str, int]], offsets: CommittedOffsets) -> Counting:
    """What ``count`` counts of all these offsets, some of them at a time."""
    found: Counter[str] = Counter()
    keys = iter(offsets)
    while piece := {key: offsets[key] for key in islice(keys, TURN_KEYS)}:
        found.update(count(piece))
        yield
    return dict(found)


def _consumed(offsets: CommittedOffsets) -> Iterator[tuple[str, str, Mapping[int, int]]]:
    """Topic, group and offsets, of those that are a consumer group's."""
    for key, queues in offsets.items():
        topic, _, group = key.partition("@")
        # RocketMQ 5 has keys of three parts too, one a member of a group that broadcasts.
        if group != TRANSACTION_GROUP and "@" not in group:
            yield topic, group, {queue: max(0, offset) for queue, offset in queues.items()}
