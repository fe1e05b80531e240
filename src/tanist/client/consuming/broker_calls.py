"""What a consumer asks of brokers, beside the messages themselves: offsets, members, locks, retries.

A queue's master is asked. Offsets may be read, and committed, at any replica while there is no master;
what changes the group's messages or locks is the master's alone. Whoever refuses because another replica is
read is passed over for that one, which has the master's place from then on.
"""

import random
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from tanist.client.consuming.reset_order import OrderKey
from tanist.client.consuming.retry_copy import make_retry_copy
from tanist.client.errors import NoRoute
from tanist.client.received import ReceivedMessage
from tanist.client.sending.send_request import STATUSES
from tanist.client.session.session import Session
from tanist.errors import ConnectFailed, ConnectionLost, MQError, RemotingError, ResponseError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData
from tanist.model.topics import retry_topic
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.client import ClientConfigCheck, ConsumerList, LockedQueues, QueueLocks
from tanist.protocol.bodies.reset import QueueReceipts
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.common import ConsumerGroupRequest, QueueOffsetResponse, TopicQueueRequest
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from tanist.protocol.headers.reset import ResetReceiptRequest
from tanist.protocol.headers.send import ConsumerSendBackRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import NotMaster, NotReadable

_OFFSET_OR_NONE = frozenset({int(ResponseCode.SUCCESS), int(ResponseCode.QUERY_NOT_FOUND)})
_MEMBERS_OR_NONE = frozenset({int(ResponseCode.SUCCESS), int(ResponseCode.SYSTEM_ERROR)})
_ONLY_SUCCESS = frozenset({int(ResponseCode.SUCCESS)})


