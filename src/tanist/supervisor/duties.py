"""What a parent process does for its broker beside watching it: by who decides the broker's role."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from tanist.coord import open_registry
from tanist.model.reading import alive_path
from tanist.protocol.headers.controller import ReportDeadBrokerRequest
from tanist.remoting import RemotingClient, TlsSettings
from tanist.supervisor.death_report import DeathReport
from tanist.supervisor.kept_registry import KeptRegistry
from tanist.supervisor.presence import end_presence
from tanist.supervisor.settings import SupervisorSettings
from tanist.supervisor.standing_in import stand_in


class Duty(Protocol):
    """What is due when the broker's process is dead."""

    async def keep_ready(self) -> None:
        """Have at hand what is needed then. Runs until all is done."""
        ...

    async def tell(self) -> None:
        """Tell at once of the death."""
        ...

    async def stand_in(self, asked: asyncio.Event) -> None:
        """Do for its clients what can be done, if it died by itself, until ``asked`` to stop."""
        ...


@asynccontextmanager
async def open_duty(
    settings: SupervisorSettings, tls: TlsSettings, *, session_id: str
) -> AsyncGenerator[Duty]:
    """The duty to a broker with these settings, whose process carries ``session_id``."""
    if not settings.enable_controller_mode:
        yield FixedRoleDuty(settings, session_id, tls)
        return
    client = RemotingClient(tls=tls)
    try:
        yield ControlledDuty(settings, session_id, client)
    finally:
        await client.close()


class ControlledDuty:
    """To a broker whose role a controller decides: the controllers hear of its death, and elect another."""

    def __init__(self, settings: SupervisorSettings, session_id: str, client: RemotingClient) -> None:
        told = ReportDeadBrokerRequest(
            cluster_name=settings.broker_cluster_name, broker_name=settings.broker_name, session_id=session_id
        )
        self._report = DeathReport(told, settings.controllers, client)

    async def keep_ready(self) -> None:
        await self._report.keep_ready()

    async def tell(self) -> None:
        await self._report.send()

    async def stand_in(self, asked: asyncio.Event) -> None:
        """Clients are moved by the new master."""


class FixedRoleDuty:
    """To a broker with a coordinator: its presence ends with it, and its slave gets a master's callers."""

    def __init__(self, settings: SupervisorSettings, session_id: str, tls: TlsSettings) -> None:
        self._settings = settings
        self._session_id = session_id
        timeout_s = settings.coordinator_timeout_millis / 1000
        self._kept = KeptRegistry(partial(open_registry, settings.coordinator, timeout_s=timeout_s, tls=tls))

    async def keep_ready(self) -> None:
        await self._kept.keep()

    async def tell(self) -> None:
        path = alive_path(self._settings.broker_name, self._settings.address)
        await end_presence(self._kept, path, self._session_id)

    async def stand_in(self, asked: asyncio.Event) -> None:
        if self._settings.stands_in:
            await stand_in(self._settings, self._kept, asked=asked)
