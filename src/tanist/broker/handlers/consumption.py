"""Who consumes what and how far they are (208, 317, 303, 308, 300, 343, 345), and offsets to copy (314).

Answers about queues are made in turns, because a topic may have tens of thousands of them.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from tanist.broker.consumption import (
    consumed_topics,
    correction_offsets,
    queue_consume_stats,
    queue_time_span,
)
from tanist.broker.handlers.queue_tables import STEP_QUEUES, QueueTables
from tanist.broker.late import Steps
from tanist.broker.offsets import check_client_may_commit
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.names import shown
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies import encode_body, join_tables
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
    """Forget how far groups have pulled that are gone. To be called every few seconds."""

    def is_there(group: str, topic: str) -> bool:
        return state.groups.find(group) is not None and state.topics.find(topic) is not None

    state.pull_progress.keep(is_there)


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
        steps = self._stats_answer(command.without_content(), group, topics)
        return self._state.long_answers.make(command, connection, steps)

    def get_broker_stats(self, command: Command, connection: Connection) -> Command | None:
        is_ordered = command.header(BrokerConsumeStatsRequest).is_ordered
        steps = self._broker_stats_answer(command.without_content(), is_ordered=is_ordered)
        return self._state.long_answers.make(command, connection, steps)

    def get_time_spans(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(TopicGroupRequest)
        config = self._state.topics.find(request.topic)
        if config is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic {request.topic} does not exist")
        steps = self._time_spans_answer(command.without_content(), request.group, config)
        return self._state.long_answers.make(command, connection, steps)

    def get_corrections(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(QueryCorrectionOffsetRequest)
        steps = self._corrections_answer(command.without_content(), request)
        return self._state.long_answers.make(command, connection, steps)

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
        check_client_may_commit(destination)
        topics = self._topics(source, request.topic)
        if not request.is_offline:
            topics = set(consumed_topics(self._state, source, topics))
        there = [topic for topic in topics if self._state.topics.find(topic) is not None]
        self._state.offsets.clone(source, destination, there)
        _log.info(
            "offsets cloned source=%s destination=%s topics=%d by=%s",
            *(shown(source), shown(destination), len(topics), connection.peer),
        )
        return command.reply()

    def _topics(self, group: str, topic: str | None) -> set[str]:
        """The topic that was asked for, or all that a group has offsets in."""
        return {topic} if topic and topic.strip() else self._state.offsets.topics_of(group)

    def _stats_answer(self, command: Command, group: str, topics: list[str]) -> Steps:
        parts: list[bytes] = []
        tables, tps = QueueTables(self._state.settings.broker_name), 0.0
        for topic in topics:
            config = self._state.topics.find(topic)
            if config is not None:
                look = partial(queue_consume_stats, self._state, group, topic)
                parts += yield from tables.encode(topic, config.read_queue_count, look)
                tps += self._state.counters.group_tps(group, topic)
        return command.reply(body=_consume_stats(parts, tps))

    def _broker_stats_answer(self, command: Command, *, is_ordered: bool) -> Steps:
        state, groups, backlog = self._state, list[bytes](), _Backlog()
        tables = QueueTables(state.settings.broker_name)
        for group in sorted(state.groups.table.groups):
            stats: list[bytes] = []
            for topic in consumed_topics(state, group, state.offsets.topics_of(group)):
                config = state.topics.find(topic)
                if config is None or (is_ordered and not config.is_ordered):
                    continue
                look = partial(queue_consume_stats, state, group, topic)
                parts = yield from tables.encode(topic, config.write_queue_count, backlog.adding(look))
                stats.append(_consume_stats(parts, state.counters.group_tps(group, topic)))
            groups.append(encode_body({group: [msgspec.Raw(part) for part in stats]}))
            yield
        return command.reply(
            body=encode_body(
                {
                    "brokerAddr": state.settings.address,
                    "consumeStatsList": [msgspec.Raw(part) for part in groups],
                    "totalDiff": backlog.behind_count,
                    "totalInflightDiff": backlog.inflight_count,
                }
            )
        )

    def _corrections_answer(self, command: Command, request: QueryCorrectionOffsetRequest) -> Steps:
        found = yield from correction_offsets(
            self._state,
            request.topic,
            compare_group=request.compare_group,
            left_out=set((request.filter_groups or "").split(",")),
        )
        return command.reply(body=encode_body(CorrectionOffsets(correction_offsets=found)))

    def _time_spans_answer(self, command: Command, group: str, config: TopicConfig) -> Steps:
        parts: list[bytes] = []
        tables = QueueTables(self._state.settings.broker_name)
        for queue_id in range(config.write_queue_count):
            span = queue_time_span(self._state, group, config.topic_name, queue_id)
            parts.append(tables.take(encode_body(span)))
            if len(parts) % STEP_QUEUES == 0:
                yield
        return command.reply(body=encode_body({"consumeTimeSpanSet": [msgspec.Raw(part) for part in parts]}))


@dataclass(slots=True)
class _Backlog:
    """What groups are behind in all their queues, and what of that their clients hold already."""

    behind_count: int = 0
    inflight_count: int = 0

    def adding(self, look: Callable[[int], QueueConsumeStats]) -> Callable[[int], QueueConsumeStats]:
        """The same look at a queue, which adds to the sums what it finds."""

        def look_and_add(queue_id: int) -> QueueConsumeStats:
            stats = look(queue_id)
            self.behind_count += stats.broker_offset - stats.consumer_offset
            self.inflight_count += (stats.pull_offset or stats.consumer_offset) - stats.consumer_offset
            return stats

        return look_and_add


def _consume_stats(parts: list[bytes], tps: float) -> bytes:
    """The body that ``ConsumeStats`` reads."""
    return encode_body({"consumeTps": tps, "offsetTable": join_tables(parts)})
