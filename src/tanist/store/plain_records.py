"""Walks over records of the log in C where that could be built, for who counts them while clients wait."""

from tanist.protocol.compiled import native
from tanist.protocol.queue_entry import ENTRY_BYTES
from tanist.store.segment import Segment

_WALK_RECORDS = 1024


def pass_plain(segment: Segment, log_offset: int, end: int) -> tuple[int, dict[str, int]]:
    """Pass some whole records of the usual kind: where the next begins, and how many were of each topic.

    None may be passed: then whoever asks has to look at the next one himself.
    """
    topics: dict[str, int] = {}
    if native is None:
        return log_offset, topics
    start = segment.start
    # Without delay levels messages that wait for their time are not of the usual kind.
    walked = native.walk_records(
        segment.view, log_offset - start, min(end, segment.end) - start, start, _WALK_RECORDS, ()
    )
    if walked is None:
        return log_offset, topics
    for topic, _queue_id, _queue_offset, entries, _indexed_to in walked[2]:
        topics[topic] = topics.get(topic, 0) + len(entries) // ENTRY_BYTES
    return start + walked[0], topics
