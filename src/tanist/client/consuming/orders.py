"""What brokers ask of a consumer on its own connection, and what it answers."""

from collections.abc import Mapping
from typing import Protocol

from tanist.client.consuming.handling import MessageHandler
from tanist.client.consuming.membership import Membership
from tanist.client.consuming.resets import Resets
from tanist.client.consuming.retrying import RetryLater
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.queues.rebalancing import Rebalancer
from tanist.client.received import ReceivedMessage, decode_message
from tanist.client.session.tasks import OwnedTasks
from tanist.clock import Clock
from tanist.errors import ResponseError
from tanist.model.groups import ConsumeType
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.running import (
    PROP_CONSUME_ORDERLY,
    PROP_CONSUME_TYPE,
    PROP_START_TIMESTAMP,
    ConsumeDirectlyResult,
    ConsumerRunningInfo,
    ConsumerStatus,
    ConsumeStatus,
    ProcessQueueInfo,
)
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.client import ConsumeMessageDirectlyRequest, ConsumerRunningInfoRequest
from tanist.protocol.headers.common import ConsumerGroupRequest, TopicGroupRequest
from tanist.protocol.java_json import ObjectKeyed
from tanist.remoting import Connection, Handler


class HandlerFinder(Protocol):
    """Knows the handler that messages are given to now."""

    def __call__(self) -> MessageHandler | None: ...


class Orders:
    """Answers brokers for one consumer."""

    def __init__(
        self,
        rebalancer: Rebalancer,
        resets: Resets,
        tasks: OwnedTasks,
        clock: Clock,
        membership: Membership,
        *,
        find_handler: HandlerFinder,
    ) -> None:
        self._rebalancer = rebalancer
        self._resets = resets
        self._tasks = tasks
        self._clock = clock
        self._member = membership
        self._find_handler = find_handler
        self._started_ms = clock.now_ms()

    def handlers(self) -> Mapping[int, Handler]:
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._on_members_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._resets.on_order,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._tell_offsets,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._tell_running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
        }

    def _on_members_changed(self, command: Command, _connection: Connection) -> None:
        if command.header(ConsumerGroupRequest).consumer_group == self._member.group:
            self._rebalancer.soon()

    def _tell_offsets(self, command: Command, _connection: Connection) -> Command:
        request = command.header(TopicGroupRequest)
        self._check_group(request.group)
        offsets = {
            queue: owned.cached.consumer_offset
            for queue, owned in self._rebalancer.owned.by_queue.items()
            if queue.topic == request.topic
        }
        return command.reply(body=encode_body(ConsumerStatus(queue_table=ObjectKeyed(offsets))))

    def _tell_running_info(self, command: Command, _connection: Connection) -> Command:
        self._check_group(command.header(ConsumerRunningInfoRequest).consumer_group)
        queues = {queue: _describe(owned) for queue, owned in self._rebalancer.owned.by_queue.items()}
        running = ConsumerRunningInfo(
            properties={
                PROP_START_TIMESTAMP: str(self._started_ms),
                PROP_CONSUME_TYPE: ConsumeType.PASSIVELY.value,
                PROP_CONSUME_ORDERLY: str(self._member.is_orderly).lower(),
            },
            subscriptions=list(self._member.subscriptions.values()),
            queue_table=ObjectKeyed(queues),
            status_table={topic: ConsumeStatus() for topic in self._member.subscriptions},
        )
        return command.reply(body=encode_body(running))

    def _consume_directly(self, command: Command, connection: Connection) -> None:
        """Have a message handled that an operator chose. It is neither acknowledged nor redelivered."""
        request = command.header(ConsumeMessageDirectlyRequest)
        self._check_group(request.consumer_group)
        handler = self._find_handler()
        if handler is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, "this consumer has no handler: it iterates over its messages"
            )
        message = decode_message(command.body, broker_name=request.broker_name or "")
        kept = command.without_content()
        self._tasks.start(self._handle(handler, message, kept, connection), "consume directly")

    async def _handle(
        self, handler: MessageHandler, message: ReceivedMessage, command: Command, connection: Connection
    ) -> None:
        start_ms = self._clock.now_ms()
        outcome, remark = "CR_SUCCESS", None
        try:
            await handler(message)
        except RetryLater as error:
            outcome, remark = "CR_LATER", str(error)
        except Exception as error:
            outcome, remark = "CR_THROW_EXCEPTION", repr(error)
        result = ConsumeDirectlyResult(
            consume_result=outcome,
            is_ordered=self._member.is_orderly,
            spent_ms=self._clock.now_ms() - start_ms,
            remark=remark,
        )
        if connection.is_open:
            connection.send(command.reply(body=encode_body(result)))

    def _check_group(self, group: str) -> None:
        if group != self._member.group:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"this client has no consumer of group {group}")


def _describe(owned: OwnedQueue) -> ProcessQueueInfo:
    cached = owned.cached
    consumer_offset = cached.consumer_offset
    return ProcessQueueInfo(
        consumer_offset=consumer_offset,
        cached_min_offset=consumer_offset if cached.count else QueueOffset(0),
        cached_max_offset=QueueOffset(consumer_offset + cached.span - 1 if cached.count else 0),
        cached_count=cached.count,
        cached_mib=cached.size_bytes >> 20,
        is_locked=bool(owned.locked_ms),
        last_lock_timestamp_ms=owned.locked_ms,
        is_dropped=owned.is_dropped,
        last_pull_timestamp_ms=owned.pulled_ms,
        last_consume_timestamp_ms=owned.consumed_ms,
    )
