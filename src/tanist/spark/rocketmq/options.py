"""The options of ``rocketmq``, checked before anybody is asked anything."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from tanist.client.settings import ClientSettings
from tanist.model.route import MessageQueue
from tanist.model.subscription import EVERYTHING, SQL92, TAG, split_tags
from tanist.protocol.java_json import BAD_JSON
from tanist.spark.errors import BadOption, SparkError
from tanist.spark.options import Options
from tanist.spark.rocketmq.access import ACCESS_OPTIONS, read_access
from tanist.spark.rocketmq.offsets import EARLIEST, GROUP, LATEST, Bound, read_bound

MASTER = "master"
SLAVE = "slave"
ANY = "any"
DEFAULT_GROUP = "tanist-spark"

_KNOWN = (
    *ACCESS_OPTIONS,
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "group",
    "commitOffsets",
    "tags",
    "sqlFilter",
    "minPartitions",
    "maxOffsetsPerTrigger",
    "failOnDataLoss",
    "includeProperties",
    "readFrom",
)
_WHICH = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class RocketMQOptions:
    """What to read, and from whom. One of the first three of them says which topics."""

    client_settings: ClientSettings
    subscribe: tuple[str, ...]
    pattern: str | None
    assign: frozenset[MessageQueue]
    start: Bound | None
    """None: a batch begins with the first message, a stream with the next."""
    end: Bound | None
    group: str
    commits: bool
    """Whether brokers are told how far the group has read."""
    expression: str
    expression_type: str
    tags: frozenset[str]
    """The tags that are wanted; none stands for all."""
    min_partitions: int
    max_offsets: int | None
    """How many messages a batch of a stream takes at most."""
    fails_on_loss: bool
    include_properties: bool
    read_from: str

    @property
    def namesrv(self) -> tuple[str, ...]:
        return self.client_settings.namesrv


def read_options(given: Mapping[str, str]) -> RocketMQOptions:
    """Raises for what is unknown, missing, contradictory or makes no sense."""
    options = Options(given, _KNOWN)
    which = [name for name in _WHICH if options.has(name)]
    if len(which) != 1:
        raise SparkError(
            f"one of {', '.join(_WHICH)} says what to read, and {' and '.join(which) or 'none'} is given"
        )
    expression, expression_type, tags = _filter(options)
    start, end = _bounds(options)
    return RocketMQOptions(
        client_settings=read_access(options),
        subscribe=options.words("subscribe"),
        pattern=_pattern(options),
        assign=_assigned(options),
        start=start,
        end=end,
        group=options.text("group") or DEFAULT_GROUP,
        commits=_commits(options),
        expression=expression,
        expression_type=expression_type,
        tags=tags,
        min_partitions=options.number("minPartitions", least=1, default=0),
        max_offsets=options.number("maxOffsetsPerTrigger", least=1, default=0) or None,
        fails_on_loss=options.flag("failOnDataLoss", default=True),
        include_properties=options.flag("includeProperties", default=False),
        read_from=options.choice("readFrom", (MASTER, SLAVE, ANY), default=MASTER),
    )


def for_batch(options: RocketMQOptions) -> RocketMQOptions:
    """The same for a batch read: everything there is, unless something else is said."""
    if options.max_offsets is not None:
        raise BadOption(
            "maxOffsetsPerTrigger", options.max_offsets, "it with readStream: a batch has no triggers"
        )
    if options.commits and options.min_partitions:
        raise SparkError(
            "commitOffsets and minPartitions contradict each other: of a queue in pieces nobody knows when "
            "all before a piece was read; give one of them"
        )
    return replace(
        options,
        start=options.start or Bound("startingOffsets", word=EARLIEST),
        end=options.end or Bound("endingOffsets", word=LATEST),
    )


def for_stream(options: RocketMQOptions) -> RocketMQOptions:
    """The same for a stream: what comes from now on, unless something else is said; it has no end."""
    if options.end is not None:
        raise SparkError(f"{options.end.option} is for batch reads: a stream has no end; leave it out")
    return replace(options, start=options.start or Bound("startingOffsets", word=LATEST))


def _commits(options: Options) -> bool:
    commits = options.flag("commitOffsets", default=False)
    if commits and not options.text("group"):
        raise SparkError("commitOffsets=true commits the offsets of a group: give the option group too")
    return commits


def _pattern(options: Options) -> str | None:
    text = options.text("subscribePattern")
    if text is not None:
        try:
            re.compile(text)
        except re.error as error:
            raise BadOption("subscribePattern", text, f"a regular expression: {error}") from error
    return text


def _assigned(options: Options) -> frozenset[MessageQueue]:
    text = options.text("assign")
    if text is None:
        return frozenset()
    try:
        table = msgspec.json.decode(text, type=dict[str, dict[str, list[int]]])
    except BAD_JSON as error:
        raise BadOption("assign", text, 'JSON as {"topic": {"broker": [0, 1]}}') from error
    return frozenset(
        MessageQueue(topic=topic, broker_name=broker, queue_id=queue_id)
        for topic, brokers in table.items()
        for broker, queue_ids in brokers.items()
        for queue_id in queue_ids
    )


def _bounds(options: Options) -> tuple[Bound | None, Bound | None]:
    start = _bound(options, "starting", (EARLIEST, LATEST, GROUP))
    end = _bound(options, "ending", (LATEST,))
    from_ms = None if start is None else start.timestamp_ms
    to_ms = None if end is None else end.timestamp_ms
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise SparkError(
            f"startingTimestamp={from_ms} is after endingTimestamp={to_ms}: nothing lies between them; "
            "give the earlier one as startingTimestamp"
        )
    return start, end


def _bound(options: Options, which: str, words: tuple[str, ...]) -> Bound | None:
    offsets, timestamp = f"{which}Offsets", f"{which}Timestamp"
    if options.has(timestamp):
        if options.has(offsets):
            raise SparkError(f"{offsets} and {timestamp} contradict each other: give one of them")
        return Bound(timestamp, timestamp_ms=options.number(timestamp, least=0, default=0))
    text = options.text(offsets)
    return None if text is None else read_bound(offsets, text, words)


def _filter(options: Options) -> tuple[str, str, frozenset[str]]:
    tags, sql = options.text("tags"), options.text("sqlFilter")
    if tags is not None and sql is not None:
        raise SparkError("tags and sqlFilter contradict each other: give one of them")
    if sql is not None:
        return sql, SQL92, frozenset()
    if tags is None or tags.strip() == EVERYTHING:
        return EVERYTHING, TAG, frozenset()
    try:
        return tags, TAG, split_tags(tags)
    except ValueError as error:
        raise BadOption("tags", tags, "tags separated by ||") from error
