"""Who consumes what and how far they are (208, 317, 303, 308, 300, 343, 345), and offsets to copy (314).

Answers about queues are made in turns, because a topic may have tens of thousands of them.
"""

import logging
from collections.abc import Generator
from dataclasses import dataclass

import msgspec

from tanist.broker.consumption import (
    consumed_topics,
    correction_offsets,
    queue_consume_stats,
    queue_of,
    queue_time_span,
)
from tanist.broker.late import MAX_BODY_BYTES, Steps
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies import ObjectKeyed, encode_body, join_tables
from tanist.protocol.bodies.stats import CorrectionOffsets, QueueConsumeStats
from tanist.protocol.bodies.tables import GroupList, GroupSubscription, TopicList
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import GroupRequest, TopicGroupRequest, TopicRequest
from tanist.protocol.headers.groups import (
    BrokerConsumeStatsRequest,
    GetConsumeStatsRequest,
    QuerySubscriptionRequest,
)
from tanist.protocol.headers.offsets import CloneGroupOffsetRequest, QueryCorrectionOffsetRequest
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)

_STEP_QUEUES = 32
"""Some 20 us each."""


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ConsumptionHandler(state)
    return {
        RequestCode.GET_CONSUME_STATS: handler.get_stats,
        RequestCode.GET_BROKER_CONSUME_STATS: handler.get_broker_stats,
        RequestCode.QUERY_CONSUME_TIME_SPAN: handler.get_time_spans,
        RequestCode.QUERY_CORRECTION_OFFSET: handler.get_corrections,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: handler.list_groups,
        RequestCode.QUERY_TOPICS_BY_CONSUMER: handler.list_topics,
        RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: handler.get_subscription,
        RequestCode.CLONE_GROUP_OFFSET: handler.clone_offsets,
    }


def on_tick(state: BrokerState) -> None:
    """Keep the rates of consumption up to date. To be called every ten seconds."""

    def is_there(group: str, topic: str) -> bool:
        return state.groups.find(group) is not None and state.topics.find(topic) is not None

    state.pull_progress.on_tick(state.clock.now_ms(), is_there)


