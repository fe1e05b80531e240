"""Redis and one replica of it, for what a replicated write costs elsewhere.

Both append to a file that is synced once a second, which is what a broker with ASYNC_FLUSH promises.
"""

import shutil
import socket
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.lean_client import redis_command
from tests.support.partners import PartnerMissing
from tests.support.process import ForeignProcess, ProcessFailed
from tests.support.rocketmq.cluster import free_broker_port

_READY = "Ready to accept connections"
_START_TIMEOUT_S = 20.0
_POLL_S = 0.05


@dataclass(frozen=True)
class RedisPair:
    """A master that a replica follows."""

    address: str
    pids: Sequence[int]


@contextmanager
def redis_pair(home: Path) -> Generator[RedisPair]:
    """Run both. Raises PartnerMissing where there is no Redis."""
    program = shutil.which("redis-server")
    if program is None:
        raise PartnerMissing("redis-server is missing: install redis-server, then run this again")
    with ExitStack() as running:
        port, replica_port = free_broker_port(), free_broker_port()
        master = _start(running, program, home / "redis-master", port)
        to_follow = ("--replicaof", "127.0.0.1", str(port))
        replica = _start(running, program, home / "redis-replica", replica_port, *to_follow)
        _wait_for_link(replica_port)
        yield RedisPair(f"127.0.0.1:{port}", (master.pid, replica.pid))


def _start(running: ExitStack, program: str, home: Path, port: int, *options: str) -> ForeignProcess:
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(home), "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", "everysec", *options]
    process = running.enter_context(ForeignProcess("redis", command, directory=home))
    process.wait_for_output(_READY, timeout_s=_START_TIMEOUT_S)
    return process


def _wait_for_link(replica_port: int) -> None:
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    with socket.create_connection(("127.0.0.1", replica_port)) as peer:
        while time.monotonic() < deadline_s:
            peer.sendall(redis_command(b"INFO", b"replication"))
            if b"master_link_status:up" in peer.recv(1 << 16):
                return
            time.sleep(_POLL_S)
    raise ProcessFailed(f"the replica of Redis did not follow its master within {_START_TIMEOUT_S} s")
