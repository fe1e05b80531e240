"""Who asks, whether he may, and the headers that keep pages apart from everybody else's.

Every request but those of the login, the static files and the health questions needs a session, or for REST
the user's name and password. A change needs the operator's role and, from a browser, the session's own token.
"""

import asyncio
import base64
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import quote, urlsplit

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tanist.console.access.sessions import Session
from tanist.console.access.users import User
from tanist.console.desk import Desk
from tanist.console.web.forms import read_form
from tanist.console.web.templating import page

_log = logging.getLogger(__name__)

COOKIE = "tanist_session"
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"
LIVE_HEADER = "x-live"
"""Sent by pages that lie open and look by themselves, which keeps no session alive."""
API = "/api/"
MAX_NAME_CHARS = 64
_SAFE = frozenset({"GET", "HEAD"})
_LOCAL_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

_HSTS = "max-age=31536000"

Handler = Callable[[Request], Awaitable[Response]]


class SafeHeaders:
    """Puts the headers of safety on every answer that has none of its own; only what is in the tree may be
    kept by browsers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["scheme"] == "https":
                    headers["Strict-Transport-Security"] = _HSTS
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        # What turns out to be no HTTP while we read it, uvicorn answers; nobody is left to answer then.
        with suppress(h11.LocalProtocolError):
            await self._app(scope, receive, send_safely if scope["type"] == "http" else send)


class LocalHosts:
    """Refuses what was asked of another host than this machine: a name of a stranger that leads here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and not _LOCAL_HOST.fullmatch(Headers(scope=scope).get("host", "")):
            app = PlainTextResponse(
                "This console serves 127.0.0.1 and localhost alone, under no other name.\n", status_code=421
            )
        await app(scope, receive, send)


def desk_of(request: Request) -> Desk:
    desk = request.app.state.desk
    assert isinstance(desk, Desk)
    return desk


def user_of(request: Request) -> User:
    """Who asks. Only inside what ``viewers`` or ``operators`` made."""
    user = request.scope["user"]
    assert isinstance(user, User)
    return user


def address_of(request: Request) -> str:
    """Where he asks from."""
    return "unknown" if request.client is None else request.client.host


def viewers(handler: Handler) -> Handler:
    """Let everybody ask who is logged in."""
    return _guarded(handler, needs_operator=False)


def operators(handler: Handler) -> Handler:
    """Let operators ask."""
    return _guarded(handler, needs_operator=True)


def is_from_here(request: Request) -> bool:
    """Whether a page of this console sent the request, as far as the browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def _guarded(handler: Handler, *, needs_operator: bool) -> Handler:
    async def guarded(request: Request) -> Response:
        session = find_session(request)
        user = await _user_by_password(request) if session is None else session.user
        if user is None:
            return _not_known(request)
        request.scope["session"], request.scope["user"] = session, user
        # Before anything is read: a page that says it is older than it is asks once too often, no more.
        request.scope["digests"] = desk_of(request).watcher.digests
        if needs_operator and not user.is_operator:
            return refusal(request, 403, f"{user.name} is a viewer; this is for operators")
        is_change = request.method not in _SAFE
        if is_change and session is not None and not await _has_token(request, session):
            return refusal(request, 403, "this form is old, or is not of this console; load the page again")
        return await handler(request)

    return guarded


def find_session(request: Request) -> Session | None:
    """The session whose cookie the browser sent."""
    desk = desk_of(request)
    is_use = LIVE_HEADER not in request.headers
    return desk.sessions.find(request.cookies.get(COOKIE), now_s=desk.clock.monotonic_s(), is_use=is_use)


def refusal(request: Request, status: int, text: str) -> Response:
    """Say no, in JSON or with a page."""
    if request.url.path.startswith(API):
        return JSONResponse({"error": text}, status_code=status)
    return page(request, "refused.html", status=status, text=text, code=status)


async def _has_token(request: Request, session: Session) -> bool:
    if not is_from_here(request):
        return False
    token = request.headers.get(CSRF_HEADER)
    if token is None:
        token = (await read_form(request)).get(CSRF_FIELD)
    return session.is_csrf(token)


async def _user_by_password(request: Request) -> User | None:
    """For scripts: REST takes a name and a password. Nothing asks browsers for them, so they send none."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic" or not request.url.path.startswith(API):
        return None
    try:
        name, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return None
    return await try_password(request, name, password)


async def try_password(request: Request, name: str, password: str) -> User | None:
    """The user, if the password is his and it was not guessed too often; ``wait_s`` tells of the latter."""
    desk, address, name = desk_of(request), address_of(request), name[:MAX_NAME_CHARS]
    if wait_s(request, name) > 0:
        return None
    async with desk.hashing:
        # Those who came before may have used up the tries while this one waited.
        if wait_s(request, name) > 0:
            return None
        user = await asyncio.to_thread(desk.users.check, name, password)
        if user is None:
            desk.limit.on_failure(address, name, now_s=desk.clock.monotonic_s())
            # Not the name: people type their password there.
            _log.warning("login refused address=%s", address)
        else:
            desk.limit.on_success(address)
    return user


def wait_s(request: Request, name: str) -> float:
    """How long this one has to wait before the next try."""
    desk = desk_of(request)
    return desk.limit.wait_s(address_of(request), name, now_s=desk.clock.monotonic_s())


def _not_known(request: Request) -> Response:
    if request.url.path.startswith(API):
        return JSONResponse({"error": "log in first, or send a name and a password"}, status_code=401)
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    login = "/login" if target == "/" else f"/login?next={quote(target, safe='')}"
    if "hx-request" in request.headers:
        return Response(status_code=200, headers={"HX-Redirect": login})
    return RedirectResponse(login, status_code=303)
