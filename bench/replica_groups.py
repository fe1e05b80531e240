"""A master and its slaves, ours and Apache RocketMQ's, started and asked in the same way.

with TanistGroup(home) as group:
    master = group.start_master("SYNC_MASTER")
    slave = group.start_slave(1)
    print(slaves_at(master))
"""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.lean_client import send_request
from bench.processes import cpu_s
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
)
from tanist.protocol.java_json import decode_java_json
from tests.support.process import ForeignProcess, ProcessFailed
from tests.support.rocketmq.cluster import RocketMQ, free_broker_port
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

QUEUES = 8
_SECRET = "the secret of the benchmark"
_WAIT_S = 60.0
_POLL_S = 0.005

STORE: dict[str, object] = {
    "flushDiskType": "ASYNC_FLUSH",
    "mappedFileSizeCommitLog": 1 << 30,
    "mappedFileSizeConsumeQueue": 300_000 * 20,
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
}


class Node:
    """One running broker, and a connection on which it is asked how far it is."""

    def __init__(self, address: str, process: ForeignProcess, store: Path) -> None:
        self.address = address
        self.store = store
        self._process = process
        self.pid = process.pid
        self._wire = Wire(address)

    def cpu_s(self) -> float:
        return cpu_s(self.pid)

    def status(self) -> HARuntimeInfo:
        answer = self._wire.ask(Command.request(RequestCode.GET_BROKER_HA_STATUS))
        return decode_java_json(answer.body, HARuntimeInfo)

    def ask(self, request: Command) -> Command:
        return self._wire.ask(request)

    def queue_end(self, topic: str, queue_id: int) -> int:
        """How many messages of a queue can be read."""
        request = GetMaxOffsetRequest(topic=topic, queue_id=queue_id)
        answer = self._wire.ask(Command.request(RequestCode.GET_MAX_OFFSET, request))
        return answer.header(QueueOffsetResponse).queue_offset

    def consumer_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group stands as this broker knows it; None before it knows of it."""
        request = QueryConsumerOffsetRequest(consumer_group=group, topic=topic, queue_id=queue_id)
        answer = self._wire.ask(Command.request(RequestCode.QUERY_CONSUMER_OFFSET, request))
        known = answer.code == ResponseCode.SUCCESS
        return answer.header(ConsumerOffsetResponse).consumer_offset if known else None

    def readable(self, topic: str) -> int:
        """How many messages of a topic can be read."""
        return sum(self.queue_end(topic, queue_id) for queue_id in range(QUEUES))

    def destroy(self) -> None:
        """End it as a crash would, and remove all it has written: the next one begins with nothing."""
        self._wire.__exit__(None, None, None)
        self._process.kill()
        shutil.rmtree(self.store)


class ReplicaGroup(ABC):
    """A name server, a master and slaves. Everything ends with the block."""

    name: str
    name_server: str

    def __init__(self, home: Path, **store: object) -> None:
        """``store`` overrides what both sides are set to."""
        self._home = home
        self._store = {**STORE, **store}
        self._running = ExitStack()
        self._started = 0

    def __enter__(self) -> Self:
        with self._running:
            self._start_name_server()
            self._running = self._running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def start_master(self, role: str, **settings: object) -> Node:
        return self._start(brokerId=0, brokerRole=role, **settings)

    def start_slave(self, number: int) -> Node:
        """Start an empty slave."""
        return self._start(brokerId=number, brokerRole="SLAVE")

    @abstractmethod
    def _start_name_server(self) -> None: ...

    @abstractmethod
    def _start(self, **settings: object) -> Node: ...

    def _next_home(self) -> Path:
        self._started += 1
        return self._home / f"node-{self._started}"


class TanistGroup(ReplicaGroup):
    name = "Tanist"

    def _start_name_server(self) -> None:
        self.name_server = self._running.enter_context(NameServerProcess(self._home / "names")).address

    def _start(self, **settings: object) -> Node:
        home = self._next_home()
        given = {**self._store, **settings, "haListenPort": free_broker_port(), "haSecret": _SECRET}
        broker = BrokerProcess(home, self.name_server, name="broker-a", **given)
        self._running.enter_context(broker)
        return Node(broker.address, broker.process, home / "store")


class RocketMQGroup(ReplicaGroup):
    """RocketMQ's pair of fixed roles. Its SYNC_MASTER waits for a slave only if it is told to."""

    name = "RocketMQ"

    def _start_name_server(self) -> None:
        self._rocketmq = self._running.enter_context(RocketMQ(self._home, flags=FULL_SPEED))
        self.name_server = self._rocketmq.name_server
        self.ha_address = ""

    def _start(self, **settings: object) -> Node:
        properties: dict[str, Any] = {**self._store, **settings, "inSyncReplicas": 2}
        broker = self._rocketmq.start_broker(store_dir=self._next_home(), properties=properties)
        if not settings["brokerId"]:
            self.ha_address = f"127.0.0.1:{broker.ha_port}"
        return Node(broker.address, broker.process, broker.store_dir)


def wait_until(is_so: Callable[[], bool], *, what: str, poll_s: float = _POLL_S) -> float:
    """Ask again and again; the time at which it was so."""
    deadline_s = time.perf_counter() + _WAIT_S
    while not is_so():
        if time.perf_counter() > deadline_s:
            raise ProcessFailed(f"{what}: not within {_WAIT_S:g} s")
        time.sleep(poll_s)
    return time.perf_counter()


def make_topic(name: str, topic: str, *, master: str, replicas: Iterable[str]) -> None:
    """Have a topic that all replicas know of: RocketMQ's slaves ask for tables every ten seconds."""
    with Wire(master) as wire:
        wait_until(
            lambda: wire.ask(send_request(topic, 0, b"first")).code == ResponseCode.SUCCESS,
            what=f"{name} takes a message",
        )
    for address in replicas:
        wait_until(lambda address=address: _knows_topic(address, topic), what=f"{name} knows the topic")


def _knows_topic(address: str, topic: str) -> bool:
    with Wire(address) as wire:
        answer = wire.ask(Command.request(RequestCode.GET_ALL_TOPIC_CONFIG))
    return f'"{topic}"'.encode() in bytes(answer.body)


def acked_to(status: HARuntimeInfo) -> int:
    """How far the slave is that is furthest behind; 0 without one."""
    return max(0, min((slave.acked_to for slave in status.slaves), default=0))


def wait_in_step(master: Node, *, slaves: int = 1) -> float:
    """Wait until so many slaves have all that the master has."""

    def is_in_step() -> bool:
        status = master.status()
        return len(status.slaves) >= slaves and acked_to(status) >= status.log_end

    return wait_until(is_in_step, what=f"{slaves} slaves in step with {master.address}")
