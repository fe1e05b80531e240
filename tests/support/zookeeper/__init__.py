"""Apache ZooKeeper as a test partner: one server, or an ensemble whose members a test kills and pauses.

    with Ensemble(tmp_path, size=3) as ensemble:
        ensemble.leader().pause()

Its times are short, so that a test need not wait: a tick is 200 ms, the shortest session 1 s.
"""

import contextlib
import functools
import os
import signal
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import built, partners
from tests.support.process import ForeignProcess, ProcessFailed

_HERE = Path(__file__).parent
_BUILD = (built.BUILD / "zookeeper").resolve()
_HOST = "127.0.0.1"
_START_TIMEOUT_S = 60.0
_START_ATTEMPTS = 3
_ANSWER_TIMEOUT_S = 1.0
_POLL_S = 0.02
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_FLAGS = (
    *("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
    # A killed server leaves what it wrote to the system; that the disk has it is not what is tested here.
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Djava.net.preferIPv4Stack=true",
)
_SETTINGS = """\
tickTime=200
minSessionTimeout=1000
maxSessionTimeout=20000
initLimit=50
syncLimit=5
admin.enableServer=false
4lw.commands.whitelist=srvr
clientPortAddress=127.0.0.1
"""


@functools.cache
def install() -> Path:
    """Return the directory of its jars, fetched first where they are not there yet."""
    with built.locked(_BUILD):
        return built.jars(_HERE / "pom.xml", of="Apache ZooKeeper", under=_BUILD)


class Server:
    """One server. Whoever restarts it finds its data."""

    def __init__(self, directory: Path, number: int, port: int, settings: str) -> None:
        self.address = f"{_HOST}:{port}"
        self._directory = directory
        self._name = f"zookeeper-{number}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "myid").write_text(str(number))
        (directory / "zoo.cfg").write_text(f"{settings}dataDir={directory}\nclientPort={port}\n")
        self._process: ForeignProcess | None = None

    def start(self) -> None:
        """Start it; ``wait_until_serving`` says when it is there."""
        java = partners.java_tool("java")
        command = [java, *_FLAGS, "-cp", f"{install()}/*", _MAIN_CLASS, self._directory / "zoo.cfg"]
        self._process = ForeignProcess(self._name, command, directory=self._directory)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def pause(self) -> None:
        """Have it stand still; its connections stay open."""
        pid = self._running.pid
        os.kill(pid, signal.SIGSTOP)
        # It is told so, and goes on for a moment: on a busy machine long enough to answer.
        while any(") T" not in stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")):
            time.sleep(_POLL_S)

    def resume(self) -> None:
        os.kill(self._running.pid, signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def mode(self) -> str:
        """``standalone``, ``leader`` or ``follower``; empty while it does not serve."""
        host, _, port = self.address.rpartition(":")
        answer = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, int(port)), _ANSWER_TIMEOUT_S) as ask,
        ):
            ask.sendall(b"srvr")
            while part := ask.recv(4096):
                answer += part
        return answer.decode().partition("Mode: ")[2].partition("\n")[0]

    def wait_until_serving(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self.mode:
            if not self._running.is_running:
                raise ProcessFailed(f"{self._name} ended:\n{self._running.output()[-3000:]}")
            if time.monotonic() > deadline:
                raise ProcessFailed(f"{self._name} did not serve within {_START_TIMEOUT_S} s")
            time.sleep(_POLL_S)

    @property
    def _running(self) -> ForeignProcess:
        assert self._process is not None, f"{self._name} does not run"
        return self._process


class Ensemble:
    """Some servers that agree, or one that has nobody to ask. Leaving the block kills them."""

    def __init__(self, directory: Path, *, size: int) -> None:
        for attempt in range(1, _START_ATTEMPTS + 1):
            self.servers = _make_servers(directory / str(attempt), size)
            try:
                for server in self.servers:
                    server.start()
                self.wait_until_serving()
            except BaseException as error:
                self._kill()
                # Somebody else may have taken a port between its choice and its use.
                if not isinstance(error, ProcessFailed) or attempt == _START_ATTEMPTS:
                    raise
            else:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    @property
    def hosts(self) -> str:
        """Where clients find it."""
        return ",".join(server.address for server in self.servers)

    def leader(self) -> Server:
        return next(server for server in self.servers if server.mode == "leader")

    def followers(self) -> list[Server]:
        return [server for server in self.servers if server.mode == "follower"]

    def wait_until_serving(self) -> None:
        """Wait until every member serves and all agree on who leads; one that was paused learns it late."""
        for server in self.servers:
            server.wait_until_serving()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while len(self.servers) > 1 and len(self.followers()) != len(self.servers) - 1:
            if time.monotonic() > deadline:
                raise ProcessFailed(f"no agreement on a leader within {_START_TIMEOUT_S} s")
            time.sleep(_POLL_S)

    def _kill(self) -> None:
        for server in self.servers:
            server.kill()


def _make_servers(directory: Path, size: int) -> list[Server]:
    with contextlib.ExitStack() as held:
        ports = iter([_free_port(held) for _ in range(3 * size)])
        members = "".join(
            f"server.{number}={_HOST}:{next(ports)}:{next(ports)}\n"
            for number in range(1, size + 1)
            if size > 1
        )
        client_ports = [next(ports) for _ in range(size)]
    return [
        Server(directory / str(number), number, port, _SETTINGS + members)
        for number, port in enumerate(client_ports, 1)
    ]


def _free_port(held: contextlib.ExitStack) -> int:
    # All are held until the last is chosen, so that they differ.
    return held.enter_context(socket.create_server((_HOST, 0))).getsockname()[1]
