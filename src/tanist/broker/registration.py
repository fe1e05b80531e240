"""Tells the name servers that this broker is there, and which topics it has.

Every 30 s, at once when a topic changes or a connection is lost, and soon when a name server could not be
told. Each name server has its own connection, which must stay open: it forgets a broker with it.

A slave that is read instead of its master is shown at the master's place, and with topics that can only be
read; a master that may do nothing is not shown at all. Where a coordinator says who is read, nobody takes its
leave by its id: a name server of RocketMQ 4.9 forgets whoever has that id by then. It closes the connection.

A slave is told in return where its master is. It asks again soon while it does not follow one, and keeps to
the last answer: the master may be away from its name server and still be there.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from tanist.broker.ha_port import ha_address
from tanist.broker.master_place import MasterPlace
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.state import BrokerState
from tanist.errors import MQError
from tanist.log import ToldFailures
from tanist.model.data_version import DataVersion
from tanist.model.host import is_host_and_port
from tanist.model.reading import FULL, NONE
from tanist.model.route import MASTER_ID
from tanist.model.topics import READ
from tanist.protocol.bodies.registration import RegisterBrokerBody, encode_registration, registration_crc
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import OUR_VERSION, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import (
    BrokerIdentityRequest,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)

_TIMEOUT_S = 3.0
_FIRST_AGAIN_S = 1.0
_LAST_AGAIN_S = 4.0
"""When a name server is told again that was not there: it may be about to start, as this broker just did.
Until it is told it sends nobody here, so that is never left for long."""
_FAREWELL_TIMEOUT_S = 1.0
"""A broker that stops does not wait long: a name server forgets it with its connection anyway."""


class _Shown(NamedTuple):
    """What name servers are to know this broker as."""

    broker_id: int
    permission: int
    change_count: int
    """How often that was changed since the broker started."""
    changed_ms: int

    def version(self, of_topics: DataVersion) -> DataVersion:
        """The version of the topics as they are told: name servers take no others under one they have."""
        return msgspec.structs.replace(
            of_topics,
            counter=of_topics.counter + self.change_count,
            timestamp_ms=max(of_topics.timestamp_ms, self.changed_ms),
        )


class Registration:
    """Keeps one broker registered for as long as ``run`` runs."""

    def __init__(self, state: BrokerState, client: RemotingClient, *, is_on: bool = True) -> None:
        self._state = state
        self._client = client
        self._changed = asyncio.Event()
        self._role_changed = asyncio.Event()
        self._again_count = 0
        self._failures = ToldFailures()
        self._master: MasterPlace | None = None
        self._master_listener: Callable[[MasterPlace], None] | None = None
        self.is_on = is_on
        """Whether name servers are told at all: not before a broker has a role."""
        self._told_id: int | None = None
        """The id under which they know this broker, as far as it has told them."""
        self._shown: _Shown | None = None
        """What they are to know it as, if that is not what its settings say."""

    def on_master(self, listener: Callable[[MasterPlace], None] | None) -> None:
        """Have ``listener`` told where the master is, whenever that is another place than before."""
        self._master = None
        self._master_listener = listener

    def role_changed(self) -> None:
        """Register again at once, as what the broker is now, also while a name server is slow to answer."""
        self._changed.set()
        self._role_changed.set()

    def on_permitted(self, found: Permitted) -> None:
        """Have name servers show what this broker may do, where a coordinator says who is read."""
        settings = self._state.settings
        is_in_place = not settings.is_slave or found.permission & READ
        self.show_as(MASTER_ID if is_in_place else settings.broker_id, found.permission)

    def show_as(self, broker_id: int, permission: int) -> None:
        """Have name servers know this broker under this id, and no topic with more than this permission.

        Nobody is sent to a master that may do nothing: such a one is not shown.
        """
        is_on = broker_id != MASTER_ID or permission & FULL != NONE
        before = self._shown
        if before is not None and is_on == self.is_on and before[:2] == (broker_id, permission):
            return
        change_count = 1 if before is None else before.change_count + 1
        self._shown = _Shown(broker_id, permission, change_count, self._state.clock.now_ms())
        self.is_on = is_on
        self.role_changed()

    def withdraw(self) -> None:
        """Have name servers forget this broker until ``is_on`` is set again: it serves nobody."""
        self.is_on = False
        self.role_changed()

    def topics_changed(self) -> None:
        """Register again at once: a new topic has no route before that."""
        self._changed.set()

    def connection_lost(self) -> None:
        """Register again at once: a name server that is started anew knows no broker."""
        self._changed.set()

    def master_lost(self) -> None:
        """Register again at once: the master may be elsewhere by now."""
        self._changed.set()

    async def run(self) -> None:
        """Register again and again, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._again_s()):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            self._role_changed.clear()
            async with asyncio.TaskGroup() as tasks:
                registering = tasks.create_task(self.register())
                changing = tasks.create_task(self._role_changed.wait())
                await asyncio.wait([registering, changing], return_when=asyncio.FIRST_COMPLETED)
                registering.cancel()
                changing.cancel()

    async def register(self) -> None:
        """Register with every name server now. What fails is told in the log and tried again later."""
        if not self._is_to_be_told:
            if self._told_id is not None:
                await self.unregister()
            return
        self._told_id = self._broker_id
        answers = await self._tell_all(self._registration, _TIMEOUT_S)
        if self._state.settings.is_slave:
            self._find_master(answers)
        is_done = None not in answers and not self._is_master_sought
        self._again_count = 0 if is_done else self._again_count + 1

    async def unregister(self) -> None:
        """Have every name server forget this broker: clients stop coming at once."""
        if self._state.read_right is None:
            await self._tell_all(self._unregistration, _FAREWELL_TIMEOUT_S)
        else:
            for server in self._state.settings.name_servers:
                self._client.give_up(server, "the name server is to forget this broker")
        self._told_id = None

    @property
    def _broker_id(self) -> int:
        return self._state.settings.broker_id if self._shown is None else self._shown.broker_id

    @property
    def _is_to_be_told(self) -> bool:
        right = self._state.read_right
        if self.is_on and right is not None and self._broker_id == MASTER_ID:
            # A process that stood still may have lost its place before anybody here has noticed.
            return right.look().permission & FULL != NONE
        return self.is_on

    def _again_s(self) -> float:
        """When to register again: soon if something is missing, and then less and less often."""
        period_s = self._state.settings.register_period_s
        if self._again_count == 0:
            return period_s
        return min(period_s, _LAST_AGAIN_S, _FIRST_AGAIN_S * self._again_count)

    @property
    def _is_master_sought(self) -> bool:
        """Whether this is a slave that follows nobody now. A master that refuses it is found.

        Nobody is told where the master is who stands at its place.
        """
        if self._broker_id == MASTER_ID:
            return False
        follower = self._state.replication.follower
        return follower is not None and not (follower.is_transferring or follower.status.is_refused)

    def _find_master(self, answers: Sequence[Command | None]) -> None:
        """Take over the first answer that tells where the master is."""
        place = next(filter(None, (_master_place(answer) for answer in answers if answer is not None)), None)
        if place is not None and place != self._master:
            _log.info("master found address=%s ha_address=%s", place.address, place.ha_address)
            self._master = place
            if self._master_listener is not None:
                self._master_listener(place)

    async def _tell_all(self, make_request: Callable[[], Command], timeout_s: float) -> list[Command | None]:
        """What the name servers answer, in their order; None for one that does not know now."""
        servers = self._state.settings.name_servers
        return await asyncio.gather(*(self._tell(server, make_request, timeout_s) for server in servers))

    async def _tell(
        self, server: str, make_request: Callable[[], Command], timeout_s: float
    ) -> Command | None:
        try:
            answer = await self._client.request(server, make_request(), timeout_s=timeout_s)
        except MQError as error:
            self._note_failure(server, str(error))
            return None
        if answer.code != ResponseCode.SUCCESS:
            self._note_failure(server, f"it answers {answer.code}, {answer.remark}")
            return None
        if self._failures.is_over(server):
            _log.info("name server is told again name_server=%s", server)
        return answer

    def _note_failure(self, server: str, reason: str) -> None:
        if self._failures.is_news(server, reason):
            _log.warning("name server is not told name_server=%s reason=%s", server, reason)

    def _registration(self) -> Command:
        settings = self._state.settings
        body = encode_registration(
            RegisterBrokerBody(topic_configs=self._topics()),
            is_compressed=False,
            version=OUR_VERSION,
        )
        header = RegisterBrokerRequest(
            broker_name=settings.broker_name,
            broker_addr=settings.address,
            cluster_name=settings.broker_cluster_name,
            ha_server_addr=self._ha_address(),
            broker_id=self._broker_id,
            body_crc32=registration_crc(body),
            is_compressed=False,
        )
        return Command.request(RequestCode.REGISTER_BROKER, header, body=body)

    def _topics(self) -> TopicConfigTable:
        """All topics, with no permission that the broker itself lacks."""
        table, permission = self._state.topics.table, self._state.settings.broker_permission
        if (shown := self._shown) is not None:
            permission &= shown.permission
            table = msgspec.structs.replace(table, data_version=shown.version(table.data_version))
        if permission & FULL == FULL:
            return table
        topics = {
            name: msgspec.structs.replace(config, perm=config.perm & permission)
            for name, config in table.topics.items()
        }
        return msgspec.structs.replace(table, topics=topics)

    def _ha_address(self) -> str:
        """Nothing for a slave at its master's place: other slaves would take it for the one to follow."""
        settings = self._state.settings
        is_in_place = settings.is_slave and self._broker_id == MASTER_ID
        return "" if is_in_place else ha_address(settings, self._state.ha)

    def _unregistration(self) -> Command:
        settings = self._state.settings
        header = BrokerIdentityRequest(
            broker_name=settings.broker_name,
            broker_addr=settings.address,
            cluster_name=settings.broker_cluster_name,
            # One that could not take another role is known as what it was before.
            broker_id=settings.broker_id if self._told_id is None else self._told_id,
        )
        return Command.request(RequestCode.UNREGISTER_BROKER, header)


def _master_place(answer: Command) -> MasterPlace | None:
    """Where the master is, if the name server knows."""
    header = answer.header(RegisterBrokerResponse)
    address, ha_address = header.master_addr or "", header.ha_server_addr or ""
    if not (is_host_and_port(address) and is_host_and_port(ha_address)):
        return None
    return MasterPlace(address, ha_address)
