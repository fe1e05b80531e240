"""One member of a group around the real consumer: its queues, pulls, offsets, and what it does of orders."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.consumption import OffsetsAtBrokers
from tanist.client.consuming.handling import Delivery
from tanist.client.consuming.membership import Membership
from tanist.client.consuming.orders import Orders
from tanist.client.consuming.retrying import RetryRules
from tanist.client.consuming.subscriptions import Start
from tanist.client.errors import ClientClosed, NoRoute
from tanist.client.offsets.local_offsets import LocalOffsets
from tanist.client.offsets.offset_file import Kept, OffsetFile, Offsets
from tanist.client.offsets.offset_store import OffsetStore
from tanist.client.offsets.remote_offsets import RemoteOffsets
from tanist.client.pulling.pull_pace import PullBounds
from tanist.client.queues.allocation import Averagely
from tanist.client.queues.queue_move import FirstTaken, QueueMove
from tanist.client.queues.rebalancing import Rebalancer
from tanist.client.session.heartbeats import Heartbeats
from tanist.client.session.nameservers import NameServers
from tanist.client.session.readers import Readers
from tanist.client.session.route_keeper import RouteKeeper
from tanist.client.session.session import Session
from tanist.client.session.tasks import OwnedTasks
from tanist.client.settings import ClientSettings
from tanist.errors import MQError
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue, TopicRouteData
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.command import Command
from tanist.sim.clockwork import Process
from tanist.sim.loop import PlayedClock
from tanist.sim.reset.around import Around
from tanist.sim.reset.broker import PlayedBroker
from tanist.sim.reset.links import End, Place, PlayedWire

NAME_SERVER = "names"
_TIMEOUT_S = 3.0
_AGAIN_S = 1.0
_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Kind:
    """What a group is: which topics it reads, and how."""

    group: str
    topics: tuple[str, ...]
    is_broadcasting: bool
    is_orderly: bool


class PlayedMember:
    """One member, through all its lives."""

    def __init__(self, around: Around, kind: Kind, name: str, brokers: dict[str, PlayedBroker]) -> None:
        self.around = around
        self.kind = kind
        self.place = Place(Process(name))
        self.wants_to_run = False
        self.work_s = (0.01, 0.1)
        """How long its program works on a message."""
        self._brokers = brokers
        self._file = _File()
        self._session: _Session | None = None
        self.rebalancer: _Rebalancer | None = None

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def is_there(self) -> bool:
        return self.place.process.is_up and self.wants_to_run

    def start(self) -> None:
        self.wants_to_run = True
        loop = self.place.begin(self.around.clockwork)
        loop.call_soon(lambda: loop.create_task(self._run()))

    def kill(self) -> None:
        self.wants_to_run = False
        self.place.die()

    def leave(self) -> None:
        """Go, as a program that ends its consumer."""
        self.wants_to_run = False
        if self.place.loop is not None and self.place.process.is_up:
            loop = self.place.loop
            loop.call_soon(lambda: loop.create_task(self._close()))

    def owned(self) -> Mapping[MessageQueue, int]:
        """Its queues, and where it stands in each."""
        if self.rebalancer is None:
            return {}
        owned = self.rebalancer.owned.by_queue
        return {queue: each.cached.consumer_offset for queue, each in owned.items() if not each.is_dropped}

    async def _run(self) -> None:
        while True:
            session = self._session = _Session(self)
            self._open(session)
            try:
                await self._join(session)
            except MQError:
                await session.tasks.close()
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    def _open(self, session: "_Session") -> None:
        kind = self.kind
        member = Membership(
            group=kind.group,
            subscriptions=_subscriptions(kind),
            is_broadcasting=kind.is_broadcasting,
            is_orderly=kind.is_orderly,
            start=Start.FIRST,
            strategy=Averagely(),
            prefetch=PullBounds(count=32, size_bytes=1 << 20),
        )
        as_session = cast("Session", session)
        self.calls = BrokerCalls(as_session, kind.group)
        rules = RetryRules(is_orderly=kind.is_orderly, is_broadcasting=kind.is_broadcasting, max_retries=3)
        self.delivery = Delivery(self.calls, session.tasks, session.clock, rules)
        self.offsets = self._make_offsets(session)
        self.rebalancer = _Rebalancer(as_session, self.calls, self.offsets, self.delivery, member)
        self.rebalancer.played = self
        resets = self.around.machines.resets(self.rebalancer, self.calls, session.tasks, member)
        orders = Orders(
            self.rebalancer, resets, session.tasks, session.clock, member, find_handler=lambda: None
        )
        session.handlers.update(orders.handlers())

    async def _join(self, session: "_Session") -> None:
        """As an open consumer does."""
        assert self.rebalancer is not None
        for topic in self.kind.topics:
            await session.routes.find(topic)
        await self.offsets.load()
        await session.heartbeats.join()
        session.routes.start()
        session.heartbeats.start()
        await self.rebalancer.rebalance()
        self.rebalancer.start()
        for _ in range(_WORKERS):
            session.tasks.start(self._work(), "work")

    async def _close(self) -> None:
        session, rebalancer = self._session, self.rebalancer
        if session is not None and rebalancer is not None:
            self.delivery.close()
            await rebalancer.stop(_TIMEOUT_S)
            await self.delivery.wait_idle(tuple(rebalancer.owned.by_queue.values()), _TIMEOUT_S)
            await rebalancer.owned.drop_all()
            await session.heartbeats.leave(consumer_group=self.kind.group)
            rebalancer.owned.abandon()
            await session.tasks.close()
        self.around.clockwork.after(0.0, self.place.die, process=self.place.process)

    async def _work(self) -> None:
        chance = self.around.chance
        while True:
            try:
                taken = await self.delivery.take()
            except ClientClosed:
                return
            owned, message = taken
            self.around.rules.on_taken(self.kind.group, self.name, owned.queue, message.queue_offset)
            await asyncio.sleep(chance.uniform(*self.work_s))
            self.delivery.done(taken)

    def _make_offsets(self, session: "_Session") -> OffsetStore:
        if self.kind.is_broadcasting:
            return _LocalOffsets(self._file)
        return RemoteOffsets(OffsetsAtBrokers(self.calls), session.clock)

    def describe(self) -> HeartbeatData:
        kind = self.kind
        model = MessageModel.BROADCASTING if kind.is_broadcasting else MessageModel.CLUSTERING
        consumer = ConsumerData(
            group_name=kind.group,
            consume_type=ConsumeType.PASSIVELY,
            message_model=model,
            consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
            subscription_data_set=list(_subscriptions(kind).values()),
        )
        return HeartbeatData(client_id=self.name, consumer_data_set=[consumer])

    def broker(self, address: str) -> Place:
        return self._brokers[address].place


def _subscriptions(kind: Kind) -> dict[str, SubscriptionData]:
    return {topic: SubscriptionData(topic=topic, sub_version=1) for topic in kind.topics}


class _Session:
    """A client's presence, as ``tanist.client.session.Session`` makes it, on connections that are played."""

    def __init__(self, member: PlayedMember) -> None:
        around = member.around
        self.client_id = member.name
        self.clock = PlayedClock(around.clockwork)
        self.settings = ClientSettings(namesrv=(NAME_SERVER,), timeout_s=_TIMEOUT_S, clock=self.clock)
        self.tasks = OwnedTasks()
        self.handlers: dict[int, Any] = {}
        self.wire = PlayedWire(
            self.settings,
            member.place,
            member.broker,
            around.cables,
            on_connect=self._on_connect,
            on_disconnect=self._on_disconnect,
        )
        member.place.on_command = self._on_command
        self.routes = RouteKeeper(
            _NameServers(around, member.name), self.tasks, poll_s=self.settings.route_poll_s
        )
        self.heartbeats = Heartbeats(
            self.wire,
            self.routes.table,
            self.tasks,
            describe=member.describe,
            period_s=self.settings.heartbeat_s,
        )
        self.readers = Readers(self.wire, self.routes, self.heartbeats, self.tasks, clock=self.clock)
        self.routes.on_change(lambda _topic: self.heartbeats.soon())

    def _on_connect(self, address: str) -> None:
        self.heartbeats.meet(address)
        self.routes.reached(address)

    def _on_disconnect(self, address: str) -> None:
        self.heartbeats.forget(address)
        self.routes.lost(address)

    def _on_command(self, end: End, command: Command) -> None:
        handler = self.handlers.get(command.code)
        answer = None if handler is None else handler(command, end)
        if answer is not None and not command.is_one_way:
            end.send(answer)