class BrokerCalls:
    """The calls of one member of ``group``.

    Each raises a RemotingError if it gets no answer, the ResponseError of the code it is refused with,
    and NoRoute if no broker is known that could be asked. Nothing is tried twice: the caller knows
    better when, and whether it still wants to.
    """

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group

    async def query_offset(self, queue: MessageQueue) -> QueueOffset | None:
        """Where the group stands in a queue; None if it never committed there."""
        header = QueryConsumerOffsetRequest(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id
        )
        answer = await self._ask(
            queue.broker_name,
            partial(self._some_replica, queue.topic, queue.broker_name),
            RequestCode.QUERY_CONSUMER_OFFSET,
            header,
            accepted=_OFFSET_OR_NONE,
        )
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return answer.header(ConsumerOffsetResponse).consumer_offset

    async def commit_offset(self, queue: MessageQueue, consumer_offset: QueueOffset) -> None:
        """Have the group stand at ``consumer_offset``.

        If the replica that is read changes meanwhile, it is committed where it is read next: the one before
        may have stopped taking offsets a moment ago.
        """
        header = UpdateConsumerOffsetRequest(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            consumer_offset=consumer_offset,
            client_id=self._session.client_id,
        )
        broker_name, code = queue.broker_name, RequestCode.UPDATE_CONSUMER_OFFSET
        locate = partial(self._some_replica, queue.topic, broker_name)
        try:
            await self._ask(broker_name, locate, code, header)
        except (NotReadable, ConnectFailed, ConnectionLost):
            if not await self._session.readers.found(broker_name, self._session.settings.timeout_s):
                raise
            await self._ask(broker_name, locate, code, header)

    async def send_receipt(self, order: OrderKey, receipts: QueueReceipts) -> None:
        """Tell a broker what this member did of an order of its."""
        header = ResetReceiptRequest(
            order_id=order.order_id,
            topic=order.topic,
            group=self._group,
            client_id=self._session.client_id,
            applied_ms=order.applied_ms,
        )
        locate = partial(self._some_replica, order.topic, order.broker_name)
        body = encode_body(receipts)
        await self._ask(order.broker_name, locate, RequestCode.RESET_RECEIPT, header, body=body)

    async def max_offset(self, queue: MessageQueue) -> QueueOffset:
        """One past the last message of a queue."""
        header = GetMaxOffsetRequest(topic=queue.topic, queue_id=queue.queue_id)
        return await self._ask_offset(queue, RequestCode.GET_MAX_OFFSET, header)

    async def min_offset(self, queue: MessageQueue) -> QueueOffset:
        """The first message that a queue still has."""
        header = TopicQueueRequest(topic=queue.topic, queue_id=queue.queue_id)
        return await self._ask_offset(queue, RequestCode.GET_MIN_OFFSET, header)

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> QueueOffset:
        """The first message stored at or after a time; the end of the queue if there is none yet.

        RocketMQ 4.9 answers the last message instead of the end.
        """
        header = SearchOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, timestamp_ms=timestamp_ms)
        return await self._ask_offset(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    async def send_back(self, message: ReceivedMessage, *, delay_level: int = 0, max_retries: int) -> None:
        """Have the broker give the message to the group again, later.

        With ``delay_level`` 0 the broker chooses when; below 0, or after ``max_retries``, it goes to the
        group's dead letters.
        """
        queue = message.queue
        header = ConsumerSendBackRequest(
            log_offset=message.log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=message.topic,
            max_reconsume_times=max_retries,
            broker_name=queue.broker_name,
        )
        locate = partial(self._master, queue.topic, queue.broker_name)
        await self._ask(queue.broker_name, locate, RequestCode.CONSUMER_SEND_MSG_BACK, header)

    async def send_copy(self, message: ReceivedMessage, *, delay_level: int = 0, max_retries: int) -> None:
        """Send a copy of the message to the group's retry topic, for when its broker does not do it.

        Any broker of the group takes it; who is silent or refuses is passed over.
        """
        topic = retry_topic(self._group)
        queues = (await self._session.routes.find(topic)).publish_queues
        failure: MQError = NoRoute(topic, "none of its brokers takes messages now")
        by_broker = {queue.broker_name: queue for queue in random.sample(queues, len(queues))}
        for queue in by_broker.values():
            request = make_retry_copy(
                message, queue, group=self._group, delay_level=delay_level, max_retries=max_retries
            )
            try:
                address = await self._master(topic, queue.broker_name)
                await self._session.wire.ask(address, request, accepted=STATUSES)
            except MQError as error:
                failure = error
            else:
                return
        raise failure

    async def members(self, topic: str) -> list[str]:
        """The ids of the group's members, as one broker of ``topic`` knows them.

        Empty if it knows none: it has just started, so that nothing follows for who has which queue.
        """
        answer = await self._ask_some_broker(
            topic,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            ConsumerGroupRequest(consumer_group=self._group),
            accepted=_MEMBERS_OR_NONE,
        )
        if answer.code == ResponseCode.SYSTEM_ERROR:
            return []
        return decode_java_json(answer.body, ConsumerList).client_ids

    async def check_subscription(self, subscription: SubscriptionData) -> None:
        """Have a broker check an expression that is not of tags. Raises BadSubscription, or what it says."""
        body = encode_body(
            ClientConfigCheck(
                client_id=self._session.client_id, group=self._group, subscription_data=subscription
            )
        )
        await self._ask_some_broker(subscription.topic, RequestCode.CHECK_CLIENT_CONFIG, body=body)

    async def lock(self, broker_name: str, queues: Iterable[MessageQueue]) -> frozenset[MessageQueue]:
        """Lock queues of one broker for this client; those that it holds now."""
        wanted = list(queues)
        locate = partial(self._master, wanted[0].topic, broker_name)
        answer = await self._ask(broker_name, locate, RequestCode.LOCK_BATCH_MQ, body=self._locks(wanted))
        return frozenset(decode_java_json(answer.body, LockedQueues).queues).intersection(wanted)

    async def unlock(self, broker_name: str, queues: Iterable[MessageQueue]) -> None:
        """Give up locks on queues of one broker, so that another member gets them at once."""
        held = list(queues)
        locate = partial(self._master, held[0].topic, broker_name)
        await self._ask(broker_name, locate, RequestCode.UNLOCK_BATCH_MQ, body=self._locks(held))

    def _locks(self, queues: list[MessageQueue]) -> bytes:
        return encode_body(
            QueueLocks(client_id=self._session.client_id, consumer_group=self._group, queues=queues)
        )

    async def _ask_offset(self, queue: MessageQueue, code: RequestCode, header: Header) -> QueueOffset:
        locate = partial(self._some_replica, queue.topic, queue.broker_name)
        answer = await self._ask(queue.broker_name, locate, code, header)
        return answer.header(QueueOffsetResponse).queue_offset

    async def _ask(
        self,
        broker_name: str,
        locate: Callable[[], Awaitable[str]],
        code: RequestCode,
        header: Header | None = None,
        *,
        body: bytes = b"",
        accepted: frozenset[int] = _ONLY_SUCCESS,
    ) -> Command:
        """The answer of the replica that ``locate`` finds, or of the one that is read if that refuses."""
        routes = self._session.routes
        tried: set[str] = set()
        while True:
            address = await locate()
            tried.add(address)
            request = Command.request(code, header, body=body)
            try:
                return await self._session.wire.ask(address, request, accepted=accepted)
            except NotReadable as refusal:
                await self._session.readers.follow(broker_name, address, refusal)
                if routes.table.some_replica_of(broker_name) in (None, *tried):
                    raise
            except (ConnectFailed, ResponseError) as error:
                if isinstance(error, ConnectFailed | NotMaster):
                    routes.lost(address)
                elif error.refresh_route:
                    routes.suspect()
                raise

    async def _ask_some_broker(
        self,
        topic: str,
        code: RequestCode,
        header: Header | None = None,
        *,
        body: bytes = b"",
        accepted: frozenset[int] = _ONLY_SUCCESS,
    ) -> Command:
        """The answer of any broker of the topic: all would say the same.

        Who is silent is passed over, and so is a broker of which no replica is read now.
        """
        route = await self._session.routes.find(topic)
        brokers = [name for name, addresses in route.replicas.items() if addresses]
        failure: Exception = NoRoute(topic, "its route names no broker")
        for broker_name in random.sample(brokers, len(brokers)):
            locate = partial(self._some_replica, topic, broker_name)
            try:
                return await self._ask(broker_name, locate, code, header, body=body, accepted=accepted)
            except (RemotingError, NotReadable) as error:
                self._session.routes.suspect()
                failure = error
        raise failure

    async def _some_replica(self, topic: str, broker_name: str) -> str:
        """The address of the broker's master or, while there is none, of another replica."""
        table = self._session.routes.table
        address = table.some_replica_of(broker_name)
        if address is None:
            await self._session.routes.find(topic)
            address = table.some_replica_of(broker_name)
        if address is None:
            self._session.routes.suspect()
            raise NoRoute(topic, f"its route names no replica of broker {broker_name}")
        return address

    async def _master(self, topic: str, broker_name: str) -> str:
        table = self._session.routes.table
        address = table.master_of(broker_name)
        if address is None:
            await self._session.routes.find(topic)
            address = table.master_of(broker_name)
        if address is None:
            self._session.routes.seek_master(broker_name)
            raise NoRoute(topic, f"broker {broker_name} has no master now")
        return address
