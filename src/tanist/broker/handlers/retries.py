"""Retries: CONSUMER_SEND_MSG_BACK, and the messages that clients send to retry topics themselves."""

import itertools

from tanist.broker.retries import copy_to_retry, max_retries, retry_delay_level, to_dead_letter
from tanist.broker.state import BrokerState
from tanist.clock import steady_ms
from tanist.errors import DiskFull, NotWritable, ProtocolError, ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.message import Appended, Message, is_queued
from tanist.model.property_names import RETRY_TOPIC
from tanist.model.topics import RETRY_PREFIX, TopicConfig, TopicSysFlag
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.send import ConsumerSendBackRequest, SendMessageRequest
from tanist.protocol.properties import find_property
from tanist.protocol.record import Record
from tanist.remoting import Connection, Handler


def routes(state: BrokerState) -> dict[int, Handler]:
    return {RequestCode.CONSUMER_SEND_MSG_BACK: RetryHandler(state).send_back}


def redirect(
    state: BrokerState, message: Message, request: SendMessageRequest, *, client_version: int
) -> Message:
    """A message that was sent to a retry topic, or the dead letter that it is.

    A group that consumes in order gets nothing again: its client has tried it where it was, often
    enough, and only then sent it.
    """
    group = state.groups.require(message.topic.removeprefix(RETRY_PREFIX))
    limit = max_retries(group, request.max_reconsume_times, client_version=client_version)
    is_ordered = state.locks.is_any_held(group.group_name, steady_ms(state.clock))
    if not is_ordered and message.reconsume_times <= limit:
        return message
    topic = state.topics.ensure_dead_letter_topic(group.group_name)
    return to_dead_letter(message, topic.topic_name)


class RetryHandler:
    """Takes back what consumers could not consume."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._turn = itertools.count()

    def send_back(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(ConsumerSendBackRequest)
        group = self._state.groups.require(request.group)
        if not self._state.settings.is_writable:
            raise ResponseError(
                ResponseCode.NO_PERMISSION, "the broker takes no messages: its brokerPermission says so"
            )
        if group.retry_queue_count <= 0:
            # The group wants nothing again, not even as a dead letter.
            return command.reply()
        topic = self._retry_topic(group, is_unit_mode=request.is_unit_mode)
        record = self._record(request.log_offset)
        limit = max_retries(group, request.max_reconsume_times, client_version=command.version)
        if request.delay_level < 0 or record.reconsume_times >= limit:
            topic = self._state.topics.ensure_dead_letter_topic(group.group_name)
            copy = copy_to_retry(record, topic=topic.topic_name, queue_id=0, delay_level=0)
        else:
            copy = copy_to_retry(
                record,
                topic=topic.topic_name,
                queue_id=self._queue_id(group, topic),
                delay_level=retry_delay_level(record, request.delay_level),
            )
        pending = self._state.writer.pending
        is_waiting = pending.is_on and not command.is_one_way
        if pending.is_on:
            pending.check(is_waiting=is_waiting)
        appended = self._append(copy)
        origin = (find_property(copy.properties, RETRY_TOPIC) or b"").decode("utf-8", "replace")
        # The property is the sender's to choose, and a counter is kept for a day.
        if self._state.topics.find(origin) is not None:
            self._state.counters.on_sent_back(origin, group.group_name)
        if not is_waiting:
            return command.reply()
        # The consumer goes on behind the original when it is answered: then the copy must not be lost. Where
        # it is late it is there all the same, and told so the consumer would only send another one.
        pending.answer_when_safe(appended, connection, encode_command(command.reply()), tells_why_not=False)
        return None

    def _retry_topic(self, group: SubscriptionGroupConfig, *, is_unit_mode: bool) -> TopicConfig:
        topic = self._state.topics.ensure_retry_topic(
            group.group_name,
            queue_count=group.retry_queue_count,
            sys_flag=int(TopicSysFlag.UNIT_SUB) if is_unit_mode else 0,
        )
        if not topic.is_writable:
            raise ResponseError(
                ResponseCode.NO_PERMISSION, f"topic {topic.topic_name} may not be written to: see its perm"
            )
        return topic

    def _queue_id(self, group: SubscriptionGroupConfig, topic: TopicConfig) -> int:
        """The next queue in turn, of those that the group reads.

        The topic keeps its queues when its group is given more of them, and RocketMQ then writes where
        nobody reads.
        """
        return next(self._turn) % max(min(group.retry_queue_count, topic.read_queue_count), 1)

    def _record(self, log_offset: int) -> Record:
        record = self._state.store.message_at(log_offset)
        # What is in no queue nobody can have consumed.
        if record is None or not is_queued(record.sys_flag):
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"no message begins at log offset {log_offset} (any more)"
            )
        return record

    def _append(self, copy: Message) -> Appended:
        """RocketMQ answers 1 whatever the reason; the client then sends the copy itself."""
        placed = self._state.placing.place(copy, self._state.clock.now_ms())
        try:
            return self._state.writer.append(placed)
        except (NotWritable, DiskFull, OSError, ProtocolError) as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from error
