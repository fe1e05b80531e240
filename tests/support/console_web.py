"""The console's application without a socket: a cluster that is made up, and browsers that ask it."""

import asyncio
import contextlib
import html
import re
import tempfile
from collections.abc import Callable, Collection, Coroutine, Mapping
from http.cookies import SimpleCookie
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import unquote, urlencode

import msgspec
from starlette.types import ASGIApp

from tanist.client.session.wire import Wire
from tanist.console.access.audit import AuditLog
from tanist.console.access.login_limit import LoginLimit
from tanist.console.access.passwords import hash_password
from tanist.console.access.sessions import SessionStore
from tanist.console.access.users import Role, User, Users
from tanist.console.certificates import CertificateDesk
from tanist.console.desk import Desk
from tanist.console.reset_desk import ResetDesk
from tanist.console.views.digests import digests
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.snapshot import Snapshot
from tanist.console.watching.watcher import Watcher
from tanist.console.web.app import make_app
from tests.support.clocks import FakeClock
from tests.support.console_views import NOW_MS
from tests.support.slave_consume_views import PlayedWire

OPERATOR, VIEWER, PASSWORD = "ann", "vic", "a long password"
# So cheap that a test can log in as often as it likes.
_HASH = hash_password(PASSWORD, bytes(16), cost=2)
_T = TypeVar("_T")


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.text)

    @property
    def words(self) -> str:
        """What a reader of the page sees."""
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.text)).split())


class _Users(Users):
    def __init__(self, tried: list[str], *users: User) -> None:
        super().__init__(*users)
        self._tried = tried

    def check(self, name: str, password: str) -> User | None:
        self._tried.append(name)
        return super().check(name, password)


class PlayedConsole:
    """A console that saw this of its cluster, and ``before`` that, and reaches brokers over ``wire``."""

    desk: Desk
    """While somebody looks at it."""

    def __init__(
        self,
        seen: Snapshot | None,
        wire: PlayedWire | None = None,
        *,
        before: Snapshot | None = None,
        control: Path | None = None,
        is_local: bool = False,
        proxies: Collection[str] = (),
    ) -> None:
        self.clock = FakeClock(now_ms=NOW_MS)
        self._seen, self._before = seen, before
        self._is_local = is_local
        self._control = control
        self._proxies = proxies
        self._wire = wire or PlayedWire()
        self.audit = AuditLog()
        self.tried: list[str] = []
        """The names whose passwords were looked at."""
        self._plans = tempfile.TemporaryDirectory(prefix="tanist-plans-")
        self.results = Path(self._plans.name)

    def run(self, visit: "Callable[[Browser], Coroutine[Any, Any, _T]]") -> _T:
        """Let somebody look at it, in an event loop of its own."""

        async def visited() -> _T:
            async def look(*, is_thorough: bool) -> Snapshot:
                del is_thorough
                if self._seen is None:
                    await asyncio.Event().wait()
                assert self._seen is not None
                return self._seen

            watcher = Watcher(look, digests, self.clock)
            numbers = count()
            lookups = Lookups(self.clock)
            desk = Desk(
                wire=cast("Wire", self._wire),
                watcher=watcher,
                lookups=lookups,
                users=_Users(
                    self.tried, User(OPERATOR, Role.OPERATOR, _HASH), User(VIEWER, Role.VIEWER, _HASH)
                ),
                sessions=SessionStore(lambda _size: f"token-{next(numbers)}"),
                limit=LoginLimit(),
                audit=self.audit,
                resets=ResetDesk(cast("Wire", self._wire), Path(self._plans.name), self.clock, lookups),
                clock=self.clock,
                control=self._control,
                certificates=CertificateDesk(self.results, self.clock),
            )
            self.desk = desk
            if self._before is not None:
                desk.roles.on_snapshot(self._before)
            async with watcher.watching():
                if self._seen is not None:
                    await watcher.wait_first(30)
                return await visit(Browser(make_app(desk, is_local=self._is_local, proxies=self._proxies)))

        with self._plans:
            return asyncio.run(visited())


class Browser:
    """Asks the application as a browser does, and keeps its cookie."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.cookies: dict[str, str] = {}
        self.set_cookie = ""

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.ask("GET", target, b"", headers)

    async def post(self, target: str, form: Mapping[str, str], **headers: str) -> Answer:
        return await self.ask("POST", target, urlencode(form).encode(), headers)

    async def post_json(self, target: str, value: object, **headers: str) -> Answer:
        return await self.ask("POST", target, msgspec.json.encode(value), headers)

    async def log_in(self, name: str = OPERATOR, password: str = PASSWORD, **fields: str) -> Answer:
        return await self.post("/login", {"name": name, "password": password, **fields})

    async def csrf(self) -> str:
        """The token that the forms of this browser's pages carry."""
        found = re.search(r'name="csrf" value="([^"]+)"', (await self.get("/")).text)
        assert found is not None
        return found[1]

    async def ask(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        path, _, query = target.partition("?")
        sent = {"host": "console.test", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("10.1.1.1", 1234),
            "server": ("console.test", 80),
        }
        messages: list[dict[str, Any]] = []

        requests = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not requests:
                # Nobody hangs up.
                await asyncio.Event().wait()
            return requests.pop()

        async def send(message: Any) -> None:
            messages.append(message)

        # What the application made no answer for on purpose is answered, and raised for the server's log.
        with contextlib.suppress(RuntimeError):
            await self.app(scope, receive, send)
        found = {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]}
        self._keep(found.get("set-cookie", ""))
        text = b"".join(message.get("body", b"") for message in messages[1:]).decode()
        return Answer(messages[0]["status"], found, text)

    def _keep(self, set_cookie: str) -> None:
        if not set_cookie:
            return
        self.set_cookie = set_cookie
        for name, morsel in SimpleCookie(set_cookie).items():
            self.cookies[name] = morsel.value
            if morsel["max-age"] == "0":
                del self.cookies[name]
