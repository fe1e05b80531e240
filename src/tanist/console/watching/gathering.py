"""Asking the cluster: one question to a name server, and a bounded number to each broker.

A quick look asks each broker three things. A thorough one asks six more, three of them only of the broker
of a group that has its topics and offsets, and of that one what each group gave up on. Brokers that vanish
are remembered for a while, so that what is gone is seen.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from tanist.admin.cluster import (
    broker_config,
    broker_consume_stats,
    broker_epochs,
    cluster_info,
    group_configs,
    runtime_info,
    topic_configs,
    topic_stats,
)
from tanist.admin.replication import ha_status
from tanist.admin.roles import read_assignments
from tanist.admin.slave_consume import slave_consume_ledger, slave_consume_status
from tanist.client.session.wire import Wire
from tanist.clock import Clock
from tanist.console.watching.snapshot import (
    BrokerLook,
    BrokerTables,
    DeadLetterCount,
    Place,
    Snapshot,
    speaker_of,
)
from tanist.coord import open_registry
from tanist.errors import MQError, ResponseError
from tanist.log import ToldFailures
from tanist.model.reading import Assigned
from tanist.model.route import ClusterInfo
from tanist.model.topics import DLQ_PREFIX, TopicConfig
from tanist.protocol.bodies.stats import TopicStatsTable

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

QUICK_CALLS, TABLE_CALLS = 3, 6
"""How many questions a broker is asked at most in a quick look, and besides in a thorough one."""
MAX_DEAD_LETTER_TOPICS = 32
"""Of so many groups a thorough look asks what they gave up on, a question each."""
LEDGER_ENTRIES = 50
REMEMBERED_MS = 10 * 60_000
_AT_A_TIME = 8
_NAME_SERVER_S = 2.0
_REGISTRY_S = 3.0


class Gatherer:
    """Looks at a cluster again and again, and remembers what it has seen."""

    def __init__(
        self, wire: Wire, name_servers: Sequence[str], clock: Clock, *, coordinator: str | None = None
    ) -> None:
        self._wire = wire
        self._coordinator = coordinator
        self._name_servers = list(name_servers)
        self._clock = clock
        self._places: dict[str, Place] = {}
        self._before: dict[str, BrokerLook] = {}
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self._told = ToldFailures()
        self._calls = 0

    async def look(self, *, is_thorough: bool) -> Snapshot:
        """Ask everybody. Never raises for what others do: that is part of what was seen."""
        self._calls = 0
        now_ms = self._clock.now_ms()
        info, failure = await self._ask_name_servers()
        self._place(info, now_ms)
        if is_thorough and self._coordinator is not None:
            await self._ask_registry(self._coordinator, now_ms)
        places = list(self._places.values())
        looks = list(await asyncio.gather(*(self._look_at(place) for place in places)))
        self._learn(looks, now_ms)
        if is_thorough:
            looks = list(await asyncio.gather(*(self._add_tables(look, looks) for look in looks)))
        self._before = {look.address: look for look in looks}
        return Snapshot(
            taken_ms=now_ms,
            name_server=self._name_servers[0],
            name_servers=tuple(self._name_servers),
            failure=failure,
            brokers=tuple(sorted(looks, key=lambda look: (look.name, look.broker_id, look.address))),
            call_count=self._calls,
        )

    async def _ask_name_servers(self) -> tuple[ClusterInfo | None, str | None]:
        """The first answer; who gave it is asked first from now on."""
        failures: list[str] = []
        for name_server in list(self._name_servers):
            try:
                asked = cluster_info(self._wire, name_server, timeout_s=_NAME_SERVER_S)
                info = await self._counted(asked)
            except MQError as error:
                failures.append(str(error))
                continue
            self._name_servers.remove(name_server)
            self._name_servers.insert(0, name_server)
            if self._told.is_over("name servers"):
                _log.info("name server answers again address=%s", name_server)
            return info, None
        failure = "; ".join(failures)
        if self._told.is_news("name servers", failure):
            _log.warning("no name server answers reason=%s", failure)
        return None, failure

    def _place(self, info: ClusterInfo | None, now_ms: int) -> None:
        """Note who is listed; who is not any more stays for a while."""
        if info is None:
            return
        self._places = {
            address: replace(place, is_registered=False)
            for address, place in self._places.items()
            if now_ms - place.seen_ms < REMEMBERED_MS
        }
        for name, data in info.broker_addr_table.items():
            for broker_id, address in data.broker_addrs.items():
                self._places[address] = Place(
                    address=address, name=name, broker_id=broker_id, cluster=data.cluster, seen_ms=now_ms
                )

    async def _ask_registry(self, coordinator: str, now_ms: int) -> None:
        """Note the brokers that are assigned a role: a group that nobody of is read is in no route."""
        try:
            async with asyncio.timeout(_REGISTRY_S), open_registry(coordinator) as registry:
                assignments = await self._counted(read_assignments(registry))
        except (MQError, TimeoutError) as error:
            if self._told.is_news("registry", str(error)):
                _log.warning("registry does not answer reason=%s", error or "timeout")
            return
        self._told.is_over("registry")
        for assignment in assignments:
            neighbour = Place(address="", name=assignment.group, broker_id=0, cluster="")
            for assigned in assignment.brokers:
                if assigned.address not in self._places:
                    self._places[assigned.address] = _unlisted(assigned, neighbour, now_ms)

    def _learn(self, looks: Sequence[BrokerLook], now_ms: int) -> None:
        """Note who is alive though nobody lists it, and whom brokers know beside those that are listed."""
        for look in looks:
            if look.is_up:
                self._places[look.address] = replace(look.place, seen_ms=now_ms)
            for assigned in () if look.slave_consume is None else look.slave_consume.brokers:
                if assigned.address not in self._places:
                    self._places[assigned.address] = _unlisted(assigned, look.place, now_ms)

    async def _look_at(self, place: Place) -> BrokerLook:
        before = self._before.get(place.address)
        tables = BrokerTables() if before is None else before.tables
        async with self._turns:
            try:
                runtime = await self._counted(runtime_info(self._wire, place.address))
            except MQError as error:
                # What was known of it stays to be seen: its role, its ledger.
                known = BrokerLook(place=place) if before is None else before
                return replace(known, place=place, failure=str(error), runtime={}, tables=tables)
            ha = await self._optional(ha_status(self._wire, place.address))
            status, reason = None, None
            try:
                status = await self._counted(slave_consume_status(self._wire, place.address))
            except MQError as error:
                reason = error.remark if isinstance(error, ResponseError) else str(error)
        return BrokerLook(
            place=place,
            runtime=runtime,
            ha=ha,
            slave_consume=status,
            no_slave_consume=reason,
            tables=tables,
        )

    async def _add_tables(self, look: BrokerLook, looks: Sequence[BrokerLook]) -> BrokerLook:
        if not look.is_up:
            return look
        group = [other for other in looks if other.name == look.name]
        speaker = speaker_of(group)
        async with self._turns:
            return replace(
                look, tables=await self._tables_of(look, is_speaker=speaker is None or speaker is look)
            )

    async def _tables_of(self, look: BrokerLook, *, is_speaker: bool) -> BrokerTables:
        wire, address, old = self._wire, look.address, look.tables
        is_controlled = look.ha is not None and look.ha.controlled is not None
        ledger, epochs = old.ledger, old.epochs
        config = await self._optional(broker_config(wire, address))
        if is_controlled:
            epochs = await self._optional(broker_epochs(wire, address))
        if look.slave_consume is not None:
            ledger = await self._optional(slave_consume_ledger(wire, address, LEDGER_ENTRIES))
        if not is_speaker:
            return BrokerTables(config=config, epochs=epochs, ledger=ledger)
        topics = await self._optional(topic_configs(wire, address)) or old.topics
        return BrokerTables(
            config=config,
            epochs=epochs,
            ledger=ledger,
            topics=topics,
            groups=await self._optional(group_configs(wire, address)) or old.groups,
            consume=await self._optional(broker_consume_stats(wire, address)) or old.consume,
            dead_letters=await self._dead_letters(address, topics),
        )

    async def _dead_letters(
        self, address: str, topics: Mapping[str, TopicConfig]
    ) -> dict[str, DeadLetterCount]:
        """By group, what it gave up on. Only groups that ever did have a topic for it."""
        found: dict[str, DeadLetterCount] = {}
        names = sorted(topic for topic in topics if topic.startswith(DLQ_PREFIX))
        for topic in names[:MAX_DEAD_LETTER_TOPICS]:
            stats = await self._optional(topic_stats(self._wire, address, topic))
            if stats is not None:
                found[topic.removeprefix(DLQ_PREFIX)] = _count(stats)
        return found

    async def _optional(self, asked: Awaitable[_T]) -> _T | None:
        """The answer, or nothing: brokers of RocketMQ do not know all questions."""
        try:
            return await self._counted(asked)
        except MQError:
            return None

    async def _counted(self, asked: Awaitable[_T]) -> _T:
        self._calls += 1
        return await asked


def _count(stats: TopicStatsTable) -> DeadLetterCount:
    queues = stats.offset_table.values()
    return DeadLetterCount(
        kept_count=sum(queue.max_offset - queue.min_offset for queue in queues),
        total_count=sum(queue.max_offset for queue in queues),
        last_ms=max((queue.last_update_timestamp_ms for queue in queues), default=0),
    )


def _unlisted(assigned: Assigned, neighbour: Place, now_ms: int) -> Place:
    return Place(
        address=assigned.address,
        name=neighbour.name,
        broker_id=assigned.broker_id,
        cluster=neighbour.cluster,
        is_registered=False,
        seen_ms=now_ms,
    )
