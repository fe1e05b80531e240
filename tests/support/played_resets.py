"""Brokers of one topic and one group that a test plays: they answer what an operator's reset asks.

site = PlayedSite(PlayedBroker("broker-a", {0: queue(end=10, now=7)}))
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from tanist.errors import ConnectFailed
from tanist.model.groups import ConsumeType, MessageModel
from tanist.model.offsets import QueueOffset
from tanist.model.route import BrokerData, ClusterInfo, MessageQueue, QueueData, TopicRouteData
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies import ObjectKeyed, encode_body
from tanist.protocol.bodies.client import Connection, ConsumerConnections
from tanist.protocol.bodies.reset import (
    ClientReceipt,
    OffsetTable,
    QueueReceipt,
    QueueTargets,
    ReceiptState,
    ResetOrders,
    ResetOrderView,
    ResetState,
)
from tanist.protocol.bodies.running import ConsumerRunningInfo, ConsumerStatus
from tanist.protocol.bodies.stats import QueueStats, TopicStatsTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import QueueOffsetResponse, TopicQueueRequest, TopicRequest
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    EarliestStoreTimeResponse,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from tanist.protocol.headers.reset import (
    ApplyResetRequest,
    DecideResetRequest,
    GetResetOrdersRequest,
    ResetOffsetRequest,
)
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import error_of

TOPIC, GROUP, NAME_SERVER = "Orders", "billing", "10.0.0.9:9876"
T0 = 1_700_000_000_000
"""When the message at offset 0 was stored; each later one a second after the one before it."""


@dataclass
class PlayedQueue:
    """A queue and where the group stands in it."""

    end: int
    now: int | None = None
    start: int = 0


@dataclass
class PlayedClient:
    """A member. ``does`` is what becomes of an order at once."""

    client_id: str
    does: ReceiptState = ReceiptState.CONFIRMED
    reason: str = ""
    language: str = "PYTHON"
    version: int = 479
    is_online: bool = True
    stands: dict[int, int] = field(default_factory=dict[int, int])


@dataclass
class PlayedBroker:
    """One broker, its master at an address of its own."""

    name: str
    queues: dict[int, PlayedQueue]
    clients: list[PlayedClient] = field(default_factory=list[PlayedClient])
    model: MessageModel = MessageModel.CLUSTERING
    knows_orders: bool = True
    needs_approval: bool = False
    server_side: bool = False
    is_up: bool = True
    is_orderly: bool = False
    retry_count: int = 0
    orders: list[ResetOrderView] = field(default_factory=list[ResetOrderView])
    version: int = 0
    asked: list[Command] = field(default_factory=list[Command])
    later: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What happens next, one at each wait for a change."""
    before_apply: Callable[[], None] | None = None
    number: int = 1

    @property
    def address(self) -> str:
        return f"10.0.0.{self.number}:10911"

    def count(self, code: int) -> int:
        return sum(command.code == code for command in self.asked)

    def confirm(self, client_id: str) -> None:
        """Have a client that was told follow."""
        (order,) = [order for order in self.orders if order.state is ResetState.APPLIED]
        for number, receipt in enumerate(order.receipts):
            if receipt.client_id == client_id:
                order.receipts[number] = self._receipt(order, PlayedClient(client_id))
        self.version += 1

    async def answer(self, command: Command) -> Command:
        self.asked.append(command)
        handler = {
            RequestCode.GET_TOPIC_STATS_INFO: self._stats,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self._connections,
            RequestCode.QUERY_CONSUMER_OFFSET: self._offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._commit,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._earliest,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self._status,
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self._reset,
            RequestCode.GET_BROKER_CONFIG: self._config,
            RequestCode.QUERY_MESSAGE: self._no_message,
        }.get(RequestCode(command.code))
        if handler is not None:
            return handler(command)
        if self.knows_orders:
            match command.code:
                case RequestCode.APPLY_RESET:
                    return self._apply(command)
                case RequestCode.GET_RESET_ORDERS:
                    return await self._orders(command)
                case RequestCode.DECIDE_RESET:
                    return self._decide(command)
                case _:
                    pass
        return command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="never heard of it")

    def _name(self, queue_id: int, topic: str = TOPIC) -> MessageQueue:
        return MessageQueue(topic=topic, broker_name=self.name, queue_id=queue_id)

    def _stats(self, command: Command) -> Command:
        topic = command.header(TopicRequest).topic
        if topic != TOPIC:
            table = {
                self._name(0, topic): QueueStats(
                    min_offset=QueueOffset(0), max_offset=QueueOffset(self.retry_count)
                )
            }
        else:
            table = {
                self._name(queue_id): QueueStats(
                    min_offset=QueueOffset(each.start), max_offset=QueueOffset(each.end)
                )
                for queue_id, each in self.queues.items()
            }
        return command.reply(body=encode_body(TopicStatsTable(offset_table=ObjectKeyed(table))))

    def _connections(self, command: Command) -> Command:
        online = [client for client in self.clients if client.is_online]
        if not online:
            return command.reply(ResponseCode.CONSUMER_NOT_ONLINE, remark="nobody")
        found = ConsumerConnections(
            connections=[
                Connection(
                    client_id=client.client_id,
                    client_addr="10.1.0.1:5000",
                    language=client.language,
                    version=client.version,
                )
                for client in online
            ],
            subscription_table={TOPIC: SubscriptionData(topic=TOPIC)},
            consume_type=ConsumeType.PASSIVELY,
            message_model=self.model,
        )
        return command.reply(body=encode_body(found))

    def _offset(self, command: Command) -> Command:
        asked = command.header(QueryConsumerOffsetRequest)
        known = self.queues.get(asked.queue_id) if asked.topic == TOPIC else None
        now = known.now if known is not None and asked.consumer_group == GROUP else None
        if now is None:
            return command.reply(ResponseCode.QUERY_NOT_FOUND, remark="no offset")
        return command.reply(header=ConsumerOffsetResponse(consumer_offset=QueueOffset(now)))

    def _commit(self, command: Command) -> Command:
        asked = command.header(UpdateConsumerOffsetRequest)
        self.queues[asked.queue_id].now = asked.consumer_offset
        return command.reply()

    def _search(self, command: Command) -> Command:
        asked = command.header(SearchOffsetRequest)
        found = self._at_time(asked.queue_id, asked.timestamp_ms)
        return command.reply(header=QueueOffsetResponse(queue_offset=QueueOffset(found)))

    def _at_time(self, queue_id: int, at_ms: int) -> int:
        queue = self.queues[queue_id]
        return min(queue.end, max(queue.start, -((T0 - at_ms) // 1000)))

    def _earliest(self, command: Command) -> Command:
        queue = self.queues[command.header(TopicQueueRequest).queue_id]
        return command.reply(header=EarliestStoreTimeResponse(timestamp_ms=T0 + queue.start * 1000))

    def _running(self, command: Command) -> Command:
        told = {"PROP_CONSUMEORDERLY": "true" if self.is_orderly else "false"}
        return command.reply(body=encode_body(ConsumerRunningInfo(properties=told)))

    def _status(self, command: Command) -> Command:
        table = {
            client.client_id: ObjectKeyed(
                {self._name(queue_id): QueueOffset(offset) for queue_id, offset in client.stands.items()}
            )
            for client in self.clients
            if client.is_online
        }
        return command.reply(body=encode_body(ConsumerStatus(consumer_table=table)))

    def _reset(self, command: Command) -> Command:
        asked = command.header(ResetOffsetRequest)
        if not any(client.is_online for client in self.clients) and not self.knows_orders:
            return command.reply(ResponseCode.CONSUMER_NOT_ONLINE, remark="nobody")
        found: dict[MessageQueue, QueueOffset] = {}
        for queue_id, queue in self.queues.items():
            if asked.queue_id in (-1, queue_id):
                target = self._at_time(queue_id, asked.timestamp_ms) if asked.timestamp_ms >= 0 else queue.end
                if asked.queue_offset is not None and asked.queue_id == queue_id:
                    target = asked.queue_offset
                found[self._name(queue_id)] = QueueOffset(target)
                queue.now = target
                for client in self.clients:
                    if client.does is ReceiptState.CONFIRMED:
                        client.stands[queue_id] = target
        return command.reply(body=encode_body(OffsetTable(offset_table=ObjectKeyed(found))))

    def _config(self, command: Command) -> Command:
        return command.reply(body=b"useServerSideResetOffset=true\n" if self.server_side else b"x=1\n")

    def _no_message(self, command: Command) -> Command:
        return command.reply(ResponseCode.QUERY_NOT_FOUND, remark="no such message")

    def _apply(self, command: Command) -> Command:
        asked = command.header(ApplyResetRequest)
        targets = decode_java_json(bytes(command.body), QueueTargets).targets
        if self.before_apply is not None:
            self.before_apply()
        if any(order.order_id == asked.order_id for order in self.orders):
            return command.reply()
        moved = {
            target.queue_id: QueueOffset(-1 if now is None else now)
            for target in targets
            if (now := self.queues[target.queue_id].now) != target.expected_offset
        }
        before = {
            target.queue_id: QueueOffset(now)
            for target in targets
            if (now := self.queues[target.queue_id].now) is not None
        }
        state = ResetState.WAITING if self.needs_approval else ResetState.APPLIED
        self.orders.append(
            ResetOrderView(
                order_id=asked.order_id,
                topic=asked.topic,
                group=asked.group,
                broker_name=self.name,
                state=ResetState.MOVED if moved and not asked.is_forced else state,
                caller=asked.caller,
                caller_address="10.2.0.1:4000",
                reason=asked.reason,
                undoes=asked.undoes,
                is_forced=asked.is_forced,
                created_ms=T0 + len(self.orders),
                applied_ms=T0 + len(self.orders),
                is_broadcast=self.model is MessageModel.BROADCASTING,
                targets=targets,
                before=before,
                moved=moved,
                receipts=[],
            )
        )
        self._carry_out(self.orders[-1])
        return command.reply()

    def _carry_out(self, order: ResetOrderView) -> None:
        self.version += 1
        if order.state is ResetState.APPLIED:
            for target in order.targets:
                if self.model is MessageModel.CLUSTERING:
                    self.queues[target.queue_id].now = target.target
            order.receipts.extend(self._receipt(order, client) for client in self.clients)

    def _receipt(self, order: ResetOrderView, client: PlayedClient) -> ClientReceipt:
        is_there = client.does is ReceiptState.CONFIRMED
        return ClientReceipt(
            client_id=client.client_id,
            state=client.does,
            reason=client.reason,
            language=client.language,
            version="5.3.3",
            told_ms=T0,
            confirmed_ms=T0 if is_there else 0,
            queues=[
                QueueReceipt(
                    queue_id=target.queue_id,
                    old_offset=QueueOffset(
                        client.stands.get(target.queue_id, order.before.get(target.queue_id, 0))
                    ),
                    new_offset=target.target,
                )
                for target in (order.targets if is_there else ())
            ],
        )

    async def _orders(self, command: Command) -> Command:
        asked = command.header(GetResetOrdersRequest)
        if asked.wait_ms and asked.seen_version == self.version:
            if self.later:
                self.later.pop(0)()
            else:
                await asyncio.sleep(asked.wait_ms / 1000)
        found = [
            order
            for order in self.orders
            if asked.order_id in (None, order.order_id) and asked.group in (None, order.group)
        ]
        if asked.order_id is not None and not found:
            return command.reply(ResponseCode.QUERY_NOT_FOUND, remark="no such order")
        return command.reply(body=encode_body(ResetOrders(version=self.version, orders=found)))

    def _decide(self, command: Command) -> Command:
        asked = command.header(DecideResetRequest)
        (order,) = [order for order in self.orders if order.order_id == asked.order_id]
        if order.caller == asked.decider:
            return command.reply(ResponseCode.NO_PERMISSION, remark="another has to approve")
        told = msgspec.structs.replace(
            order,
            state=ResetState.APPLIED if asked.is_approved else ResetState.REJECTED,
            decider=asked.decider,
            decision_reason=asked.reason,
        )
        self.orders[self.orders.index(order)] = told
        self._carry_out(told)
        return command.reply()


class PlayedSite:
    """The name server, and the brokers of the topic, as what ``asking`` gives."""

    def __init__(self, *brokers: PlayedBroker, cluster: str = "DefaultCluster") -> None:
        for number, broker in enumerate(brokers, 1):
            broker.number = number
        self.brokers: Mapping[str, PlayedBroker] = {broker.address: broker for broker in brokers}
        self.cluster = cluster
        self.groups = {GROUP}

    async def ask(
        self,
        address: str,
        command: Command,
        *,
        timeout_s: float | None = None,
        connect_s: float | None = None,
    ) -> Command:
        await asyncio.sleep(0)
        if address == NAME_SERVER:
            answer = self._name(command)
        else:
            broker = self.brokers.get(address)
            if broker is None or not broker.is_up:
                raise ConnectFailed(address, "nobody is there")
            answer = await broker.answer(command)
        if answer.code != ResponseCode.SUCCESS:
            raise error_of(answer)
        return answer

    def _name(self, command: Command) -> Command:
        datas = [
            BrokerData(cluster=self.cluster, broker_name=broker.name, broker_addrs={0: address})
            for address, broker in self.brokers.items()
        ]
        if command.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            table = {data.broker_name: data for data in datas}
            return command.reply(
                body=encode_body(
                    ClusterInfo(broker_addr_table=table, cluster_addr_table={self.cluster: frozenset(table)})
                )
            )
        topic = command.header(GetRouteRequest).topic
        if topic not in {TOPIC, *(f"%RETRY%{group}" for group in self.groups)}:
            return command.reply(ResponseCode.TOPIC_NOT_EXIST, remark="no such topic")
        route = TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=broker.name,
                    read_queue_count=len(broker.queues),
                    write_queue_count=len(broker.queues),
                    perm=6,
                )
                for broker in self.brokers.values()
            ],
            broker_datas=datas,
        )
        return command.reply(body=encode_body(route))
