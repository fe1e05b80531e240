"""An open consumer: its parts, how they begin, and how they end."""

import logging
from datetime import datetime
from pathlib import Path

from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.handler_run import HandlerRun
from tanist.client.consuming.handling import Delivery, MessageHandler
from tanist.client.consuming.membership import Membership
from tanist.client.consuming.message_iterator import LoopsInHand
from tanist.client.consuming.orders import Orders
from tanist.client.consuming.resets import Resets
from tanist.client.consuming.retrying import RetryRules
from tanist.client.consuming.subscriptions import consume_from_where
from tanist.client.errors import NoRoute
from tanist.client.offsets.local_offsets import LocalOffsets
from tanist.client.offsets.offset_store import OffsetStore
from tanist.client.offsets.remote_offsets import RemoteOffsets
from tanist.client.pulling.fetching import Fetcher
from tanist.client.queues.rebalancing import Rebalancer
from tanist.client.session.session import Session
from tanist.client.settings import ClientSettings
from tanist.client.tracing.trace_sending import make_tracer
from tanist.model.groups import ConsumeType, MessageModel
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import TAG
from tanist.model.topics import RETRY_PREFIX
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.response_errors import TopicNotFound
from tanist.remoting import Handler

_log = logging.getLogger(__name__)

_SHARED_INSTANCE = "DEFAULT"
"""The instance of broadcasting consumers that are given none: the file of offsets is found by it again."""
_CANCEL_S = 1.0


class Consumption:
    """One consumer from ``open`` to ``close``."""

    def __init__(
        self,
        settings: ClientSettings,
        membership: Membership,
        rules: RetryRules,
        offsets_dir: Path | None,
        *,
        is_traced: bool,
    ) -> None:
        self._member = membership
        handlers: dict[int, Handler] = {}
        self.session = Session(
            settings,
            handlers=handlers,
            describe=self._describe,
            default_instance=_SHARED_INSTANCE if membership.is_broadcasting else None,
        )
        self.calls = BrokerCalls(self.session, membership.group)
        self.fetcher = Fetcher(self.session, membership.group)
        """For pulls by hand: those of the consumer itself have one of their own."""
        self._tracer = (
            make_tracer(self.session, group=membership.group, is_consumer=True) if is_traced else None
        )
        self.delivery = Delivery(
            self.calls, self.session.tasks, self.session.clock, rules, tracer=self._tracer
        )
        self.loops = LoopsInHand(self.delivery)
        self._offsets = self._make_offsets(offsets_dir)
        self.rebalancer = Rebalancer(self.session, self.calls, self._offsets, self.delivery, membership)
        self.owned = self.rebalancer.owned
        self._runs: list[HandlerRun] = []
        orders = Orders(
            self.rebalancer,
            Resets(self.rebalancer, self.calls, self.session.tasks, membership),
            self.session.tasks,
            self.session.clock,
            membership,
            find_handler=self._find_handler,
        )
        handlers.update(orders.handlers())

    async def open(self) -> None:
        """Join the group and take queues. Raises NoRoute for a topic that is not there, or NoPermission."""
        try:
            await self._check_topics()
            await self._offsets.load()
            # In this order: who is no member yet gets no queues.
            await self.session.heartbeats.join()
            self.session.open()
            if self._tracer is not None:
                self._tracer.open()
            await self.rebalancer.rebalance()
            self.rebalancer.start()
        except BaseException:
            await self._abandon()
            raise

    async def close(self, error: BaseException | None) -> None:
        """Let handlers end, keep the offsets, leave the group. ``error`` is what ended the block."""
        timeout_s = self.session.settings.timeout_s
        try:
            self.delivery.close()
            await self.rebalancer.stop(timeout_s)
            self.loops.end(error)
            queues = tuple(self.owned.by_queue.values())
            if not await self.delivery.wait_idle(queues, timeout_s):
                for run in self._runs:
                    run.cancel()
                await self.delivery.wait_idle(queues, _CANCEL_S)
            if self._tracer is not None:
                await self._tracer.close()
            await self.owned.drop_all()
            await self.session.heartbeats.leave(consumer_group=self._member.group)
        finally:
            for run in self._runs:
                run.cancel()
            await self._abandon()

    async def run(self, handler: MessageHandler, concurrency: int) -> None:
        self.loops.redeliver_left()
        run = HandlerRun(self.delivery, handler)
        self._runs.append(run)
        try:
            await run.run(concurrency)
        finally:
            self._runs.remove(run)

    async def offset_at(self, queue: MessageQueue, place: int | datetime) -> QueueOffset:
        """The offset that ``place`` stands for."""
        if isinstance(place, datetime):
            return await self.calls.offset_at(queue, int(place.timestamp() * 1000))
        return QueueOffset(place)

    async def _abandon(self) -> None:
        self.owned.abandon()
        await self.rebalancer.abandon()
        await self.session.close()

    async def _check_topics(self) -> None:
        for topic, subscription in self._member.subscriptions.items():
            if topic.startswith(RETRY_PREFIX):
                # The broker makes it when it hears of the group.
                continue
            try:
                await self.session.routes.find(topic)
            except TopicNotFound as error:
                raise NoRoute(
                    topic, "there is no such topic; create it, or send it a message first"
                ) from error
            if subscription.expression_type not in (TAG, None):
                await self.calls.check_subscription(subscription)

    def _make_offsets(self, offsets_dir: Path | None) -> OffsetStore:
        if self._member.is_broadcasting:
            return LocalOffsets.of_member(self.session.client_id, self._member.group, directory=offsets_dir)
        return RemoteOffsets(OffsetsAtBrokers(self.calls), self.session.clock)

    def _describe(self, client_id: str) -> HeartbeatData:
        member = self._member
        consumer = ConsumerData(
            group_name=member.group,
            consume_type=ConsumeType.PASSIVELY,
            message_model=MessageModel.BROADCASTING if member.is_broadcasting else MessageModel.CLUSTERING,
            consume_from_where=consume_from_where(member.start),
            subscription_data_set=list(member.subscriptions.values()),
        )
        return HeartbeatData(client_id=client_id, consumer_data_set=[consumer])

    def _find_handler(self) -> MessageHandler | None:
        return self._runs[-1].handler if self._runs else None


class OffsetsAtBrokers:
    """The brokers, as the store of offsets sees them."""

    def __init__(self, calls: BrokerCalls) -> None:
        self._calls = calls

    async def query(self, queue: MessageQueue) -> int | None:
        return await self._calls.query_offset(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        await self._calls.commit_offset(queue, QueueOffset(offset))
