"""What the handlers of pages and REST work with, and the questions both ask."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tanist.admin.cluster import consumer_connections, topic_route, topic_stats
from tanist.admin.groups import all_producers
from tanist.admin.message_search import Holder, groups_of
from tanist.client.session.wire import Wire
from tanist.clock import Clock
from tanist.console.access.audit import AuditEntry, AuditLog
from tanist.console.access.login_limit import LoginLimit
from tanist.console.access.sessions import SessionStore
from tanist.console.access.users import Users
from tanist.console.alarm_desk import AlarmDesk
from tanist.console.certificates import CertificateDesk
from tanist.console.change_desk import ChangeDesk
from tanist.console.errors import NotSeenYet, Unknown
from tanist.console.message_desk import MessageDesk
from tanist.console.page_watch import Ask, PageWatch
from tanist.console.reset_desk import ResetDesk
from tanist.console.views.brokers import BrokerPage, broker_page
from tanist.console.views.groups import GroupPage, group_page, groups_of_topic, is_known_group
from tanist.console.views.replication import Replication, replication_view
from tanist.console.views.topics import TopicPage, topic_page, topic_row
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.role_changes import RoleWatch
from tanist.console.watching.snapshot import BrokerLook, Snapshot
from tanist.console.watching.watcher import Watcher
from tanist.errors import MQError, ResponseError
from tanist.up.control import Act, ClusterState, Order, give_order

_T = TypeVar("_T")

_FIRST_LOOK_S = 5.0


@dataclass(slots=True)
class Desk:
    """One console."""

    wire: Wire
    watcher: Watcher
    lookups: Lookups
    users: Users
    sessions: SessionStore
    limit: LoginLimit
    audit: AuditLog
    resets: ResetDesk
    clock: Clock
    control: Path | None = None
    """Where the cluster takes orders that ``tanist up`` runs; None if it is another one."""
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    """Passwords are checked two at a time: each check takes 16 MiB."""
    certificates: CertificateDesk | None = None
    """None if no folder of results was given."""
    alarms: AlarmDesk = field(default_factory=AlarmDesk)
    roles: RoleWatch = field(default_factory=RoleWatch)
    messages: MessageDesk = field(init=False)
    changes: ChangeDesk = field(init=False)

    def __post_init__(self) -> None:
        self.messages = MessageDesk(self.wire, self.lookups, self.clock)
        self.changes = ChangeDesk(self.wire, self.clock)
        self.watcher.observe(self.alarms.on_snapshot)
        self.watcher.observe(self._on_roles)
        self.watcher.observe(PageWatch(self._pages(), is_open=self.watcher.is_open).on_snapshot)

    def _pages(self) -> dict[str, Ask]:
        """The pages whose data is in no look at the cluster."""
        pages: dict[str, Ask] = {
            "resets": lambda snapshot: self.resets.list(name_server=snapshot.name_server),
            "audit": self._audited,
        }
        if self.control is not None:
            pages["machine"] = lambda _: self.order(Act.STATUS)
        if (certificates := self.certificates) is not None:
            pages["certificates"] = lambda _: asyncio.to_thread(certificates.list)
        return pages

    async def _audited(self, _snapshot: Snapshot) -> list[AuditEntry]:
        return self.audit.last

    async def _on_roles(self, snapshot: Snapshot) -> dict[str, str]:
        self.roles.on_snapshot(snapshot)
        return {}

    async def replication(self) -> Replication:
        return replication_view(await self.snapshot(), self.roles.changes)

    async def snapshot(self) -> Snapshot:
        """What was seen last. Raises NotSeenYet."""
        self.watcher.touch()
        if self.watcher.snapshot is None:
            await self.watcher.wait_first(_FIRST_LOOK_S)
        if self.watcher.snapshot is None:
            raise NotSeenYet("the cluster was not looked at yet; try again in a moment")
        return self.watcher.snapshot

    async def broker(self, address: str) -> BrokerPage:
        page = broker_page(await self.snapshot(), address)
        if page is None:
            raise Unknown(f"no broker at {address} is listed, or was in the last minutes")
        return page

    async def topic(self, topic: str) -> TopicPage:
        """One topic: a question to the name server, and three to each replica group that has it."""
        snapshot = await self.snapshot()
        row = topic_row(snapshot, topic)
        if row is None:
            raise Unknown(f"no broker has a topic {topic}")
        speakers = [look for look in snapshot.speakers() if topic in look.tables.topics]
        route = await self._told(
            ("route", topic), lambda: topic_route(self.wire, snapshot.name_server, topic)
        )
        stats = await asyncio.gather(
            *(
                self._told(
                    ("stats", look.address, topic),
                    lambda look=look: topic_stats(self.wire, look.address, topic),
                )
                for look in speakers
            )
        )
        tables = dict(zip((look.name for look in speakers), stats, strict=True))
        groups = sorted({*groups_of_topic(snapshot, topic), *await self._consuming(speakers, topic)})
        producers = await self._producers(speakers)
        return topic_page(snapshot, row, route, tables, groups=groups, producers=producers)

    async def _consuming(self, brokers: Sequence[BrokerLook], topic: str) -> set[str]:
        """The groups that these have members or offsets of in a topic, as far as they tell."""
        told = await asyncio.gather(
            *(
                self._told(
                    ("consuming", look.address, topic),
                    lambda look=look: groups_of(self.wire, Holder(look.name, look.address), topic),
                )
                for look in brokers
            )
        )
        return {group for groups in told if not isinstance(groups, str) for group in groups}

    async def _producers(self, brokers: Sequence[BrokerLook]) -> list[str]:
        """The producer groups that are connected to these, as far as they tell."""
        told = await asyncio.gather(
            *(
                self._told(
                    ("producers", look.address), lambda look=look: all_producers(self.wire, look.address)
                )
                for look in brokers
            )
        )
        return sorted({group for table in told if not isinstance(table, str) for group in table.producers})

    async def group(self, group: str) -> GroupPage:
        """One group: a question to each replica group."""
        snapshot = await self.snapshot()
        unknown = Unknown(f"no broker knows a group {group}")
        if not is_known_group(snapshot, group):
            # Before the brokers are asked: anybody can make up names.
            raise unknown
        speakers = list(snapshot.speakers())
        members = await asyncio.gather(
            *(
                self._told(
                    ("members", look.address, group),
                    lambda look=look: consumer_connections(self.wire, look.address, group),
                )
                for look in speakers
            )
        )
        page = group_page(snapshot, group, dict(zip((look.name for look in speakers), members, strict=True)))
        if page is None:
            raise unknown
        return page

    async def order(self, act: Act, whom: str = "") -> ClusterState:
        """Ask or order the cluster that ``tanist up`` runs. Raises Unknown if it is another one."""
        if self.control is None:
            raise Unknown("this cluster was not started by tanist up")
        return await give_order(self.control, Order(act=act, whom=whom))

    async def _told(self, question: tuple[str, ...], ask: Callable[[], Awaitable[_T]]) -> _T | str:
        """The answer, or why there is none: a page shows what it has."""
        try:
            return await self.lookups.find(question, ask)
        except ResponseError as error:
            return error.remark
        except MQError as error:
            return str(error)
