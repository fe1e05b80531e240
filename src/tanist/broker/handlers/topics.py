"""Topics, as operators, tools and slaves ask for them.

Creates, changes and deletes topics (17, many at once 18, 215), tells one or all (351, 21), what they hold
(202) and which are the broker's own (305).
"""

import logging
from functools import partial

import msgspec

from tanist.broker.handlers.queue_tables import QueueTables
from tanist.broker.late import Steps
from tanist.broker.names import check_topic_name
from tanist.broker.queue_look import queue_bounds, store_time_ms
from tanist.broker.state import BrokerState
from tanist.broker.system_topics import is_open_to_sends
from tanist.broker.topic_attributes import alter_attributes
from tanist.errors import LocalProtocolError, ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.names import shown
from tanist.model.topics import AUTO_CREATE_TOPIC, Permission, TopicConfig, TopicFilterType
from tanist.protocol.bodies import decode_java_json, encode_body, join_tables
from tanist.protocol.bodies.stats import QueueStats
from tanist.protocol.bodies.sync import TopicConfigList
from tanist.protocol.bodies.tables import TopicList
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.headers.topics import GetTopicConfigRequest, UpdateTopicRequest
from tanist.remoting import Connection, Handler
from tanist.store.store import MAX_QUEUE_ID

_log = logging.getLogger(__name__)

_ALL_PERMISSIONS = int(Permission.READ | Permission.WRITE | Permission.INHERIT | Permission.PRIORITY)


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = TopicHandler(state)
    return {
        RequestCode.UPDATE_AND_CREATE_TOPIC: handler.update,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: handler.update_many,
        RequestCode.DELETE_TOPIC_IN_BROKER: handler.delete,
        RequestCode.GET_ALL_TOPIC_CONFIG: handler.get_all,
        RequestCode.GET_TOPIC_CONFIG: handler.get,
        RequestCode.GET_TOPIC_STATS_INFO: handler.get_stats,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: handler.get_system_topics,
    }


