"""Which registry a setting means, and a session with it.

sqlite:///var/lib/tanist/registry.db        a file of this process; a plain path means the same
tanist://controller:9878                    the file of a controller, reached over its port
zk://zk1:2181,zk2:2181,zk3:2181/tanist      a ZooKeeper ensemble, and where in it our records begin
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tanist.clock import Clock, SystemClock
from tanist.coord.changes import check_path
from tanist.coord.controller_wire import NoRegistryThere
from tanist.coord.registry import Registry
from tanist.coord.remote_registry import RemoteRegistry
from tanist.coord.sqlite_registry import SqliteHome
from tanist.coord.zookeeper_registry import ZooKeeperRegistry
from tanist.errors import ConfigError
from tanist.remoting import TlsSettings

KEY = "coordinator"
"""The setting that names the registry."""

SESSION_TIMEOUT_S = 4.0
"""How long a session outlives the silence of its owner, unless told otherwise."""

_ALLOWED = "a path, sqlite:///path, tanist://host:port, or zk://host:port,host:port,host:port/path"
_CONTROLLER_PORT = 9878
_ZOOKEEPER_PORT = 2181
_ZOOKEEPER_ROOT = "tanist"


@dataclass(frozen=True, slots=True)
class SqlitePlace:
    """A registry in a file."""

    path: Path


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """The registry of a controller."""

    address: str


@dataclass(frozen=True, slots=True)
class ZooKeeperPlace:
    """A registry below one path of a ZooKeeper ensemble."""

    hosts: tuple[str, ...]
    path: str


@asynccontextmanager
async def open_registry(
    url: str,
    *,
    timeout_s: float = SESSION_TIMEOUT_S,
    clock: Clock | None = None,
    tls: TlsSettings | None = None,
) -> AsyncGenerator[Registry]:
    """Open the registry that ``url`` names, and a session with it that ends with the block.

    ``tls`` is for the way to a controller. Raises ConfigError if ``url`` names none, StoreLocked or
    ForeignFile if a file can not be used, and RegistryUnavailable if nobody answers.

        async with open_registry("sqlite:///var/lib/tanist/registry.db") as registry:
            await registry.commit(Create("/groups/broker-a", b"{}"))
    """
    clock = clock or SystemClock()
    match parse_place(url):
        case SqlitePlace(path):
            async with SqliteHome(path, clock) as home, home.session(timeout_s) as registry:
                yield registry
        case RemotePlace(address):
            try:
                async with RemoteRegistry(address, timeout_s=timeout_s, clock=clock, tls=tls) as registry:
                    yield registry
            except NoRegistryThere as error:
                raise ConfigError(KEY, url, f"what its controllers use: {error}") from error
        case ZooKeeperPlace(hosts, path):
            async with ZooKeeperRegistry(",".join(hosts), path, timeout_s=timeout_s, clock=clock) as registry:
                yield registry


def parse_place(url: str) -> SqlitePlace | RemotePlace | ZooKeeperPlace:
    """What ``url`` names; ConfigError if it makes no sense."""
    scheme, separator, rest = url.partition("://")
    if not separator and url:
        return SqlitePlace(Path(url))
    if scheme == "sqlite" and rest.startswith("/") and rest != "/":
        return SqlitePlace(Path(rest))
    try:
        if scheme == "tanist":
            return RemotePlace(_host(rest, _CONTROLLER_PORT))
        if scheme == "zk":
            hosts, _, path = rest.partition("/")
            return ZooKeeperPlace(
                tuple(_host(each, _ZOOKEEPER_PORT) for each in hosts.split(",")),
                check_path(f"/{path or _ZOOKEEPER_ROOT}"),
            )
    except ValueError as error:
        raise ConfigError(KEY, url, f"{_ALLOWED}: {error}") from error
    raise ConfigError(KEY, url, _ALLOWED)


def _host(text: str, default_port: int) -> str:
    host, separator, port = text.strip().rpartition(":")
    if not separator:
        host, port = port, str(default_port)
    if not host or set(host) & set(",/") or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{text!r} is no host:port")
    return f"{host}:{port}"
