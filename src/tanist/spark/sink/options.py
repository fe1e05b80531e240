"""The options of a write, and the columns that it takes: checked on the driver before anything is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tanist.client.settings import ClientSettings
from tanist.model.writes import is_query
from tanist.spark.columns import COLUMNS
from tanist.spark.errors import BadOption, SparkError, UnknownName
from tanist.spark.options import Options
from tanist.spark.rocketmq.access import ACCESS_OPTIONS, read_access

_KNOWN = (*ACCESS_OPTIONS, "topic", "shardingKey", "queryId", "group", "maxRowsPerSecond")
_OF_SPARK = ("checkpointLocation", "path")
"""Spark hands these over with ours, and they are its own."""
DEFAULT_GROUP = "tanist-spark"

_WANTED = {
    "body": ("binary", "string"),
    "tags": ("string",),
    "keys": ("string",),
    "flag": ("int",),
    "properties": ("map<string,string>",),
}
"""What of a row is written, and as which types it comes."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where to write, and how."""

    client_settings: ClientSettings
    topic: str
    sharding_key: str | None
    """The column that has it."""
    query: str | None
    """What a batch write goes by, if it is to be continued by another one."""
    group: str
    max_rows_per_s: int
    """Of one task; 0: no limit."""


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Raises for what is unknown, missing or makes no sense."""
    ours = {name: value for name, value in given.items() if name.lower() not in map(str.lower, _OF_SPARK)}
    options = Options(ours, _KNOWN)
    topic = options.text("topic")
    if not topic:
        raise BadOption("topic", topic, "the name of the topic to write to")
    query = options.text("queryId")
    if query is not None and not is_query(query):
        raise BadOption("queryId", query, "1 to 64 letters, digits, points, hyphens and underscores")
    return SinkOptions(
        client_settings=read_access(options),
        topic=topic,
        sharding_key=options.text("shardingKey"),
        query=query,
        group=options.text("group") or DEFAULT_GROUP,
        max_rows_per_s=options.number("maxRowsPerSecond", least=1, default=0),
    )


def check_columns(fields: Sequence[tuple[str, str]], sharding_key: str | None) -> None:
    """Refuse rows that can not be written. ``fields`` are names and types as Spark calls them."""
    types = dict(fields)
    read_too = {column.name for column in COLUMNS}
    for name in types:
        if name not in _WANTED and name not in read_too and name != sharding_key:
            raise UnknownName("column", name, (*_WANTED, *read_too))
    if "body" not in types:
        raise SparkError(f"column body is missing: it becomes the message; there is {', '.join(types)}")
    for name, allowed in _WANTED.items():
        if name in types and types[name] not in allowed:
            raise SparkError(f"column {name} is {types[name]}, and has to be {' or '.join(allowed)}")
    if sharding_key is not None:
        if sharding_key not in types:
            raise UnknownName("column", sharding_key, types)
        if types[sharding_key] != "string":
            raise SparkError(
                f"column {sharding_key} is {types[sharding_key]}, and a sharding key is string: cast it"
            )
