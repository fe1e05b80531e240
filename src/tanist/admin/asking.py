"""The connections over which an operator's questions go, signed if there are credentials."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tanist.client.session.wire import Wire
from tanist.client.settings import ClientSettings, Credentials

TIMEOUT_S = 5.0
"""What ``mqadmin`` waits for an answer."""


@asynccontextmanager
async def asking(credentials: Credentials | None = None) -> AsyncGenerator[Wire]:
    """Ask while the block lasts.

    >>> async with asking() as wire:
    ...     status = await ha_status(wire, "127.0.0.1:10911")
    """
    settings = ClientSettings(namesrv=(), credentials=credentials, timeout_s=TIMEOUT_S)
    wire = Wire(settings, {}, on_connect=_nobody_cares, on_disconnect=_nobody_cares)
    try:
        yield wire
    finally:
        await wire.close()


def _nobody_cares(_address: str) -> None:
    pass
