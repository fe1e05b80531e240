"""Samples for tests, all of one group and topic."""

from tanist.spark.lag.samples import Sample


def sample(at_s: int, consumed: int, end: int, *, queue_id: int = 0, stored_ms: int = 0) -> Sample:
    """Where the group stood so many seconds in."""
    return Sample(
        at_ms=1000 * at_s,
        group="billing",
        topic="Orders",
        broker="broker-a",
        queue_id=queue_id,
        max_offset=end,
        consumer_offset=consumed,
        consumed_stored_ms=stored_ms,
    )
