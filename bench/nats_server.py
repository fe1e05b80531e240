"""NATS JetStream with one stream that is kept in files: what a send costs elsewhere, nothing replicated."""

import json
import shutil
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.lean_client import NATS_SUBJECT
from tests.support.partners import PartnerMissing
from tests.support.process import ForeignProcess, ProcessFailed
from tests.support.rocketmq.cluster import free_broker_port

_READY = "Server is ready"
_START_TIMEOUT_S = 20.0
_MOST_MESSAGES = 300_000


@contextmanager
def nats_server(home: Path) -> Generator[tuple[str, int]]:
    """Run it, and have its stream made; its address and process.

    Raises PartnerMissing where there is no NATS.
    """
    program = shutil.which("nats-server", path="/usr/sbin:/usr/local/sbin") or shutil.which("nats-server")
    if program is None:
        raise PartnerMissing("nats-server is missing: install nats-server, then run this again")
    port = free_broker_port()
    command = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(home / "js")]
    with ForeignProcess("nats", command, directory=home) as process:
        process.wait_for_output(_READY, timeout_s=_START_TIMEOUT_S)
        _make_stream(port)
        yield f"127.0.0.1:{port}", process.pid


def _make_stream(port: int) -> None:
    settings = {
        "name": "BENCH",
        "subjects": [NATS_SUBJECT],
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "max_msgs": _MOST_MESSAGES,
        "num_replicas": 1,
    }
    body = json.dumps(settings).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=_START_TIMEOUT_S) as peer:
        peer.sendall(b'CONNECT {"verbose":false}\r\nSUB made 1\r\n')
        peer.sendall(b"PUB $JS.API.STREAM.CREATE.BENCH made %d\r\n%b\r\n" % (len(body), body))
        answer = b""
        while b'"created"' not in answer:
            answer += peer.recv(1 << 16)
            if b'"error"' in answer:
                raise ProcessFailed(f"NATS made no stream: {answer[-500:].decode(errors='replace')}")
