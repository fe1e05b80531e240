"""Whose a message is that a request names by its place in the log."""

from tanist.broker.writer import told_to_client
from tanist.errors import ResponseError
from tanist.model.property_names import REAL_TOPIC
from tanist.model.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import find_property
from tanist.protocol.record import Record
from tanist.store import MessageStore

_WAITING_TOPICS = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, CHECK_MAX_TIME_TOPIC})
"""Where the broker keeps messages that are for another topic."""


def topic_at(store: MessageStore, log_offset: int) -> str | None:
    """The topic that the message at an offset is for; None if none begins there.

    A body may look like a message to whoever names an offset within it, and may seem to go on over the
    messages behind it. So its queue must know it. Raises ResponseError if it does not.
    """
    record = store.record_at(log_offset)
    if record is None:
        return None
    if not _is_queued(store, record) and store.dispatcher.dispatched_to <= log_offset:
        # A quick producer ends its transaction before the half is indexed.
        with told_to_client():
            store.dispatch()
    if not _is_queued(store, record):
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"no message begins at log offset {log_offset}")
    real_topic = (
        find_property(bytes(record.properties), REAL_TOPIC) if record.topic in _WAITING_TOPICS else None
    )
    return record.topic if real_topic is None else real_topic.decode("utf-8", "replace")


def _is_queued(store: MessageStore, record: Record) -> bool:
    queue = store.queues.find(record.topic, record.queue_id)
    if queue is None or not queue.min_offset <= record.queue_offset < queue.max_offset:
        return False
    return queue.entry(record.queue_offset).log_offset == record.log_offset
