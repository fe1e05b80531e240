"""Tells the name servers that this broker is there, and which topics it has.

Every 30 s, at once when a topic changes or a connection is lost, and soon when a name server could not be
told. Each name server has its own connection, which must stay open: it forgets a broker with it.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from tanist.broker.ha_port import ha_address
from tanist.broker.state import BrokerState
from tanist.errors import MQError
from tanist.log import ToldFailures
from tanist.protocol.bodies.registration import RegisterBrokerBody, encode_registration, registration_crc
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import OUR_VERSION, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import BrokerIdentityRequest, RegisterBrokerRequest
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)

_TIMEOUT_S = 3.0
_FIRST_AGAIN_S = 1.0
_LAST_AGAIN_S = 4.0
"""When a name server is told again that was not there: it may be about to start, as this broker just did.
Until it is told it sends nobody here, so that is never left for long."""
_FAREWELL_TIMEOUT_S = 1.0
"""A broker that stops does not wait long: a name server forgets it with its connection anyway."""


class Registration:
    """Keeps one broker registered for as long as ``run`` runs."""

    def __init__(self, state: BrokerState, client: RemotingClient) -> None:
        self._state = state
        self._client = client
        self._changed = asyncio.Event()
        self._failure_count = 0
        self._failures = ToldFailures()

    def topics_changed(self) -> None:
        """Register again at once: a new topic has no route before that."""
        self._changed.set()

    def connection_lost(self) -> None:
        """Register again at once: a name server that is started anew knows no broker."""
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
            await self.register()

    async def register(self) -> None:
        """Register with every name server now. What fails is told in the log and tried again later."""
        are_all_told = await self._tell_all(self._registration, _TIMEOUT_S)
        self._failure_count = 0 if are_all_told else self._failure_count + 1

    async def unregister(self) -> None:
        """Have every name server forget this broker: clients stop coming at once."""
        await self._tell_all(self._unregistration, _FAREWELL_TIMEOUT_S)

    def _again_s(self) -> float:
        """When to register again: after failures soon, and then less and less often."""
        period_s = self._state.settings.register_period_s
        if self._failure_count == 0:
            return period_s
        return min(period_s, _LAST_AGAIN_S, _FIRST_AGAIN_S * self._failure_count)

    async def _tell_all(self, make_request: Callable[[], Command], timeout_s: float) -> bool:
        """Whether all of them know now."""
        servers = self._state.settings.name_servers
        return all(await asyncio.gather(*(self._tell(server, make_request, timeout_s) for server in servers)))

    async def _tell(self, server: str, make_request: Callable[[], Command], timeout_s: float) -> bool:
        try:
            answer = await self._client.request(server, make_request(), timeout_s=timeout_s)
        except MQError as error:
            self._note_failure(server, str(error))
            return False
        if answer.code != ResponseCode.SUCCESS:
            self._note_failure(server, f"it answers {answer.code}, {answer.remark}")
            return False
        if self._failures.is_over(server):
            _log.info("name server is told again name_server=%s", server)
        return True

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
            ha_server_addr=ha_address(settings, self._state.ha),
            broker_id=settings.broker_id,
            body_crc32=registration_crc(body),
            is_compressed=False,
        )
        return Command.request(RequestCode.REGISTER_BROKER, header, body=body)

    def _topics(self) -> TopicConfigTable:
        """All topics, with no permission that the broker itself lacks."""
        settings, table = self._state.settings, self._state.topics.table
        if settings.is_readable and settings.is_writable:
            return table
        topics = {
            name: msgspec.structs.replace(config, perm=config.perm & settings.broker_permission)
            for name, config in table.topics.items()
        }
        return msgspec.structs.replace(table, topics=topics)

    def _unregistration(self) -> Command:
        settings = self._state.settings
        header = BrokerIdentityRequest(
            broker_name=settings.broker_name,
            broker_addr=settings.address,
            cluster_name=settings.broker_cluster_name,
            broker_id=settings.broker_id,
        )
        return Command.request(RequestCode.UNREGISTER_BROKER, header)
