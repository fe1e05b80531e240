"""Orders to a cluster that runs, over a socket that only its owner may open: one line of JSON each way."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from tanist.errors import MQError

_MAX_LINE_BYTES = 1 << 16
_ANSWER_S = 60.0
_POINTER = "control"
"""The file in a cluster's folder that says where its socket is: paths of sockets have to be short."""


class NotRunning(MQError):
    """No cluster runs there."""


class OrderFailed(MQError):
    """The cluster says that it did not do it, and why."""


class Act(StrEnum):
    """What can be asked for."""

    STATUS = "status"
    STOP = "stop"
    KILL = "kill"
    RESTART = "restart"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One order. ``whom`` is a member's name, ``master``, or empty for all that are dead."""

    act: Act
    whom: str = ""


class MemberState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How one process is."""

    name: str
    address: str
    state: str
    """``runs``, ``killed`` or ``ended``."""
    pid: int | None
    is_master: bool
    log_file: str


class ClusterState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the cluster is, and what was done."""

    mode: str
    home: str
    members: list[MemberState]
    done: str = ""
    error: str | None = None


Obey = Callable[[Order], Awaitable[ClusterState]]


@asynccontextmanager
async def listening(home: Path, obey: Obey, path: Path) -> AsyncGenerator[None]:
    """Take orders while the block lasts, at ``path``."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            try:
                order = msgspec.json.decode(await reader.readline(), type=Order)
                state = await obey(order)
            except (msgspec.MsgspecError, MQError, ValueError) as error:
                state = ClusterState(mode="", home=str(home), members=[], error=str(error))
            writer.write(msgspec.json.encode(state) + b"\n")
            with contextlib.suppress(OSError):
                await writer.drain()

    server = await asyncio.start_unix_server(answer, path, limit=_MAX_LINE_BYTES)
    try:
        yield
    finally:
        server.close()


@contextlib.contextmanager
def control_place(home: Path) -> Generator[Path]:
    """A path for the socket in a folder that nobody else can enter, and its name in ``home``, for a block."""
    pointer = home / _POINTER
    with tempfile.TemporaryDirectory(prefix="tanist-up-") as folder:
        path = Path(folder) / "control.sock"
        pointer.write_text(str(path), encoding="utf-8")
        try:
            yield path
        finally:
            pointer.unlink(missing_ok=True)


def find_socket(home: Path) -> Path:
    """Where the cluster of a folder takes orders. Raises NotRunning."""
    try:
        return Path((home / _POINTER).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotRunning(f"no cluster runs in {home}; start it with: tanist up --home {home}") from error


async def give_order(path: Path, order: Order) -> ClusterState:
    """Have a cluster do something; how it is then. Raises NotRunning or OrderFailed."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(path, limit=_MAX_LINE_BYTES)
            with contextlib.closing(writer):
                writer.write(msgspec.json.encode(order) + b"\n")
                line = await reader.readline()
    except TimeoutError as error:
        raise OrderFailed(f"the cluster has not answered for {_ANSWER_S:g} s") from error
    except OSError as error:
        raise NotRunning(f"no cluster answers at {path} ({os.strerror(error.errno or 0)})") from error
    state = msgspec.json.decode(line, type=ClusterState)
    if state.error is not None:
        raise OrderFailed(state.error)
    return state