class _NameServers(NameServers):
    """One name server, which can be cut off."""

    def __init__(self, around: Around, member: str) -> None:
        self._around = around
        self._member = member

    async def route_of(self, topic: str) -> TopicRouteData:
        await asyncio.sleep(self._around.chance.uniform(0.005, 0.05))
        if (self._member, NAME_SERVER) in self._around.cables.cut:
            raise NoRoute(topic, "no name server answers")
        return self._around.route()


class _Rebalancer(Rebalancer):
    """Tells where its member is moved."""

    played: PlayedMember

    async def reset(
        self, targets: Mapping[MessageQueue, QueueOffset], on_first_taken: FirstTaken | None = None
    ) -> list[QueueMove]:
        moves = await super().reset(targets, on_first_taken)
        member = self.played
        life = (member.name, member.place.process.life)
        member.around.rules.on_moved(member.kind.group, life, [move for move in moves if not move.failure])
        return moves


class _File(OffsetFile):
    """A broadcasting member's file, which outlives its process."""

    def __init__(self) -> None:
        self._offsets: Offsets = {}
        self.path = Path("offsets.json")

    @contextmanager
    def locked(self) -> Generator[None]:
        yield

    def read(self) -> Kept:
        return Kept({**self._offsets}, b"")

    def write(self, offsets: Mapping[MessageQueue, QueueOffset], before: Kept) -> None:  # noqa: ARG002
        self._offsets = {**offsets}


class _LocalOffsets(LocalOffsets):
    """The offsets of a broadcasting member, in a file that is played."""

    def __init__(self, file: _File) -> None:
        super().__init__(file.path)
        self._file = file