class ConsumptionHandler:
    """Answers what concerns groups and how far they are."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_stats(self, command: Command, connection: Connection) -> Command | None:
        """One group: in the topics that were named, in one that it consumes, or in all that it consumes."""
        request = command.header(GetConsumeStatsRequest)
        group = request.consumer_group
        named = {topic for topic in (request.topic_list or "").split(";") if topic.strip()}
        if named:
            topics = sorted(named)
        else:
            topics = consumed_topics(self._state, group, self._topics(group, request.topic))
        steps = self._stats_answer(command, group, topics)
        return self._state.long_answers.make(command, connection, steps)

    def get_broker_stats(self, command: Command, connection: Connection) -> Command | None:
        is_ordered = command.header(BrokerConsumeStatsRequest).is_ordered
        steps = self._broker_stats_answer(command, is_ordered=is_ordered)
        return self._state.long_answers.make(command, connection, steps)

    def get_time_spans(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(TopicGroupRequest)
        config = self._state.topics.find(request.topic)
        if config is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic {request.topic} does not exist")
        steps = self._time_spans_answer(command, request.group, config)
        return self._state.long_answers.make(command, connection, steps)

    def get_corrections(self, command: Command, _connection: Connection) -> Command:
        request = command.header(QueryCorrectionOffsetRequest)
        found = correction_offsets(
            self._state,
            request.topic,
            compare_group=request.compare_group,
            left_out=set((request.filter_groups or "").split(",")),
        )
        return command.reply(body=encode_body(CorrectionOffsets(correction_offsets=found)))

    def list_groups(self, command: Command, _connection: Connection) -> Command:
        """The groups that want a topic now, and those that left offsets in it."""
        topic = command.header(TopicRequest).topic
        groups = self._state.clients.groups_of(topic) | self._state.offsets.groups_of(topic)
        return command.reply(body=encode_body(GroupList(groups=frozenset(groups))))

    def list_topics(self, command: Command, _connection: Connection) -> Command:
        topics = frozenset(self._state.offsets.topics_of(command.header(GroupRequest).group))
        answer = TopicList(topics=topics, broker_addr=self._state.settings.address)
        return command.reply(body=encode_body(answer))

    def get_subscription(self, command: Command, _connection: Connection) -> Command:
        request = command.header(QuerySubscriptionRequest)
        found = self._state.clients.subscriptions(request.group).get(request.topic or "")
        answer = GroupSubscription(group=request.group, topic=request.topic, subscription_data=found)
        return command.reply(body=encode_body(answer))

    def clone_offsets(self, command: Command, connection: Connection) -> Command:
        """Let a group go on where another one stands, in one topic or in all that the other consumes.

        RocketMQ copies nothing if no topic is named.
        """
        request = command.header(CloneGroupOffsetRequest)
        source, destination = request.source_group, request.destination_group
        if self._state.groups.find(destination) is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"group {destination} does not exist; create it first",
            )
        topics = self._topics(source, request.topic)
        if not request.is_offline:
            topics = set(consumed_topics(self._state, source, topics))
        for topic in topics:
            if self._state.topics.find(topic) is not None:
                self._state.offsets.clone(source, destination, topic)
        _log.info(
            "offsets cloned source=%s destination=%s topics=%d by=%s",
            *(source, destination, len(topics), connection.peer),
        )
        return command.reply()

    def _topics(self, group: str, topic: str | None) -> set[str]:
        """The topic that was asked for, or all that a group has offsets in."""
        return {topic} if topic and topic.strip() else self._state.offsets.topics_of(group)

    def _stats_answer(self, command: Command, group: str, topics: list[str]) -> Steps:
        parts: list[bytes] = []
        sums, tps = _Sums(), 0.0
        for topic in topics:
            config = self._state.topics.find(topic)
            if config is not None:
                parts += yield from self._queue_tables(group, topic, config.read_queue_count, sums)
                tps += self._state.pull_progress.rate(group, topic)
        return command.reply(body=_consume_stats(parts, tps))

    def _broker_stats_answer(self, command: Command, *, is_ordered: bool) -> Steps:
        state, groups, sums = self._state, list[bytes](), _Sums()
        topics_by_group = state.offsets.topics_by_group()
        for group in sorted(state.groups.table.groups):
            stats: list[bytes] = []
            for topic in consumed_topics(state, group, topics_by_group.get(group, set())):
                config = state.topics.find(topic)
                if config is None or (is_ordered and not config.is_ordered):
                    continue
                parts = yield from self._queue_tables(group, topic, config.write_queue_count, sums)
                stats.append(_consume_stats(parts, state.pull_progress.rate(group, topic)))
            groups.append(encode_body({group: [msgspec.Raw(part) for part in stats]}))
            yield
        return command.reply(
            body=encode_body(
                {
                    "brokerAddr": state.settings.address,
                    "consumeStatsList": [msgspec.Raw(part) for part in groups],
                    "totalDiff": sums.behind_count,
                    "totalInflightDiff": sums.inflight_count,
                }
            )
        )

    def _time_spans_answer(self, command: Command, group: str, config: TopicConfig) -> Steps:
        parts: list[bytes] = []
        sums = _Sums()
        for queue_id in range(config.write_queue_count):
            span = queue_time_span(self._state, group, config.topic_name, queue_id)
            parts.append(sums.take(encode_body(span)))
            if len(parts) % _STEP_QUEUES == 0:
                yield
        return command.reply(body=encode_body({"consumeTimeSpanSet": [msgspec.Raw(part) for part in parts]}))

    def _queue_tables(
        self, group: str, topic: str, queue_count: int, sums: "_Sums"
    ) -> Generator[None, None, list[bytes]]:
        """Where a group stands in the queues of a topic, as encoded tables of a few queues each."""
        parts: list[bytes] = []
        for start in range(0, queue_count, _STEP_QUEUES):
            queue_ids = range(start, min(start + _STEP_QUEUES, queue_count))
            table = ObjectKeyed(
                {
                    queue_of(self._state, topic, queue_id): queue_consume_stats(
                        self._state, group, topic, queue_id
                    )
                    for queue_id in queue_ids
                }
            )
            for stats in table.values():
                sums.add(stats)
            parts.append(sums.take(encode_body(table)))
            yield
        return parts


@dataclass(slots=True)
class _Sums:
    """What adds up over an answer: its size, what groups are behind, and what of that clients hold."""

    size_bytes: int = 0
    behind_count: int = 0
    inflight_count: int = 0

    def add(self, stats: QueueConsumeStats) -> None:
        self.behind_count += stats.broker_offset - stats.consumer_offset
        self.inflight_count += (stats.pull_offset or stats.consumer_offset) - stats.consumer_offset

    def take(self, part: bytes) -> bytes:
        """A part of the answer, unless that gets too large."""
        self.size_bytes += len(part)
        if self.size_bytes > MAX_BODY_BYTES:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"the answer has more than {MAX_BODY_BYTES} bytes; ask for fewer topics at once",
            )
        return part


def _consume_stats(parts: list[bytes], tps: float) -> bytes:
    """The body that ``ConsumeStats`` reads."""
    return encode_body({"consumeTps": tps, "offsetTable": join_tables(parts)})
