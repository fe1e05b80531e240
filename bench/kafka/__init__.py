"""Apache Kafka with one node, and Spark's source for it, all from Maven: what a read costs there."""

import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import built
from tests.support.partners import java_tool
from tests.support.process import ForeignProcess, ProcessFailed
from tests.support.rocketmq.cluster import free_port

_HERE = Path(__file__).parent
_BUILD = built.BUILD / "kafka"
_START_S = 60.0
_POLL_S = 0.1
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
num.partitions={partitions}
"""


def source_jars() -> str:
    """The jars of Spark's Kafka source, as Spark is told of them. Raises PartnerMissing if they lack."""
    return ",".join(sorted(str(jar) for jar in _jars("source").glob("*.jar")))


@contextmanager
def kafka_server(home: Path, *, partitions: int) -> Generator[str]:
    """Run it; its address. Topics are made when they are written to, with so many partitions.

    Raises PartnerMissing where Maven does not bring it.
    """
    port, config = free_port(), home / "server.properties"
    home.mkdir(parents=True)
    config.write_text(
        _SETTINGS.format(port=port, controller=free_port(), data=home / "data", partitions=partitions)
    )
    java = [str(java_tool("java")), "-Xmx512m", "-cp", f"{_jars('server')}/*"]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    formatted = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)]
    subprocess.run(formatted, check=True, capture_output=True)
    with ForeignProcess("kafka", [*java, "kafka.Kafka", str(config)], directory=home) as process:
        _wait_for(port, process)
        yield f"127.0.0.1:{port}"


def _jars(name: str) -> Path:
    with built.locked(_BUILD):
        return built.jars(_HERE / f"{name}.xml", of=f"Kafka ({name})", under=_BUILD)


def _wait_for(port: int, process: ForeignProcess) -> None:
    deadline_s = time.monotonic() + _START_S
    while process.is_running and time.monotonic() < deadline_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _POLL_S):
            return
        time.sleep(_POLL_S)
    raise ProcessFailed(f"Kafka does not answer: {process.output_file.read_text()[-2000:]}")
