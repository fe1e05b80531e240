"""Sends: SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE.

The answer goes out when it is true: at once, or under SYNC_FLUSH when the message is on disk, and from a
SYNC_MASTER when enough replicas hold it.
"""

import itertools

from tanist.broker.handlers.retries import redirect
from tanist.broker.handlers.writes import admit
from tanist.broker.intake import Intake
from tanist.broker.quick_send import FOLLOWS, QuickSends
from tanist.broker.state import BrokerState
from tanist.broker.system_topics import is_open_to_sends
from tanist.errors import DiskFull, NotWritable, ProtocolError, ResponseError, StoreBusy
from tanist.model.message import Appended, Message
from tanist.model.property_names import WAIT
from tanist.model.topics import RETRY_PREFIX, TopicConfig
from tanist.model.writes import WriteRun
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import MAX_BODY_BYTES, encode_send_answer
from tanist.protocol.headers.send import SendMessageRequest, SendMessageRequestV2
from tanist.protocol.message_id import UniqueIds, encode_offset_ids
from tanist.protocol.properties import find_property
from tanist.protocol.queue_entry import log_offsets_of
from tanist.remoting import Connection, Express, Handler

_NO_WAIT = b"false"
_SUCCESS = int(ResponseCode.SUCCESS)


def make_intake(state: BrokerState) -> Intake:
    return Intake(
        cluster=state.settings.broker_cluster_name,
        # With its properties around it a message must fit the frame in which a consumer gets it.
        max_body_bytes=min(state.store.settings.max_message_size, MAX_BODY_BYTES),
    )


class SendHandler:
    """Takes messages in."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._intake = make_intake(state)
        self.quick = QuickSends(state, self._intake)
        """Takes what needs no second look."""
        self._ids = UniqueIds(address=state.store_host[:-4], pid=state.pid, discriminator=0)
        self._turn = itertools.count()

    def routes(self) -> dict[int, Handler]:
        return {
            RequestCode.SEND_MESSAGE: self.send_v1,
            RequestCode.SEND_MESSAGE_V2: self.send_v2,
            RequestCode.SEND_BATCH_MESSAGE: self.send_v2,
        }

    @property
    def express(self) -> Express:
        """Takes what needs no second look before it is a Command."""
        return self.quick.take_read

    def send_v1(self, command: Command, connection: Connection) -> bytes | None:
        return self._send(command, command.header(SendMessageRequest), connection)

    def send_v2(self, command: Command, connection: Connection) -> bytes | None:
        if (answer := self.quick.take(command, connection)) is not None:
            return None if answer is FOLLOWS else answer
        return self._send(command, command.header(SendMessageRequestV2), connection)

    def _send(self, command: Command, request: SendMessageRequest, connection: Connection) -> bytes | None:
        topic = self._topic(request)
        is_batch = bool(request.is_batch)
        run: WriteRun | None = None
        if request.write_run is not None:
            if not is_batch or request.queue_id < 0:
                raise ResponseError(
                    ResponseCode.MESSAGE_ILLEGAL, "a run of a write is a batch, for a queue that it names"
                )
            queue = (topic.topic_name, self._queue_id(request, topic))
            admitted = admit(self._state, command, request.write_run, queue, connection)
            if not isinstance(admitted, WriteRun):
                return admitted
            run = admitted
        message, unique_key = self._intake.accept(
            request,
            command.body,
            topic=topic,
            queue_id=self._queue_id(request, topic),
            born_host=connection.peer_host,
            make_id=None if is_batch else self._make_id,
        )
        if not is_batch and message.topic.startswith(RETRY_PREFIX):
            message = redirect(self._state, message, request, client_version=command.version)
        placed = self._state.placing.place(message, self._state.clock.now_ms())
        if is_batch and placed is not message:
            raise ResponseError(ResponseCode.MESSAGE_ILLEGAL, "a batch has neither a delay nor a transaction")
        is_waiting = self._is_waiting(command, placed)
        appended = self._append(placed, is_batch=is_batch, is_run=run is not None)
        if run is not None:
            self._state.writes.note(
                run,
                message.topic,
                message.queue_id,
                log_end=appended.end,
                now_ms=appended.store_timestamp_ms,
            )
        self.quick.learn(topic)
        answer = encode_send_answer(
            command,
            code=_SUCCESS,
            msg_id=encode_offset_ids(self._state.store_host, log_offsets_of(appended.entries)),
            queue_id=message.queue_id,
            queue_offset=appended.queue_offset,
            unique_key=unique_key,
        )
        if not is_waiting:
            return answer
        self._state.writer.pending.answer_when_safe(appended, connection, answer)
        return None

    def _is_waiting(self, command: Command, message: Message) -> bool:
        """Whether the answer waits until the message is safe. A one-way send has none, but is refused too."""
        pending = self._state.writer.pending
        if not pending.is_on:
            return False
        if find_property(message.properties, WAIT) == _NO_WAIT:
            pending.check_right()
            return False
        pending.check(is_waiting=not command.is_one_way)
        return not command.is_one_way

    def _make_id(self) -> str:
        return self._ids.next_id(self._state.clock.now_ms())

    def _append(self, message: Message, *, is_batch: bool, is_run: bool) -> Appended:
        writer = self._state.writer
        if is_batch and not is_run and message.topic.startswith(RETRY_PREFIX):
            raise ResponseError(ResponseCode.MESSAGE_ILLEGAL, "a retry topic takes no batches")
        try:
            return writer.append_packed(message) if is_batch else writer.append(message)
        except StoreBusy as error:
            remark = f"[PC_SYNCHRONIZED]broker busy, start flow control for a while: {error}"
            raise ResponseError(ResponseCode.SYSTEM_BUSY, remark) from error
        except (NotWritable, DiskFull, OSError) as error:
            raise ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, str(error)) from error
        except ProtocolError as error:
            raise ResponseError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error

    def _topic(self, request: SendMessageRequest) -> TopicConfig:
        """The topic, which a first send may create from its template."""
        name = request.topic
        if not is_open_to_sends(name):
            raise ResponseError(
                ResponseCode.NO_PERMISSION, f"topic {name} is the broker's own: send to another"
            )
        topic = self._state.topics.find(name)
        if topic is None:
            topic = self._state.topics.create_for_send(
                name, default_topic=request.default_topic, queue_count=request.default_topic_queue_count
            )
        if topic is None and name.startswith(RETRY_PREFIX):
            # What a group could not consume must not be lost where topics do not come by themselves.
            topic = self._state.topics.ensure_retry_topic(name.removeprefix(RETRY_PREFIX), queue_count=1)
        if topic is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic {name} does not exist and a send may not create it; create it first",
            )
        if topic.is_ordered and not self._state.settings.is_writable:
            raise ResponseError(
                ResponseCode.NO_PERMISSION, "the broker takes no sends: its brokerPermission says so"
            )
        return topic

    def _queue_id(self, request: SendMessageRequest, topic: TopicConfig) -> int:
        """The queue that was asked for, or the next one in turn."""
        if request.queue_id < 0:
            return next(self._turn) % max(topic.write_queue_count, 1)
        if request.queue_id >= max(topic.read_queue_count, topic.write_queue_count):
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"queue {request.queue_id} of {topic.topic_name}: it has {topic.write_queue_count} queues",
            )
        return request.queue_id
