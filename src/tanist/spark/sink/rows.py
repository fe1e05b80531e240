"""Rows of Arrow into what a message has. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tanist.model.property_names import KEYS, ORIGIN_MESSAGE_ID, RESERVED, RETRY_TOPIC, SHARDING_KEY, TAGS
from tanist.model.topics import RETRY_PREFIX
from tanist.model.writes import WRITE_ID, WRITE_SUM
from tanist.spark.arrow import RecordBatch
from tanist.spark.errors import SparkError

_SEPARATORS = frozenset("\x00\x01\x02")
_NOT_TAKEN = RESERVED | {WRITE_ID, WRITE_SUM}
"""Properties that say how a message was sent or stored before: they would be untrue of this one."""
_OF_RETRIES = frozenset({RETRY_TOPIC, ORIGIN_MESSAGE_ID})
"""What a message of a retry topic says of where it was first."""


class Row(NamedTuple):
    """What is written of a row."""

    body: bytes
    properties: bytes
    sharding_key: str | None
    flag: int


def rows_of(batch: RecordBatch, sharding_key: str | None, topic: str) -> Iterator[Row]:
    """The rows of a batch in their order. Raises SparkError for what a message can not have."""
    columns: dict[str, list[Any]] = {
        name: batch.column(name).to_pylist()
        for name in ("body", "tags", "keys", "flag", "properties", sharding_key)
        if name is not None and name in batch.schema.names
    }
    nothing: list[Any] = [None] * batch.num_rows
    not_taken = _NOT_TAKEN - _OF_RETRIES if topic.startswith(RETRY_PREFIX) else _NOT_TAKEN
    shards = nothing if sharding_key is None else columns[sharding_key]
    for body, tags, keys, flag, properties, shard in zip(
        columns["body"],
        columns.get("tags", nothing),
        columns.get("keys", nothing),
        columns.get("flag", nothing),
        columns.get("properties", nothing),
        shards,
        strict=True,
    ):
        if body is None:
            raise SparkError("a row has no body (null): leave such rows out")
        if sharding_key is not None and shard is None:
            raise SparkError(f"a row has no {sharding_key} (null): a sharding key is needed in every row")
        yield Row(
            body.encode() if isinstance(body, str) else body,
            _text(tags, keys, shard, properties, not_taken) if tags or keys or shard or properties else b"",
            shard,
            flag or 0,
        )


def _text(
    tags: str | None, keys: str | None, shard: str | None, properties: Any, not_taken: frozenset[str]
) -> bytes:
    """The property string. Of a map those are taken that say something of the message itself."""
    text = ""
    for name, value in ((TAGS, tags), (KEYS, keys), (SHARDING_KEY, shard)):
        if value:
            text += _one(name, value)
    if properties:
        pairs: Iterable[tuple[str, str]] = properties
        # In one order, whatever order the map has them in: a repeated row must be the same.
        for name, value in sorted(pairs):
            if name not in not_taken and value:
                text += _one(name, value)
    return text.encode()


def _one(name: str, value: str) -> str:
    if not name or not _SEPARATORS.isdisjoint(name) or not _SEPARATORS.isdisjoint(value):
        raise SparkError(
            f"property {name!r} can not be sent: names and values have no control characters 0 to 2"
        )
    return f"{name}\x01{value}\x02"
