"""Has a cluster show all that it shows to anybody, so that its secrets can be looked for there.

What is asked: the metrics of brokers and console, the console's pages and REST with a login and with a wrong
one, the settings of all processes, what a command of an operator prints, and how a wrong secret is refused.
"""

import asyncio
import http.client
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from tanist.admin.asking import Access, asking
from tanist.admin.controllers import controller_config
from tanist.admin.nameservers import nameserver_config
from tanist.admin.replication import ha_status
from tanist.chaos.modes import CLUSTER
from tanist.chaos.planted import ACCESS_KEY, OPERATOR, Planted
from tanist.client.settings import Credentials
from tanist.errors import MQError, lone_error

_TIMEOUT_S = 15.0
_PAGES = ("", "brokers", "replication", "topics", "groups", "alarms", "audit", "nothing-of-that-name")
_WRONG_LOGIN = "Basic d3Jvbmc6d3Jvbmc="
_COMMAND = ("getBrokerConfig", "-c", CLUSTER, "--json")


class NotShown(MQError):
    """Somebody did not answer who has to, so it is not known what he would have shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """Whom to ask, and the folder for what they answer."""

    planted: Planted
    folder: Path
    name_server: str
    controllers: Sequence[str]
    brokers: Sequence[str]
    metrics: Sequence[str]
    console: str | None
    """Where it serves; None without its extra."""

    async def show(self) -> None:
        """Ask all of them at once, and keep each answer, refusals too, in a file. Raises NotShown."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with lone_error():
            await self._show_all()

    async def _show_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(self._show_metrics))
            if self.console is not None:
                group.create_task(asyncio.to_thread(self._show_console, self.console))
            group.create_task(self._show_settings())
            group.create_task(self._show_refusals())
            group.create_task(self._show_command())

    def _keep(self, name: str, what: bytes) -> None:
        (self.folder / quote(name, safe="")).write_bytes(what)

    def _show_metrics(self) -> None:
        for address in self.metrics:
            self._keep(f"metrics {address}", _fetched(address, "GET", "/metrics")[1])

    def _show_console(self, address: str) -> None:
        for login in (_WRONG_LOGIN, self.planted.login):
            _, answer = _fetched(address, "GET", "/api/v1/brokers", {"Authorization": login})
            self._keep(f"api {login == self.planted.login}", answer)
        cookie = ""
        for password in ("wrong", self.planted.console_password):
            form = urlencode({"name": OPERATOR, "password": password, "next": "/"})
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            cookie, answer = _fetched(address, "POST", "/login", kind, form)
            self._keep(f"login {password == self.planted.console_password}", answer)
        of_brokers = [f"brokers/{quote(broker, safe='')}" for broker in self.brokers]
        for name in (*_PAGES, *of_brokers, *(f"api/v1/{each}" for each in _PAGES)):
            self._keep(f"page {name}", _fetched(address, "GET", f"/{name}", {"Cookie": cookie})[1])

    async def _show_settings(self) -> None:
        async with asking(Access(self.planted.credentials)) as wire:
            settings = await nameserver_config(wire, self.name_server)
            self._keep("settings of the name server", msgspec.json.encode(settings))
            for told in await controller_config(wire, self.controllers):
                self._keep("settings of the controller", str(told).encode())

    async def _show_refusals(self) -> None:
        async with asking(Access(Credentials(ACCESS_KEY, "wrong"))) as wire:
            for address in self.brokers:
                try:
                    await ha_status(wire, address)
                except MQError as error:
                    self._keep(f"refusal {address}", f"{error!r} {error}".encode())

    async def _show_command(self) -> None:
        access = ("--access-file", str(self.planted.access_file))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tanist.cli", "admin", *access, *_COMMAND, "-n", self.name_server),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        self._keep("command", said)


def _fetched(
    address: str, method: str, path: str, headers: Mapping[str, str] | None = None, body: str | None = None
) -> tuple[str, bytes]:
    """The cookie that came with an answer, and the answer with its headers."""
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
        return cookie, f"{answer.status} {answer.headers}".encode() + answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise NotShown(f"http://{address}{path} does not answer: {error}") from error
    finally:
        connection.close()
