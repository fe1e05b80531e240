"""How much of a queue may be fetched ahead of those who finish its messages. Pure."""

from dataclasses import dataclass

from tanist.client.queues.cached_queue import CachedQueue

MAX_SPAN = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PullBounds:
    """What a queue may hold of messages that are fetched and not finished, and how far they may lie apart.

    The span bounds what comes a second time after a crash: all from the first message that is not
    finished on. So one message that takes very long lets no more than that many pass it by.
    """

    count: int
    size_bytes: int
    span: int = MAX_SPAN

    def among(self, queue_count: int) -> "PullBounds":
        """The share of each of ``queue_count`` queues, so that together they keep within these bounds."""
        assert queue_count > 0
        return PullBounds(
            count=max(1, self.count // queue_count),
            size_bytes=max(1, self.size_bytes // queue_count),
            span=self.span,
        )


def room(queue: CachedQueue, bounds: PullBounds, *, max_count: int) -> int:
    """How many messages, of ``max_count`` wanted, may be fetched now; 0 while the queue is full.

    How large the next messages are is not known before they are here: the bytes may be passed by one
    fetch.
    """
    if queue.size_bytes >= bounds.size_bytes or queue.span >= bounds.span:
        return 0
    return max(0, min(max_count, bounds.count - queue.count))
