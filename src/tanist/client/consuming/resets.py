"""Carries out orders to go to other offsets, and gives receipts for those that ask for one.

RocketMQ's brokers send a table of offsets and hear nothing more of it. Ours give an order an id, and are told
when this member has moved, or why it has not, and once more when it has taken the first message after that.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import suppress

from tanist.backoff import Backoff
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.membership import Membership
from tanist.client.consuming.reset_order import KnownOrders, OrderKey, ResetOrder
from tanist.client.errors import ClientClosed
from tanist.client.queues.rebalancing import Rebalancer
from tanist.client.session.tasks import OwnedTasks
from tanist.errors import MQError, ResponseError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import OffsetTable
from tanist.protocol.command import Command
from tanist.protocol.headers.reset import ResetOffsetRequest
from tanist.protocol.java_json import decode_java_json
from tanist.remoting import Connection

_log = logging.getLogger(__name__)

_MAX_RESETS = 16
"""Resets that may wait for each other. More are refused: whoever orders them does not wait for us."""
_RECEIPT_TRIES = 8
_GATHER_S = 0.2
"""First messages of several queues are told of together."""


class Resets:
    """The resets of one consumer."""

    def __init__(
        self, rebalancer: Rebalancer, calls: BrokerCalls, tasks: OwnedTasks, membership: Membership
    ) -> None:
        self._rebalancer = rebalancer
        self._calls = calls
        self._tasks = tasks
        self._member = membership
        self._orders = KnownOrders()
        self._count = 0
        self._due: set[OrderKey] = set()
        """Orders of which there is something new to tell."""
        self._telling: set[OrderKey] = set()

    def on_order(self, command: Command, connection: Connection) -> None:
        """A broker orders a reset. It waits for no answer."""
        request = command.header(ResetOffsetRequest)
        _log.info(
            "invoke reset offset operation from broker broker=%s topic=%s group=%s timestamp=%d order=%s",
            connection.peer,
            request.topic,
            request.group,
            request.timestamp_ms,
            request.order_id,
        )
        if request.group != self._member.group:
            return
        targets = {
            queue: offset
            for queue, offset in decode_java_json(command.body, OffsetTable).offset_table.items()
            if queue.topic == request.topic and offset >= 0
        }
        if request.order_id is None or not targets:
            if request.topic in self._member.subscriptions:
                self._start(targets)
            return
        epoch = request.master_epoch or 0
        if self._orders.is_late(next(iter(targets)).broker_name, epoch):
            _log.warning(
                "reset passed over, a newer master has told orders since broker=%s order=%s epoch=%d",
                *(connection.peer, request.order_id, epoch),
            )
            return
        self._on_order(request.order_id, targets, applied_ms=request.applied_ms, epoch=epoch)

    def _on_order(
        self, order_id: str, targets: Mapping[MessageQueue, QueueOffset], *, applied_ms: int, epoch: int
    ) -> None:
        named = next(iter(targets))
        key = OrderKey(order_id, named.topic, named.broker_name, applied_ms)
        order = self._orders.find(key)
        if order is None:
            order = ResetOrder(order_id, named.topic, named.broker_name, dict(targets), applied_ms, epoch)
            self._orders.add(order)
        else:
            order.on_teller(epoch)
            if order.is_running:
                return
            if not order.left:
                self._tell_soon(order)
                return
        order.on_told(targets)
        self._orders.give_way(order)
        if order.topic not in self._member.subscriptions:
            # Another member of the group reads it, and nothing of it is ours.
            order.on_moves([])
            self._tell_soon(order)
        elif not self._start(order.left, order):
            order.on_failure(f"{_MAX_RESETS} resets are under way already")
            self._tell_soon(order)

    def _start(self, targets: Mapping[MessageQueue, QueueOffset], order: ResetOrder | None = None) -> bool:
        if self._count >= _MAX_RESETS:
            _log.warning("reset refused, too many are under way group=%s", self._member.group)
            return False
        self._count += 1
        self._rebalancer.tasks.start(self._reset(targets, order), "reset offsets")
        return True

    async def _reset(self, targets: Mapping[MessageQueue, QueueOffset], order: ResetOrder | None) -> None:
        def on_first_taken(queue: MessageQueue, offset: QueueOffset) -> None:
            assert order is not None
            order.on_first_taken(queue, offset)
            self._tell_soon(order, after_s=_GATHER_S)

        try:
            with suppress(ClientClosed):
                moves = await self._rebalancer.reset(targets, None if order is None else on_first_taken)
                failed = [move for move in moves if move.failure]
                for move in failed:
                    _log.warning("queue not reset queue=%s reason=%s", move.queue, move.failure)
                if order is not None:
                    order.on_moves(moves)
                    self._tell_soon(order)
        except Exception as error:
            # A strategy is the program's own and may raise anything.
            if order is None:
                raise
            _log.exception("reset failed group=%s order=%s", self._member.group, order.order_id)
            order.on_failure(repr(error))
            self._tell_soon(order)
        finally:
            self._count -= 1

    def _tell_soon(self, order: ResetOrder, *, after_s: float = 0.0) -> None:
        self._due.add(order.key)
        if order.key not in self._telling:
            self._telling.add(order.key)
            self._tasks.start(self._tell(order, after_s), "reset receipt")

    async def _tell(self, order: ResetOrder, after_s: float) -> None:
        try:
            while order.key in self._due:
                await asyncio.sleep(after_s)
                self._due.discard(order.key)
                await self._send_receipt(order)
                after_s = _GATHER_S
        finally:
            self._telling.discard(order.key)

    async def _send_receipt(self, order: ResetOrder) -> None:
        """Have the broker know. If that fails it tells the order again, and is answered then."""
        backoff = Backoff()
        for tries_left in reversed(range(_RECEIPT_TRIES)):
            try:
                await self._calls.send_receipt(order.key, order.receipt())
            except MQError as error:
                if not tries_left or (isinstance(error, ResponseError) and not error.retriable):
                    _log.warning("no receipt for a reset order=%s error=%s", order.order_id, error)
                    return
            else:
                return
            await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311
