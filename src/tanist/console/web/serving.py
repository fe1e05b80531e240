"""The console as a process: its socket, its web server, the task that watches the cluster."""

import asyncio
import contextlib
import logging
import secrets
import socket
import tempfile
from collections.abc import AsyncGenerator, Collection, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from prometheus_client import CollectorRegistry

from tanist.admin.asking import Access, asking
from tanist.clock import SystemClock
from tanist.console.access.audit import AuditLog
from tanist.console.access.login_limit import LoginLimit
from tanist.console.access.sessions import SessionStore
from tanist.console.access.users import Users
from tanist.console.alarm_desk import AlarmDesk
from tanist.console.alarms.webhook import Webhook
from tanist.console.certificates import CertificateDesk
from tanist.console.desk import Desk
from tanist.console.reset_desk import ResetDesk
from tanist.console.views.digests import digests
from tanist.console.watching.figures import console_metrics
from tanist.console.watching.gathering import Gatherer
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.watcher import Watcher
from tanist.console.web.app import make_app
from tanist.errors import ConfigError
from tanist.metrics import OnDemand, serving_metrics

_log = logging.getLogger(__name__)

_LOCAL = frozenset({"127.0.0.1", "::1"})
_STOP_S = 2
_BACKLOG = 128
_MAX_CONNECTIONS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """What a console is told at its start."""

    host: str
    port: int
    name_servers: Sequence[str]
    users: Users
    coordinator: str | None = None
    """The registry, which knows groups too that no name server lists."""
    audit_log: Path | None = None
    plans: Path | None = None
    """Where plans of resets are kept; without it, until the console ends."""
    metrics: tuple[str, int] | None = None
    """Host and port at which Prometheus is answered, who does not log in."""
    certificates: Path | None = None
    """Where Spark jobs write their results."""
    webhook: str | None = field(default=None, repr=False)
    """Who is told of alarms; the address may hold a secret."""
    webhook_secret: str | None = field(default=None, repr=False)
    proxies: Collection[str] = ()
    """Addresses of proxies that are believed who asks, and whether over TLS."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    control: Path | None = None
    """Where the cluster takes orders that ``tanist up`` runs, if it is one."""
    access: Access = field(default_factory=Access, repr=False)
    """As whom brokers are asked, and over TLS or not."""


@asynccontextmanager
async def serving(options: ConsoleOptions) -> AsyncGenerator[str]:
    """Serve while the block lasts; the address at which. Raises ConfigError if the port is taken."""
    clock = SystemClock()
    webhook = None
    if options.webhook is not None:
        webhook = Webhook(options.webhook, clock, secret=options.webhook_secret)
    async with asking(options.access) as wire, _plans_folder(options.plans) as plans:
        gatherer = Gatherer(wire, options.name_servers, clock, coordinator=options.coordinator)
        watcher = Watcher(gatherer.look, digests, clock)
        lookups = Lookups(clock)
        desk = Desk(
            wire=wire,
            watcher=watcher,
            lookups=lookups,
            users=options.users,
            sessions=SessionStore(secrets.token_urlsafe),
            limit=LoginLimit(),
            audit=AuditLog(options.audit_log),
            resets=ResetDesk(wire, plans, clock, lookups),
            clock=clock,
            control=options.control,
            certificates=(
                None if options.certificates is None else CertificateDesk(options.certificates, clock)
            ),
            alarms=AlarmDesk(webhook),
        )
        with _bound(options) as listener:
            host, port = listener.getsockname()[:2]
            address = f"{f'[{host}]' if ':' in host else host}:{port}"
            async with (
                _telling(webhook),
                watcher.watching(),
                _served(desk, listener, options),
                _measured(options, watcher, address),
            ):
                _log.info("console serves host=%s port=%d", host, port)
                scheme = "http" if options.tls_certificate is None else "https"
                yield f"{scheme}://{address}/"


@asynccontextmanager
async def _measured(options: ConsoleOptions, watcher: Watcher, address: str) -> AsyncGenerator[None]:
    if options.metrics is None:
        yield
        return
    registry, clock = CollectorRegistry(), SystemClock()
    registry.register(OnDemand(lambda: console_metrics(address, watcher.snapshot, now_ms=clock.now_ms())))
    async with serving_metrics(registry, *options.metrics):
        yield


@asynccontextmanager
async def _telling(webhook: Webhook | None) -> AsyncGenerator[None]:
    """Tell alarms while the block lasts."""
    async with asyncio.TaskGroup() as tasks:
        telling = None if webhook is None else tasks.create_task(webhook.run())
        try:
            yield
        finally:
            if telling is not None:
                telling.cancel()


@asynccontextmanager
async def _served(desk: Desk, listener: socket.socket, options: ConsoleOptions) -> AsyncGenerator[None]:
    config = uvicorn.Config(
        make_app(desk, is_local=listener.getsockname()[0] in _LOCAL, proxies=options.proxies),
        ssl_certfile=options.tls_certificate,
        ssl_keyfile=options.tls_key,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        # Nobody is believed here who says that he comes from elsewhere, since the limit on logins counts
        # addresses; of proxies that are named it is read in proxy.py.
        proxy_headers=False,
        timeout_graceful_shutdown=_STOP_S,
        limit_concurrency=_MAX_CONNECTIONS,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listener]))
        try:
            await server.is_up.wait()
            yield
        finally:
            # Pages that listen for changes would hold the end up.
            await desk.watcher.close()
            server.should_exit = True


@asynccontextmanager
async def _plans_folder(wanted: Path | None) -> AsyncGenerator[Path]:
    with tempfile.TemporaryDirectory(prefix="tanist-plans-") as folder:
        yield _made(wanted) if wanted is not None else Path(folder)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


class _Server(uvicorn.Server):
    """Leaves the signals to the command that runs it, and tells when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextlib.contextmanager
def _bound(options: ConsoleOptions) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, options.port))
        except OSError as error:
            raise ConfigError(
                "listen",
                f"{options.host}:{options.port}",
                f"an address of this machine and a free port, or port 0 for any ({error.strerror})",
            ) from error
        listener.listen(_BACKLOG)
        yield listener
