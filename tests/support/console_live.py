"""A console in this process over a real cluster, without a socket of its own."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tanist.admin.asking import asking
from tanist.clock import SystemClock
from tanist.console.access.audit import AuditLog
from tanist.console.access.login_limit import LoginLimit
from tanist.console.access.passwords import hash_password
from tanist.console.access.sessions import SessionStore
from tanist.console.access.users import Role, User, Users
from tanist.console.desk import Desk
from tanist.console.reset_desk import ResetDesk
from tanist.console.views.digests import digests
from tanist.console.watching.gathering import Gatherer
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.watcher import Watcher
from tanist.console.web.app import make_app
from tests.support.console_web import OPERATOR, PASSWORD, Browser

SECOND_OPERATOR = "second"
_HASH = hash_password(PASSWORD, bytes(16), cost=2)


class LiveConsole(NamedTuple):
    """The console, and an operator who is logged in."""

    desk: Desk
    browser: Browser


@asynccontextmanager
async def live_console(name_server: str, folder: Path) -> AsyncGenerator[LiveConsole]:
    """A console that watches the cluster while the block lasts; plans of resets are kept in ``folder``."""
    clock = SystemClock()
    async with asking() as wire:
        watcher = Watcher(Gatherer(wire, [name_server], clock).look, digests, clock)
        lookups = Lookups(clock)
        desk = Desk(
            wire=wire,
            watcher=watcher,
            lookups=lookups,
            users=Users(*(User(name, Role.OPERATOR, _HASH) for name in (OPERATOR, SECOND_OPERATOR))),
            sessions=SessionStore(secrets.token_urlsafe),
            limit=LoginLimit(),
            audit=AuditLog(),
            resets=ResetDesk(wire, folder, clock, lookups),
            clock=clock,
        )
        async with watcher.watching():
            browser = Browser(make_app(desk))
            await browser.log_in()
            yield LiveConsole(desk, browser)
