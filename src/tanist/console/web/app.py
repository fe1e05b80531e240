"""The application: its routes, and what becomes of what goes wrong in one."""

import logging
from collections.abc import Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from tanist.console.access.audit import AuditFailed
from tanist.console.desk import Desk
from tanist.console.errors import BadRequest, NotSeenYet, Partly, Refused, Unknown
from tanist.console.reset_desk import NoPlan
from tanist.console.web import (
    actions,
    api,
    certificates,
    changes,
    events,
    health,
    login,
    messages,
    pages,
    resets,
)
from tanist.console.web.guard import LocalHosts, SafeHeaders, find_session, refusal
from tanist.console.web.proxy import BehindProxy
from tanist.console.web.templating import HERE
from tanist.errors import MQError

_log = logging.getLogger(__name__)

_STATUSES: tuple[tuple[type[MQError], int], ...] = (
    (Unknown, 404),
    (NoPlan, 404),
    (NotSeenYet, 503),
    (BadRequest, 400),
    (Refused, 409),
    (Partly, 502),
    (AuditFailed, 500),
)
_SERVER_FAILED = 500


def make_app(desk: Desk, *, is_local: bool = False, proxies: Collection[str] = ()) -> ASGIApp:
    """The console around ``desk``.

    A local one is for browsers of this machine, unless a proxy brings others: ``proxies`` are the addresses
    of those that are believed.
    """
    app = Starlette(
        routes=[
            *login.ROUTES,
            *pages.ROUTES,
            *actions.ROUTES,
            *resets.ROUTES,
            *messages.ROUTES,
            *changes.ROUTES,
            *certificates.ROUTES,
            *api.ROUTES,
            *events.ROUTES,
            *health.ROUTES,
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        exception_handlers={
            MQError: _on_known,  # pyright: ignore[reportArgumentType]
            HTTPException: _on_http,  # pyright: ignore[reportArgumentType]
            Exception: _on_unknown,
        },
    )
    app.state.desk = desk
    app.state.streams = events.Streams()
    # Around all of it: the answer to what goes wrong unforeseen is made outside of any middleware within.
    if proxies:
        return BehindProxy(SafeHeaders(app), proxies)
    return SafeHeaders(LocalHosts(app) if is_local else app)


async def _on_known(request: Request, error: MQError) -> Response:
    """What we raise on purpose says what is wrong. A broker that does not do as asked is a bad gateway."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 502)
    return _told(request, status, str(error))


async def _on_http(request: Request, error: HTTPException) -> Response:
    text = "There is no such page." if error.status_code == 404 else error.detail
    return _told(request, error.status_code, text)


async def _on_unknown(request: Request, error: Exception) -> Response:
    _log.error("request failed path=%s", request.url.path, exc_info=error)
    return _told(request, _SERVER_FAILED, "The console made a mistake; its log has the details.")


def _told(request: Request, status: int, text: str) -> Response:
    request.scope.setdefault("session", find_session(request))
    return refusal(request, status, text)
