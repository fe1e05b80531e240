"""Strangers at every port of a whole cluster, while a producer sends and a slave follows: nobody feels them.

One corpus for all ports: what no peer of any of them would say (tanist.chaos.hostile), good sessions of other
ports, an old one of the HA port, half a frame and silence, a byte a second, questions whose answers nobody
reads.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from tanist.chaos.hostile import SAYINGS
from tanist.protocol import Command, RequestCode, ResponseCode, encode_command
from tanist.protocol.headers.nameserver import GetRouteRequest
from tests.support.attacked import HaStatus, Master
from tests.support.console_process import ConsoleProcess
from tests.support.nameserver import NameServerProcess
from tests.support.process import ForeignProcess
from tests.support.relay import Relay
from tests.support.requests import TOPIC, send_request
from tests.support.rocketmq.cluster import free_port
from tests.support.strangers import harass
from tests.support.tanist_cluster import BrokerProcess
from tests.support.tanist_group import ControllerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.takes(30)

_HOST: Final = "127.0.0.1"
_SECRET: Final = "the secret of the pair, long and random"
_ROUNDS = 2
_MOST_LAG_BYTES = 1 << 20
_MOST_GROWN_BYTES = 24 << 20
_PAUSE_S = 0.002
_TIMEOUT_S = 10.0
_PATIENCE_MS = 30_000
_TOLD_CHARACTERS = 6_000

_HEARTBEAT: Final = encode_command(Command.request(RequestCode.HEART_BEAT, body=b'{"clientID":"stranger"}'))
_QUESTIONS: Final[Mapping[str, Callable[[], Command]]] = {
    "name server": lambda: Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=TOPIC)),
    "controller": lambda: Command.request(RequestCode.CONTROLLER_GET_METADATA_INFO),
    "master": lambda: send_request(b"still here"),
    "master's fast port": lambda: send_request(b"still here"),
    "slave": lambda: Command.request(RequestCode.GET_BROKER_CONFIG),
}
_PAGES: Final[Mapping[str, str]] = {
    "master's metrics": "/metrics",
    "slave's metrics": "/metrics",
    "console": "/health/ready",
    "console's metrics": "/metrics",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """All servers that there are, and what a good slave said to its master."""

    master: Master
    processes: Mapping[str, ForeignProcess]
    ports: Mapping[str, str]
    session: bytes

    def rss_bytes(self) -> dict[str, int]:
        """What each server has in memory, with the process that serves for it."""
        return {name: _rss_bytes(process.pid) for name, process in self.processes.items()}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as running:
        scene = _start(folder, running)
        yield scene
        # Shown with a failure: why a server has hung up on somebody, or began anew.
        for name, process in scene.processes.items():
            sys.stdout.write(f"{name}:\n{process.output()[-_TOLD_CHARACTERS:]}\n")


def _start(folder: Path, running: ExitStack) -> Scene:
    keep = running.enter_context
    names = keep(NameServerProcess(folder / "names"))
    controller = keep(ControllerProcess(folder / "controller"))
    ha, console_metrics = f"{_HOST}:{free_port()}", f"{_HOST}:{free_port()}"
    cable = keep(Relay(ha))

    def start(home: str, **role: Any) -> tuple[BrokerProcess, str]:
        metrics_port = free_port()
        broker = BrokerProcess(
            folder / home,
            names.address,
            haSecret=_SECRET,
            coordinator=f"tanist://{controller.address}",
            # A busy machine keeps each of them waiting for longer than any stranger does.
            slaveTimeout=_PATIENCE_MS,
            coordinatorTimeoutMillis=_PATIENCE_MS,
            brokerWatchdogMills=_PATIENCE_MS,
            metricsExporterType="PROM",
            metricsPromExporterPort=metrics_port,
            **role,
        )
        return keep(broker), f"{_HOST}:{metrics_port}"

    master, metrics = start("master", brokerRole="SYNC_MASTER", haListenPort=int(ha.rpartition(":")[2]))
    slave, slave_metrics = start("slave", brokerRole="SLAVE", brokerId=1, haMasterAddress=cable.address)
    console = keep(ConsoleProcess(folder / "console", names.address, "--metrics", console_metrics))
    asked = Master(master.address, ha)
    running.callback(asked.close)
    asked.wait_in_step()
    return Scene(
        asked,
        {
            "name server": names.process,
            "controller": controller.process,
            "master": master.process,
            "slave": slave.process,
            "console": console.process,
        },
        {
            "name server": names.address,
            "controller": controller.address,
            "master": master.address,
            "master's fast port": _fast(master.address),
            "HA": ha,
            "master's metrics": metrics,
            "slave": slave.address,
            "slave's metrics": slave_metrics,
            "console": console.address.removeprefix("http://").rstrip("/"),
            "console's metrics": console_metrics,
        },
        bytes(cable.calls[0]),
    )


def _fast(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) - 2}"


def _rss_bytes(pid: int) -> int:
    process = psutil.Process(pid)
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


@dataclass(slots=True)
class Work:
    """What a producer and an operator saw beside the strangers."""

    codes: list[int] = field(default_factory=list[int])
    """The answer of each send."""
    statuses: list[HaStatus] = field(default_factory=list[HaStatus])
    errors: list[Exception] = field(default_factory=list[Exception])


@contextmanager
def working(scene: Scene) -> Generator[Work]:
    """A producer sends while the block lasts, and an operator looks."""
    work = Work()
    is_over = threading.Event()

    def produce() -> None:
        try:
            with Wire(scene.master.address) as wire:
                while not is_over.wait(_PAUSE_S):
                    work.codes.append(wire.ask(send_request(b"work")).code)
                    if len(work.codes) % 20 == 0:
                        work.statuses.append(scene.master.status())
        except (OSError, AssertionError) as error:
            work.errors.append(error)

    producer = threading.Thread(target=produce, name="producer")
    producer.start()
    try:
        yield work
    finally:
        is_over.set()
        producer.join()


def test_strangers_at_every_port_are_felt_by_nobody(scene: Scene) -> None:
    sayings = [*SAYINGS.values(), scene.session, _HEARTBEAT]
    # What is asked for the first time loads the code that answers it.
    asyncio.run(harass(scene.ports.values(), sayings))
    before = scene.master.status()
    before_bytes = scene.rss_bytes()
    with working(scene) as work:
        for _ in range(_ROUNDS):
            count = len(work.codes)
            asyncio.run(harass(scene.ports.values(), sayings))
            assert len(work.codes) > count
    assert not work.errors
    # Each send is answered when the slave has it, and none of them was refused.
    assert set(work.codes) == {ResponseCode.SUCCESS}
    check_lag(before, work.statuses)
    scene.master.wait_in_step()
    assert scene.master.status().refused_count > before.refused_count
    grown = {name: now - before_bytes[name] for name, now in scene.rss_bytes().items()}
    assert max(grown.values()) < _MOST_GROWN_BYTES, grown
    check_health(scene)


def check_lag(before: HaStatus, statuses: list[HaStatus]) -> None:
    """One slave all the time, on the connection that it had, and not far behind."""
    (slave,) = before.links
    assert {(status.in_sync_count, len(status.links), status.links[0].addr) for status in statuses} == {
        (1, 1, slave.addr)
    }
    acked = [slave.acked_to, *(status.links[0].acked_to for status in statuses)]
    assert acked == sorted(acked)
    assert all(0 <= status.links[0].lag_bytes < _MOST_LAG_BYTES for status in statuses)


def check_health(scene: Scene) -> None:
    """Every server runs, answers, and has told of no error of its own."""
    for name, process in scene.processes.items():
        assert process.is_running, name
        assert "Traceback" not in process.output(), name
    for name, request in _QUESTIONS.items():
        with Wire(scene.ports[name]) as wire:
            assert wire.ask(request()).code == ResponseCode.SUCCESS, name
    for name, path in _PAGES.items():
        page = HTTPConnection(scene.ports[name], timeout=_TIMEOUT_S)
        page.request("GET", path)
        assert page.getresponse().status == 200, name
        page.close()
