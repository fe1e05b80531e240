"""Messages looked up: by their place (33), by key or unique id (12), and the entries of a queue (321)."""

from tanist.broker.late import Steps
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.stats import ConsumeQueueView, QueueEntryView
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import MAX_BODY_BYTES
from tanist.protocol.headers.messages import (
    QueryConsumeQueueRequest,
    QueryMessageRequest,
    QueryMessageResponse,
    ViewMessageRequest,
)
from tanist.remoting import Connection, Handler
from tanist.store.consume_queue import ConsumeQueue

_STEP_ENTRIES = 32
"""Some 20 us each, if the message has to be looked at."""
_MAX_QUEUE_ENTRIES = 1_000
_NO_FILTER = "null"
"""RocketMQ's JSON of no bitmap filter, which its tool prints as it is."""


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = MessageHandler(state)
    return {
        RequestCode.VIEW_MESSAGE_BY_ID: handler.view,
        RequestCode.QUERY_MESSAGE: handler.query,
        RequestCode.QUERY_CONSUME_QUEUE: handler.query_queue,
    }


class MessageHandler:
    """Answers with messages as they are stored, whoever they are for."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def view(self, command: Command, _connection: Connection) -> Command:
        return command.reply(body=find_message(self._state, command.header(ViewMessageRequest).log_offset))

    def query(self, command: Command, connection: Connection) -> Command | None:
        """The newest messages with a key, the oldest of them first.

        A key may be that of millions of messages outside the time that was asked for, so the search
        is made in turns.
        """
        steps = self._query_answer(command.without_content(), command.header(QueryMessageRequest))
        return self._state.long_answers.make(command, connection, steps)

    def query_queue(self, command: Command, _connection: Connection) -> Command:
        """Entries from an index on; none if the queue has none there, and then its bounds say where it has.

        Like RocketMQ it tells what a group subscribes to, and does not say which entries that takes:
        only entries with a bitmap would be judged, and there are none.
        """
        request = command.header(QueryConsumeQueueRequest)
        topic, group = request.topic or "", request.consumer_group
        queue = self._state.store.queues.find(topic, request.queue_id)
        if queue is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"queue {request.queue_id} of topic {topic} has no messages"
            )
        subscription = self._state.clients.subscriptions(group).get(topic) if group else None
        filter_data = _NO_FILTER if subscription else f"{group}@{topic} is not online!"
        view = ConsumeQueueView(
            min_offset=queue.min_offset,
            max_offset=queue.max_offset,
            entries=_entries(queue, request.queue_offset, request.count),
            subscription_data=subscription,
            filter_data=filter_data if group else None,
        )
        return command.reply(body=encode_body(view))

    def _query_answer(self, command: Command, request: QueryMessageRequest) -> Steps:
        store, settings = self._state.store, self._state.settings
        wanted = settings.default_query_max_num if request.is_unique_key else request.max_count
        max_count = min(wanted, settings.max_msgs_num_batch)
        # Places and not messages: what is looked at in one turn may be deleted before the next.
        places: list[tuple[int, int]] = []
        size_bytes = 0
        walk = store.walk_key(
            request.topic, request.key, begin_ms=request.begin_timestamp_ms, end_ms=request.end_timestamp_ms
        )
        for step, record in enumerate(walk, 1):
            if len(places) >= max_count:
                break
            if record is not None:
                size_bytes += record.size_bytes
                if size_bytes > MAX_BODY_BYTES:
                    break
                places.append((record.log_offset, record.size_bytes))
            if step % _STEP_ENTRIES == 0:
                yield
        places = [place for place in places if place[0] >= store.log.log_start]
        header = QueryMessageResponse(
            index_timestamp_ms=store.index.indexed_to_ms,
            index_log_offset=LogOffset(max(0, store.index.indexed_to)),
        )
        if not places:
            remark = f"no message of topic {request.topic} has this key in the time that was asked for"
            return command.reply(ResponseCode.QUERY_NOT_FOUND, header, remark=remark)
        body = b"".join(store.log.read(*place) for place in sorted(places))
        return command.reply(header=header, body=body)


def find_message(state: BrokerState, log_offset: int) -> memoryview:
    """One stored message, as a view of the log. Raises ResponseError if none begins there."""
    record = state.store.message_at(log_offset)
    if record is None:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, f"no message begins at log offset {log_offset} of this broker"
        )
    return state.store.log.read(record.log_offset, record.size_bytes)


def _entries(queue: ConsumeQueue, queue_offset: int, count: int) -> list[QueueEntryView]:
    if not queue.min_offset <= queue_offset < queue.max_offset:
        return []
    return [
        QueueEntryView(log_offset=LogOffset(log_offset), size_bytes=size_bytes, tags_code=tags_code)
        for log_offset, size_bytes, tags_code in queue.entries(
            queue_offset, min(max(count, 0), _MAX_QUEUE_ENTRIES)
        )
    ]
