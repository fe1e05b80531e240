"""The connections over which an operator asks: signed if there are credentials, by TLS if it is told so."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tanist.client.session.wire import Wire
from tanist.client.settings import ClientSettings, Credentials
from tanist.remoting.tls import TlsSettings

TIMEOUT_S = 5.0
"""What ``mqadmin`` waits for an answer."""


@dataclass(frozen=True, slots=True)
class Access:
    """As whom an operator asks, and how the way there is kept secret."""

    credentials: Credentials | None = None
    tls: TlsSettings = field(default_factory=TlsSettings)


@asynccontextmanager
async def asking(access: Access | None = None) -> AsyncGenerator[Wire]:
    """Ask while the block lasts.

    >>> async with asking() as wire:
    ...     status = await ha_status(wire, "127.0.0.1:10911")
    """
    access = access or Access()
    settings = ClientSettings(namesrv=(), credentials=access.credentials, tls=access.tls, timeout_s=TIMEOUT_S)
    wire = Wire(settings, {}, on_connect=_nobody_cares, on_disconnect=_nobody_cares)
    try:
        yield wire
    finally:
        await wire.close()


def _nobody_cares(_address: str) -> None:
    pass