class TopicHandler:
    """Answers what concerns topics."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def update(self, command: Command, connection: Connection) -> Command:
        config = self._checked(command.header(UpdateTopicRequest))
        _log.info("topic update asked topic=%s by=%s", config.topic_name, connection.peer)
        self._state.topics.put(config)
        return command.reply()

    def update_many(self, command: Command, connection: Connection) -> Command:
        """All or nothing: RocketMQ makes those that come before a wrong one."""
        listed = decode_java_json(command.body, TopicConfigList).configs
        if not listed:
            raise ResponseError(ResponseCode.INVALID_PARAMETER, "the list names no topic")
        configs = [self._checked(_request_of(config)) for config in listed]
        _log.info("topics update asked count=%d by=%s", len(configs), connection.peer)
        self._state.topics.put(*configs)
        return command.reply()

    def delete(self, command: Command, connection: Connection) -> Command:
        """A topic that is not there is as good as deleted; its name may be one no topic could have."""
        topic = command.header(TopicRequest).topic
        if not topic.strip():
            raise ResponseError(ResponseCode.INVALID_PARAMETER, "the topic has no name")
        self._refuse_system_topic(topic)
        _log.info("topic deletion asked topic=%s by=%s", shown(topic), connection.peer)
        # The messages first: a crash in between leaves a topic to delete again, and not its messages to a
        # topic that is made again under the name.
        self._state.store.delete_topics([topic])
        self._state.topics.delete(topic)
        self._state.offsets.delete_topic(topic)
        self._state.counters.forget_topic(topic)
        state = self._state
        state.writes.forget_topic(
            topic, state.store, state.writer, born_host=state.store_host, now_ms=state.clock.now_ms()
        )
        return command.reply()

    def get_all(self, command: Command, connection: Connection) -> Command:
        """All topics in one answer, also to who asks for a page.

        Without a total in it the answer tells that there are no more pages. RocketMQ's own loop over
        pages can miss the last topic.
        """
        table = self._state.topics.table
        if not table.topics:
            _log.error("no topic in this broker, asked by=%s", connection.peer)
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "No topic in this broker")
        if table.mapping_data_version is None:
            # RocketMQ's slaves would make one up that is new at every sync.
            table = msgspec.structs.replace(table, mapping_data_version=DataVersion())
        try:
            body = encode_body(table)
        except LocalProtocolError as error:
            _log.error("topics can not be encoded, asked by=%s reason=%s", connection.peer, error)
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"UnsupportedEncodingException {error}") from error
        return command.reply(body=body)

    def get(self, command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(self._find(command.header(GetTopicConfigRequest).topic)))

    def get_stats(self, command: Command, connection: Connection) -> Command | None:
        config = self._find(command.header(TopicRequest).topic)
        steps = self._stats_answer(command.without_content(), config)
        return self._state.long_answers.make(command, connection, steps)

    def get_system_topics(self, command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(TopicList(topics=self._state.topics.system_names)))

    def _find(self, topic: str) -> TopicConfig:
        config = self._state.topics.find(topic)
        if config is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} does not exist on this broker")
        return config

    def _refuse_system_topic(self, topic: str, *, remedy: str = "") -> None:
        if self._state.topics.is_system(topic):
            raise ResponseError(ResponseCode.INVALID_PARAMETER, f"topic {topic} is the broker's own{remedy}")

    def _checked(self, request: UpdateTopicRequest) -> TopicConfig:
        topic = request.topic
        check_topic_name(topic)
        # Of those in which the broker keeps its own messages the counts of queues are not for others to say.
        if self._state.topics.find(topic) is None or not is_open_to_sends(topic):
            self._refuse_system_topic(topic)
        elif self._state.settings.validate_system_topic_when_update_topic:
            self._refuse_system_topic(
                topic, remedy="; validateSystemTopicWhenUpdateTopic=false lets it be changed"
            )
        return self._config_of(request)

    def _config_of(self, request: UpdateTopicRequest) -> TopicConfig:
        counts = (request.read_queue_count, request.write_queue_count)
        if not all(0 <= count <= MAX_QUEUE_ID for count in counts):
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"{counts[0]} queues to read and {counts[1]} to write; use 0 to {MAX_QUEUE_ID}",
            )
        if not 0 <= request.perm <= _ALL_PERMISSIONS:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER, f"perm {request.perm}; use 0 to {_ALL_PERMISSIONS}"
            )
        before = self._state.topics.find(request.topic)
        return TopicConfig(
            topic_name=request.topic,
            read_queue_count=request.read_queue_count,
            write_queue_count=request.write_queue_count,
            perm=request.perm,
            topic_filter_type=_filter_type(request.topic_filter_type),
            topic_sys_flag=request.topic_sys_flag or 0,
            is_ordered=request.is_ordered,
            attributes=alter_attributes(before.attributes if before else {}, request.attributes),
        )

    def _stats_answer(self, command: Command, config: TopicConfig) -> Steps:
        tables = QueueTables(self._state.settings.broker_name)
        queue_count = max(config.read_queue_count, config.write_queue_count)
        look = partial(self._stats_of, config.topic_name)
        parts = yield from tables.encode(config.topic_name, queue_count, look)
        put_tps = self._state.counters.topic_tps(config.topic_name)
        return command.reply(body=encode_body({"offsetTable": join_tables(parts), "topicPutTps": put_tps}))

    def _stats_of(self, topic: str, queue_id: int) -> QueueStats:
        store = self._state.store
        low, high = queue_bounds(store, topic, queue_id)
        last_ms = store_time_ms(store, topic, queue_id, high - 1)
        return QueueStats(min_offset=low, max_offset=high, last_update_timestamp_ms=last_ms or 0)


def _request_of(config: TopicConfig) -> UpdateTopicRequest:
    """What would ask for this topic alone. Its attributes are named ``+key`` to be set, ``-key`` to go."""
    attributes = [
        f"{key}={value}" if key.startswith("+") else key for key, value in config.attributes.items()
    ]
    return UpdateTopicRequest(
        topic=config.topic_name,
        default_topic=AUTO_CREATE_TOPIC,
        read_queue_count=config.read_queue_count,
        write_queue_count=config.write_queue_count,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type,
        topic_sys_flag=config.topic_sys_flag,
        is_ordered=config.is_ordered,
        attributes=",".join(attributes) or None,
    )


def _filter_type(name: str) -> TopicFilterType:
    try:
        return TopicFilterType(name)
    except ValueError as error:
        allowed = ", ".join(TopicFilterType)
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, f"topicFilterType {name} is not known; use one of {allowed}"
        ) from error
