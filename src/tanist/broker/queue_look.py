"""What can be said of a queue without reading its messages out: its bounds and its times."""

from tanist.model.offsets import QueueOffset
from tanist.store import MessageStore


def queue_bounds(store: MessageStore, topic: str, queue_id: int) -> tuple[QueueOffset, QueueOffset]:
    """The first offset and one past the last; 0 and 0 for a queue that nobody has written to."""
    queue = store.queues.find(topic, queue_id)
    return (QueueOffset(0), QueueOffset(0)) if queue is None else (queue.min_offset, queue.max_offset)


def store_time_ms(store: MessageStore, topic: str, queue_id: int, queue_offset: int) -> int | None:
    """When the message at an offset was stored; None if the queue has none there (any more)."""
    low, high = queue_bounds(store, topic, queue_id)
    if not low <= queue_offset < high:
        return None
    records = store.records(topic, queue_id, queue_offset, 1)
    return records[0].store_timestamp_ms if records else None


def young_start(store: MessageStore, topic: str, queue_id: int, hot_bytes: int) -> QueueOffset | None:
    """Where a queue begins that still has its very first message among the log's last ``hot_bytes``.

    A topic that was deleted and made again does not begin at 0, but it begins anew.
    """
    queue = store.queues.find(topic, queue_id)
    if queue is None or queue.min_offset == queue.max_offset:
        return None
    if queue.min_offset > 0 and not store.is_whole(topic):
        return None
    first = queue.entry(queue.min_offset)
    is_young = not first.is_filler and store.log.log_end - first.log_offset <= hot_bytes
    return queue.min_offset if is_young else None
