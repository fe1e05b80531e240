"""Offsets: where groups stand (14, 15, 43), where queues begin and end (30, 31), and when (29, 32)."""

from tanist.broker.late import Steps
from tanist.broker.memory import hot_bytes
from tanist.broker.offsets import check_client_may_commit
from tanist.broker.queue_look import queue_bounds, store_time_ms, young_start
from tanist.broker.resets import carrying as resets
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.protocol.bodies import encode_body, join_tables
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import QueueOffsetResponse, TopicQueueRequest
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    EarliestStoreTimeResponse,
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from tanist.remoting import Connection, Handler
from tanist.store import Boundary
from tanist.store.store import MAX_QUEUE_ID

_NO_TIME = -1
_STEP_KEYS = 64


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = OffsetHandler(state)
    return {
        RequestCode.QUERY_CONSUMER_OFFSET: handler.query,
        RequestCode.UPDATE_CONSUMER_OFFSET: handler.update,
        RequestCode.GET_ALL_CONSUMER_OFFSET: handler.get_all,
        RequestCode.GET_MAX_OFFSET: handler.get_max,
        RequestCode.GET_MIN_OFFSET: handler.get_min,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: handler.search,
        RequestCode.GET_EARLIEST_MSG_STORETIME: handler.get_earliest_time,
    }


class OffsetHandler:
    """Answers what concerns offsets. Questions about a queue never fail: an unknown one is empty."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def query(self, command: Command, connection: Connection) -> Command:
        """A group without an offset begins at the start of a queue whose first message is still young.

        Else a new group would begin at the end of a new topic and miss what was sent before its first
        pull. In an old queue the consumer decides, so it is told that there is no offset.
        """
        request = command.header(QueryConsumerOffsetRequest)
        group, topic, queue_id = request.consumer_group, request.topic, request.queue_id
        offset = self._state.offsets.find(group, topic, queue_id)
        if self._state.resets.watched:
            resets.on_query(self._state, resets.Visit(group, topic, queue_id, connection))
        if offset is None and self._state.settings.is_slave:
            self._check_heard_of(group, topic)
        if offset is None and request.set_zero_if_not_found is not False:
            store = self._state.store
            offset = young_start(store, topic, queue_id, hot_bytes(store.settings))
        if offset is None:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND,
                f"group {group} has no offset in queue {queue_id} of topic {topic} yet",
            )
        return command.reply(header=ConsumerOffsetResponse(consumer_offset=offset))

    def _check_heard_of(self, group: str, topic: str) -> None:
        """Raises ResponseError at a slave that lacks the group or the topic: its master may know the offset.

        Told that there is none, a consumer would begin anew, and pass over what the group has not read.
        """
        self._state.groups.require(group)
        if self._state.topics.find(topic) is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} is not known to this slave yet")

    def update(self, command: Command, connection: Connection) -> Command:
        request = command.header(UpdateConsumerOffsetRequest)
        group, topic = request.consumer_group, request.topic
        if self._state.groups.find(group) is None:
            raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group} does not exist")
        if self._state.topics.find(topic) is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} does not exist")
        check_client_may_commit(group)
        # Not the topic's own count: after it was lowered, members still commit what they had.
        if not 0 <= request.queue_id < MAX_QUEUE_ID or request.consumer_offset < 0:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"offset {request.consumer_offset} in queue {request.queue_id} can not be",
            )
        if self._state.resets.watched:
            visit = resets.Visit(group, topic, request.queue_id, connection)
            is_one_way, offset = command.is_one_way, request.consumer_offset
            client_id = request.client_id
            if not resets.may_commit(self._state, visit, offset, is_one_way=is_one_way, client_id=client_id):
                # As RocketMQ 5 answers while a reset is pending.
                return command.reply(
                    remark="passed over: the group is being moved, and you have yet to follow"
                )
        self._state.offsets.commit(group, topic, request.queue_id, request.consumer_offset)
        return command.reply()

    def get_all(self, command: Command, connection: Connection) -> Command | None:
        """For slaves. In turns: half a million offsets take a second to encode."""
        steps = self._all_answer(command.without_content())
        return self._state.long_answers.make(command, connection, steps)

    def get_max(self, command: Command, _connection: Connection) -> Command:
        """What is indexed is committed: both kinds of maximum are the same."""
        request = command.header(GetMaxOffsetRequest)
        _, high = queue_bounds(self._state.store, request.topic, request.queue_id)
        return command.reply(header=QueueOffsetResponse(queue_offset=high))

    def get_min(self, command: Command, _connection: Connection) -> Command:
        request = command.header(TopicQueueRequest)
        low, _ = queue_bounds(self._state.store, request.topic, request.queue_id)
        return command.reply(header=QueueOffsetResponse(queue_offset=low))

    def search(self, command: Command, _connection: Connection) -> Command:
        """Any boundary but UPPER is LOWER, so clients older than boundaries get that too."""
        request = command.header(SearchOffsetRequest)
        is_upper = (request.boundary_type or "").upper() == Boundary.UPPER.value
        found = self._state.store.offset_at_time(
            request.topic,
            request.queue_id,
            request.timestamp_ms,
            Boundary.UPPER if is_upper else Boundary.LOWER,
        )
        return command.reply(header=QueueOffsetResponse(queue_offset=found))

    def get_earliest_time(self, command: Command, _connection: Connection) -> Command:
        request = command.header(TopicQueueRequest)
        low, _ = queue_bounds(self._state.store, request.topic, request.queue_id)
        found_ms = store_time_ms(self._state.store, request.topic, request.queue_id, low)
        return command.reply(
            header=EarliestStoreTimeResponse(timestamp_ms=_NO_TIME if found_ms is None else found_ms)
        )

    def _all_answer(self, command: Command) -> Steps:
        offsets = self._state.offsets
        # What is committed meanwhile is told with the old version at worst, and so it is asked for again.
        data_version, keys, parts = offsets.data_version, offsets.keys(), list[bytes]()
        for start in range(0, len(keys), _STEP_KEYS):
            parts.append(
                encode_body({key: offsets.queues_at(key) for key in keys[start : start + _STEP_KEYS]})
            )
            yield
        return command.reply(
            body=encode_body({"dataVersion": data_version, "offsetTable": join_tables(parts)})
        )
