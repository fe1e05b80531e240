"""Questions about orders to move groups: what became of them (20008), and where clients stand (223)."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from tanist.broker.late import send_late
from tanist.broker.resets.carrying import ASK_PATIENCE_S
from tanist.broker.state import BrokerState
from tanist.errors import MQError, RemotingError, ResponseError
from tanist.model.names import shown
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.reset import ResetOrders
from tanist.protocol.bodies.running import ConsumerStatus
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import TopicGroupRequest
from tanist.protocol.headers.reset import GetResetOrdersRequest, InvokeConsumerStatusRequest
from tanist.protocol.java_json import ObjectKeyed
from tanist.remoting import Connection, Handler

MAX_WAITING = 64
MAX_WAIT_MS = 30_000
MAX_ANSWER_BYTES = 12 << 20


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ResetQuestionHandler(state)
    return {
        RequestCode.GET_RESET_ORDERS: handler.get_orders,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: handler.get_standings,
    }


class ResetQuestionHandler:
    """Answers those who want to know."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._waiters = _Waiters(state)
        self._asking_count = 0

    def get_orders(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(GetResetOrdersRequest)
        if request.order_id is not None and self._state.resets.find(request.order_id) is None:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND,
                f"order {shown(request.order_id)} is not known to this broker: it was never given here, was "
                "dropped to make room, or was given to another replica of the group",
            )
        if request.seen_version < self._state.resets.version or request.wait_ms <= 0:
            return command.reply(body=_orders_body(self._state, request))
        self._waiters.add(command.without_content(), connection, request)
        return None

    def get_standings(self, command: Command, connection: Connection) -> None:
        """Ask all members where they stand, or one, which the field for an address names by its id."""
        request = command.header(InvokeConsumerStatusRequest)
        group = self._state.clients.find_group(request.group)
        clients = [] if group is None else [member.client for member in group.members.values()]
        if request.client_addr:
            clients = [client for client in clients if client.client_id == request.client_addr]
        if not clients:
            whom = f" {shown(request.client_addr)}" if request.client_addr else ""
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"group {shown(request.group)} has no consumer{whom} online"
            )
        if self._asking_count >= MAX_WAITING:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD] too many questions wait for clients")
        header = TopicGroupRequest(topic=request.topic, group=request.group)
        asked: dict[str, Awaitable[Command]] = {}
        for client in clients:
            question = Command.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header)
            with suppress(RemotingError):
                asked[client.client_id] = client.connection.request(question, ASK_PATIENCE_S)
        self._asking_count += 1
        kept = command.without_content()

        def on_answers(done: asyncio.Future[list[Command | BaseException]]) -> None:
            self._asking_count -= 1
            if done.cancelled():
                return
            table = {
                client_id: standing
                for client_id, answer in zip(asked, done.result(), strict=True)
                if (standing := _standing(answer)) is not None
            }
            send_late(kept, connection, kept.reply(body=encode_body(ConsumerStatus(consumer_table=table))))

        gathered = asyncio.gather(*asked.values(), return_exceptions=True)
        gathered.add_done_callback(on_answers)


class _Waiters:
    """Questions for orders that are answered when one has changed, or their time is over."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._waiting: dict[int, tuple[Command, Connection, GetResetOrdersRequest, asyncio.TimerHandle]] = {}
        self._next_number = 0
        self._is_due = False

    def add(self, kept: Command, connection: Connection, request: GetResetOrdersRequest) -> None:
        if len(self._waiting) >= MAX_WAITING:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD] too many questions wait for orders")
        if not self._waiting:
            self._state.resets.listeners.append(self._on_change)
        self._next_number += 1
        number = self._next_number
        wait_s = min(request.wait_ms, MAX_WAIT_MS) / 1000
        timer = asyncio.get_running_loop().call_later(wait_s, self._answer, number)
        self._waiting[number] = (kept, connection, request, timer)

    def _on_change(self) -> None:
        if self._waiting and not self._is_due:
            # Once a turn: a hundred clients may confirm in one.
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._answer_all)

    def _answer_all(self) -> None:
        self._is_due = False
        for number in [*self._waiting]:
            self._answer(number)

    def _answer(self, number: int) -> None:
        found = self._waiting.pop(number, None)
        if found is None:
            return
        if not self._waiting:
            self._state.resets.listeners.remove(self._on_change)
        kept, connection, request, timer = found
        timer.cancel()
        if connection.is_open:
            send_late(kept, connection, kept.reply(body=_orders_body(self._state, request)))


def _orders_body(state: BrokerState, request: GetResetOrdersRequest) -> bytes:
    """The orders that are asked for. Queues of receipts are told of one order, and left out of a list."""
    table = state.resets
    one = request.order_id is not None
    found = [
        order
        for order in table.orders()
        if request.order_id in (None, order.order_id)
        and request.group in (None, order.record.group)
        and request.topic in (None, order.record.topic)
    ]
    views = [order.view(has_queues=one) for order in found]
    while len(body := encode_body(ResetOrders(version=table.version, orders=views))) > MAX_ANSWER_BYTES:
        if len(views) == 1:
            views = [order.view(has_queues=False) for order in found[-1:]]
            return encode_body(ResetOrders(version=table.version, orders=views))
        views = views[(len(views) + 1) // 2 :]
    return body


def _standing(answer: Command | BaseException) -> ObjectKeyed[MessageQueue, QueueOffset] | None:
    """None of a client that did not answer, or refused."""
    if isinstance(answer, BaseException) or answer.code != ResponseCode.SUCCESS:
        return None
    try:
        return decode_java_json(answer.body, ConsumerStatus).queue_table
    except MQError:
        return None
