"""Where a group is to stand by RocketMQ's rules for a time, and what is wrong with a target. Pure.

Clustering: the offset at the time, unless that lies ahead of where the group stands and is not forced.
Broadcasting: the offset at the time, for the broker does not know where the members stand.
"""

from collections.abc import Callable, Iterable, Mapping

from tanist.errors import ResponseError
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import QueueTarget
from tanist.protocol.codes import ResponseCode

END = -1
"""The time that means the end of each queue."""
MAX_TARGETS = 65_536

Bounds = Callable[[int], tuple[int, int]]
"""A queue's first offset, and one past its last."""


def targets_at_time(
    queues: Iterable[int],
    *,
    offset_at: Callable[[int], int],
    stands_at: Callable[[int], int | None],
    is_forced: bool,
    is_broadcast: bool,
) -> list[QueueTarget]:
    """A target for each queue; ``offset_at`` tells the offset at the time."""
    targets: list[QueueTarget] = []
    for queue_id in queues:
        found, before = max(0, offset_at(queue_id)), stands_at(queue_id)
        if not is_broadcast and not is_forced and before is not None:
            found = min(found, before)
        targets.append(
            QueueTarget(
                queue_id=queue_id,
                expected_offset=None if before is None else QueueOffset(before),
                target=QueueOffset(found),
            )
        )
    return targets


def check_has_offsets(
    group: str, topic: str, queues: Iterable[int], stands_at: Callable[[int], int | None]
) -> None:
    """Raises ResponseError, in RocketMQ's words, if a group that does not broadcast lacks an offset."""
    for queue_id in queues:
        if stands_at(queue_id) is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"THe consumer group <{group}> not exist; it has no offset in queue {queue_id} of topic "
                f"{topic}, and none of its members is here and broadcasts",
            )


def check_targets(targets: Iterable[QueueTarget], *, queue_count: int, bounds: Bounds) -> None:
    """Raises ResponseError, naming queue and bounds, if one of these can not be."""
    seen: set[int] = set()
    for wanted in targets:
        queue_id, target = wanted.queue_id, wanted.target
        if not 0 <= queue_id < queue_count:
            raise _wrong(f"queue {queue_id}: the topic has {queue_count} queues on this broker")
        if queue_id in seen:
            raise _wrong(f"queue {queue_id} is named twice")
        seen.add(queue_id)
        if wanted.expected_offset is not None and wanted.expected_offset < 0:
            raise _wrong(f"queue {queue_id}: a group can not stand at {wanted.expected_offset}")
        low, high = bounds(queue_id)
        if not low <= target <= high:
            raise _wrong(f"queue {queue_id}: target {target} is outside [{low}, {high}]")
    if not seen:
        raise _wrong("the order names no queue")
    if len(seen) > MAX_TARGETS:
        raise _wrong(f"the order names {len(seen)} queues; at most {MAX_TARGETS} are taken")


def found_elsewhere(
    targets: Iterable[QueueTarget], stands_at: Callable[[int], int | None]
) -> Mapping[int, QueueOffset]:
    """Where the group stands, by queue, where it was expected to stand elsewhere; -1 for nowhere."""
    return {
        wanted.queue_id: QueueOffset(-1 if found is None else found)
        for wanted in targets
        if (found := stands_at(wanted.queue_id)) != wanted.expected_offset
    }


def _wrong(what: str) -> ResponseError:
    return ResponseError(ResponseCode.INVALID_PARAMETER, what)
