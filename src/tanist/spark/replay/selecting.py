"""Which archived messages are replayed, and what they become: functions from frames to frames."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tanist.model.property_names import ORIGIN_MESSAGE_ID, RESERVED, RETRY_TOPIC, SHARDING_KEY
from tanist.model.topics import RETRY_PREFIX
from tanist.model.writes import WRITE_ID, WRITE_SUM, is_query
from tanist.spark.errors import BadOption, SparkError, UnknownName

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REPLAY_ID = "REPLAY_ID"
"""The property that says by which replay a message came."""
REPLAY_MSG_ID = "REPLAY_MSG_ID"
"""The id that it had."""
REPLAY_OFFSET = "REPLAY_OFFSET"
"""Where it lay: ``topic/broker/queue/offset``."""
PARTITIONS = 8
"""Always as many: a replay that goes on must find each message in the partition in which it was."""
SHARD = "shard"

_NEEDED = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "msgId", "tags", "keys", "body")
_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is replayed, where it goes, and under which name."""

    topic: str
    start: datetime
    end: datetime
    """Up to the last message that was stored before."""
    target: str
    """A topic; a group's own is ``%RETRY%group``."""
    replay_id: str
    tags: frozenset[str] = frozenset()

    @property
    def query(self) -> str:
        return f"replay-{self.replay_id}"


def want(
    *,
    archive: str,
    topic: str,
    start: datetime,
    end: datetime,
    to_topic: str | None,
    to_group: str | None,
    replay_id: str | None,
    tags: frozenset[str] = frozenset(),
    now: datetime | None = None,
) -> Wanted:
    """Check what was asked for. The same question has the same id, so that asking again goes on."""
    if (to_topic is None) == (to_group is None):
        raise SparkError("a replay goes either to a topic or to a group: give one of them")
    if start >= end:
        raise SparkError(f"the range from {start.isoformat()} to {end.isoformat()} is empty")
    if end > (now or datetime.now(UTC)):
        raise SparkError(
            f"the range ends at {end.isoformat()}, which is not over: a replay that goes on must find what "
            "it found at first"
        )
    target = to_topic if to_topic is not None else f"{RETRY_PREFIX}{to_group}"
    if replay_id is None:
        words = (archive, topic, start.isoformat(), end.isoformat(), target, *sorted(tags))
        replay_id = hashlib.sha256("\n".join(words).encode()).hexdigest()[:_ID_CHARS]
    wanted = Wanted(topic, start, end, target, replay_id, tags)
    if not is_query(wanted.query):
        raise BadOption("id", replay_id, "at most 57 letters, digits, points, hyphens and underscores")
    return wanted


def share_rate(rows_per_s: int) -> int:
    """What one partition may write a second, so that all of them together never write more than this."""
    if rows_per_s < PARTITIONS:
        raise BadOption(
            "rate",
            rows_per_s,
            f"at least {PARTITIONS}: {PARTITIONS} partitions are written, each with a share",
        )
    return rows_per_s // PARTITIONS


def select(archive: "DataFrame", wanted: Wanted) -> "DataFrame":
    """The archived messages that are wanted."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - it may not be installed.

    for name in _NEEDED:
        if name not in archive.columns:
            raise UnknownName("column", name, archive.columns)
    found = archive.where(
        (f.col("topic") == wanted.topic)
        & (f.col("storeTimestamp") >= f.lit(wanted.start))
        & (f.col("storeTimestamp") < f.lit(wanted.end))
    )
    if "date" in archive.columns:
        # By the folders' names: whole days are not even opened.
        found = found.where(
            (f.col("date") >= f.lit(wanted.start.astimezone(UTC).date()))
            & (f.col("date") <= f.lit(wanted.end.astimezone(UTC).date()))
        )
    return found.where(f.col("tags").isin(sorted(wanted.tags))) if wanted.tags else found


def prepare(selected: "DataFrame", wanted: Wanted) -> "DataFrame":
    """What is written: the same rows in the same partitions and order whenever it is asked for."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    place = f.concat_ws("/", "topic", "brokerName", "queueId", "queueOffset")
    marks = {REPLAY_ID: f.lit(wanted.replay_id), REPLAY_MSG_ID: f.col("msgId"), REPLAY_OFFSET: place}
    if wanted.target.startswith(RETRY_PREFIX):
        # A consumer of the group hands it to its listener as a message of the topic where it was first.
        marks |= {RETRY_TOPIC: f.col("topic"), ORIGIN_MESSAGE_ID: f.col("msgId")}
    marked = f.create_map(*[one for name, value in marks.items() for one in (f.lit(name), value)])
    kept, shard = marked, f.concat_ws("/", "brokerName", "queueId")
    if "properties" in selected.columns:
        left_out = sorted((RESERVED | {WRITE_ID, WRITE_SUM} | marks.keys()) - {SHARDING_KEY})

        def is_kept(name: "Column", _value: "Column") -> "Column":
            return ~name.isin([*left_out, SHARDING_KEY])

        had = f.coalesce(f.col("properties"), f.create_map().cast("map<string,string>"))
        kept = f.map_concat(f.map_filter(had, is_kept), marked)
        shard = f.coalesce(had[SHARDING_KEY], shard)
    return (
        selected.repartition(PARTITIONS, "brokerName", "queueId")
        .sortWithinPartitions("brokerName", "queueId", "queueOffset")
        .select("body", "tags", "keys", kept.alias("properties"), shard.alias(SHARD))
    )
