"""Alarms told to somebody else: a POST of JSON for each that begins or ends, signed, and tried again.

``X-Tanist-Timestamp`` has the seconds of the try, ``X-Tanist-Signature`` is ``sha256=`` and the HMAC-SHA256,
in hex, of the timestamp, a dot and the body, with the secret that both sides know. Who gets it compares the
signature, and refuses what is old.
"""

import asyncio
import hashlib
import hmac
import http.client
import logging
import random
import re
import ssl
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from tanist.backoff import Backoff
from tanist.clock import Clock
from tanist.console.alarms.board import Alarm
from tanist.console.views.base import View
from tanist.errors import ConfigError

_log = logging.getLogger(__name__)

TRIES = 5
MAX_WAITING = 100
_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 30.0
_TIMEOUT_S = 10.0
_DONE = range(200, 300)
_SENDABLE = re.compile(r"[!-~]*")

Post = Callable[[str, bytes, Mapping[str, str]], int]
"""Sends a body to an address and says with which status it was answered. Raises OSError."""


class WebhookView(View, frozen=True, kw_only=True):
    """How telling goes. Of the address only the host is shown: the rest may hold a secret."""

    host: str
    is_signed: bool
    told_count: int
    failed_count: int
    waiting_count: int
    last_failure: str | None


class Webhook:
    """One address that is told of alarms. ``run`` has to run for that."""

    def __init__(
        self, url: str, clock: Clock, *, secret: str | None = None, post: Post | None = None
    ) -> None:
        """Raises ConfigError for an address that is none of HTTP."""
        self._url = url
        self._host = _host_of(url)
        self._secret = secret
        self._clock = clock
        self._post = post or post_json
        self._waiting: asyncio.Queue[Alarm] = asyncio.Queue(MAX_WAITING)
        self._told_count = 0
        self._failed_count = 0
        self._last_failure: str | None = None

    @property
    def view(self) -> WebhookView:
        return WebhookView(
            host=self._host,
            is_signed=self._secret is not None,
            told_count=self._told_count,
            failed_count=self._failed_count,
            waiting_count=self._waiting.qsize(),
            last_failure=self._last_failure,
        )

    def tell(self, alarm: Alarm) -> None:
        """Have it told soon. If too many wait the oldest is given up: the newest matter more."""
        if self._waiting.full():
            self._waiting.get_nowait()
            self._failed("too many alarms wait to be told")
        self._waiting.put_nowait(alarm)

    async def run(self) -> None:
        """Tell one after the other."""
        while True:
            await self._deliver(await self._waiting.get())

    async def _deliver(self, alarm: Alarm) -> None:
        body = msgspec.json.encode(alarm)
        backoff = Backoff(_FIRST_WAIT_S, _MOST_WAIT_S)
        problem = ""
        for number in range(TRIES):
            if number:
                await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311 - only spreads tries.
            headers = sign(body, self._secret, at_s=self._clock.now_ms() // 1000)
            try:
                status = await asyncio.to_thread(self._post, self._url, body, headers)
            except OSError as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            except (http.client.HTTPException, ValueError) as error:
                # Their text may hold the address, and that a secret.
                problem = type(error).__name__
                continue
            if status in _DONE:
                self._told_count += 1
                return
            problem = f"it answered {status}"
        self._failed(problem)

    def _failed(self, problem: str) -> None:
        self._failed_count += 1
        self._last_failure = problem
        _log.warning("webhook not told host=%s reason=%s", self._host, problem)


def _host_of(url: str) -> str:
    """Whom an address names. Raises ConfigError for one that no request could be sent to."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError as error:
        # Its text may hold what is secret of the address.
        raise ConfigError("webhook", "…", "an address whose host and port can be connected to") from error
    if parts.scheme not in ("http", "https") or not host or port == 0 or "@" in parts.netloc:
        raise ConfigError(
            "webhook", "…", "an address with http:// or https://, and no name or password in it"
        )
    if not _SENDABLE.fullmatch(url.removeprefix(f"{parts.scheme}://{parts.netloc}")) or " " in host:
        raise ConfigError("webhook", "…", "an address of ASCII without spaces; write others as %C3%A9")
    return host


def sign(body: bytes, secret: str | None, *, at_s: int) -> dict[str, str]:
    """The headers of one try. Pure."""
    headers = {"Content-Type": "application/json", "X-Tanist-Timestamp": str(at_s)}
    if secret is not None:
        made = hmac.new(secret.encode(), b"%d." % at_s + body, hashlib.sha256).hexdigest()
        headers["X-Tanist-Signature"] = f"sha256={made}"
    return headers


def post_json(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Send it, following nobody elsewhere. Blocks."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, parts.port, timeout=_TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=_TIMEOUT_S)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body, dict(headers))
        return connection.getresponse().status
    finally:
        connection.close()
