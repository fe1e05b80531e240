"""How far a stream is behind its queues, from what Spark tells of its progress. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tanist.spark.rocketmq.offsets import queue_name
from tanist.spark.rocketmq.streaming import Offsets, from_table


def behind_latest(source: Mapping[str, Any]) -> dict[str, int]:
    """How many messages each queue has that were not read yet, by ``topic/broker/queue``.

    ``source`` is one of ``query.lastProgress["sources"]``. A queue that is not read yet at all counts from 0.
    Nothing comes out where Spark did not ask for the latest offsets, as in a batch that it repeats.
    """
    latest, reached = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
    return {queue_name(queue): max(0, offset - reached.get(queue, 0)) for queue, offset in latest.items()}


def _offsets(told: Any) -> Offsets:
    if not told:
        return {}
    return from_table(msgspec.json.decode(told, type=dict[str, Any]) if isinstance(told, str) else told)
