"""For whoever keeps the console running: does it live, and does it see the cluster. Nobody has to log in."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tanist.console.web.guard import desk_of
from tanist.console.web.openapi import Operation


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it is."""

    status: str
    reason: str | None = None
    """Why it is not ready."""


async def live(_request: Request) -> Response:
    return _told(Health(status="live"))


async def ready(request: Request) -> Response:
    lack = desk_of(request).watcher.lack()
    if lack is None:
        return _told(Health(status="ready"))
    return _told(Health(status="not ready", reason=lack), status=503)


OPERATIONS: Sequence[tuple[Operation, Callable[[Request], Awaitable[Response]]]] = (
    (Operation("/health/live", "Whether the process answers", Health, is_open=True), live),
    (Operation("/health/ready", "Whether the console sees the cluster", Health, is_open=True), ready),
)

ROUTES: list[BaseRoute] = [
    Route(operation.path, handler, methods=["GET"]) for operation, handler in OPERATIONS
]


def _told(health: Health, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(health), status_code=status, media_type="application/json")
