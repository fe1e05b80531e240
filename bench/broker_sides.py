"""A broker beside Apache RocketMQ's, each with the producer of one Java process that is connected to it."""

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from bench.figures import OURS
from bench.lean_client import Load
from bench.processes import cpu_s
from bench.replica_groups import QUEUES, STORE
from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import GetMaxOffsetRequest
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.stock_client import Producer, StockClients
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

PEER = "RocketMQ"
BODY_BYTES = 1024
LINE = "5.3.3"
_SETTLED_S = 0.2


@dataclass(frozen=True)
class Work:
    """One kind of load: so many threads, each of which keeps so much under way."""

    name: str
    threads: int
    batch: int = 1
    in_flight: int = 0
    is_one_way: bool = False


class Side:
    """One broker, and what it is sent to and read with."""

    def __init__(
        self,
        name: str,
        *,
        address: str,
        pid: int,
        name_server: str,
        clients: StockClients,
        producer: Producer,
    ) -> None:
        self.name = name
        self.process = psutil.Process(pid)
        self._address = address
        self._name_server = name_server
        self._clients = clients
        self._producer = producer
        self._backlog = 0
        self._group_count = 0

    @property
    def client_pid(self) -> int:
        return self._clients.process.pid

    def send(self, work: Work, *, duration_ms: int, topic: str = "Bench") -> tuple[Load, float]:
        """Send for a time; what came of it, and the broker's CPU seconds.

        What nobody answers is counted at the broker, and lasts until no more of it comes.
        """
        there = self.stored(topic) if work.is_one_way else 0
        used_s, began_s = cpu_s(self.process.pid), time.perf_counter()
        seen = self._measure(
            "load",
            name=self._producer.name,
            topic=topic,
            bodyBytes=BODY_BYTES,
            durationMs=duration_ms,
            threads=work.threads,
            batch=work.batch,
            inFlight=work.in_flight,
            isOneWay=work.is_one_way,
        )
        if not work.is_one_way:
            return seen
        count, ended_s = self._settled(topic, there)
        load = msgspec.structs.replace(seen[0], count=count, rate=count / (ended_s - began_s))
        return load, cpu_s(self.process.pid) - used_s

    def fill_backlog(self, count: int) -> None:
        fill = {"topic": "Backlog", "bodyBytes": BODY_BYTES, "durationMs": 500, "threads": 4, "batch": 64}
        while self._backlog < count:
            self._backlog += self._measure("load", name=self._producer.name, **fill)[0].count

    def drain(self, *, waiting: int = 0) -> tuple[Load, float]:
        """Read the whole backlog with a new group.

        If ``waiting`` is set, so many messages of a queue may wait for the listener before the client rests.
        """
        self._group_count += 1
        return self._measure(
            "drain",
            nameServer=self._name_server,
            topic="Backlog",
            group=f"{self.name}-{self._group_count}",
            count=self._backlog,
            waiting=waiting,
        )

    def wait_for_one(self, count: int) -> tuple[Load, float]:
        """Send to a consumer that waits, again and again."""
        self._group_count += 1
        return self._measure(
            "latency",
            name=self._producer.name,
            nameServer=self._name_server,
            # A new topic each time: a new group reads all that there is.
            topic=f"Latency{self._group_count}",
            group=f"{self.name}-{self._group_count}",
            bodyBytes=BODY_BYTES,
            count=count,
        )

    def stored(self, topic: str) -> int:
        """How many messages of a topic the broker has."""
        with Wire(self._address) as wire:
            return sum(_queue_end(wire, topic, queue_id) for queue_id in range(QUEUES))

    def resident_mb(self) -> float:
        """All that it has in memory, the pages of mapped files among it."""
        return self.process.memory_info().rss / 1e6

    def anonymous_mb(self) -> float:
        """Without the pages of mapped files, which the system takes back when it needs them."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (kilobytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:"))
        return int(kilobytes) * 1024 / 1e6

    def _settled(self, topic: str, there: int) -> tuple[int, float]:
        """How many messages more there are once no more come, and when the last of them came."""
        count, at_s = self.stored(topic) - there, time.perf_counter()
        while time.perf_counter() - at_s < _SETTLED_S:
            now = self.stored(topic) - there
            if now != count:
                count, at_s = now, time.perf_counter()
        return count, at_s

    def _measure(self, step: str, **options: object) -> tuple[Load, float]:
        used_s = cpu_s(self.process.pid)
        load = msgspec.convert(self._clients.process.do(step, **options), Load)
        return load, cpu_s(self.process.pid) - used_s


def _queue_end(wire: Wire, topic: str, queue_id: int) -> int:
    request = GetMaxOffsetRequest(topic=topic, queue_id=queue_id)
    answer = wire.ask(Command.request(RequestCode.GET_MAX_OFFSET, request))
    return answer.header(QueueOffsetResponse).queue_offset if answer.code == 0 else 0


@contextmanager
def both_sides(home: Path) -> Generator[tuple[Side, Side]]:
    """Ours and RocketMQ's: a name server and a master each, and one Java process for both."""
    with ExitStack() as running:
        clients = running.enter_context(StockClients(LINE, home / "clients", flags=FULL_SPEED))
        names = running.enter_context(NameServerProcess(home / "tanist-ns"))
        ours = running.enter_context(BrokerProcess(home / "tanist", names.address, name="broker-a", **STORE))
        rocketmq = running.enter_context(RocketMQ(home / "rocketmq", flags=FULL_SPEED))
        theirs = rocketmq.start_broker(properties=STORE)

        def side(name: str, broker: tuple[str, int], name_server: str) -> Side:
            producer = clients.producer(name_server, topicQueues=QUEUES)
            address, pid = broker
            return Side(
                name, address=address, pid=pid, name_server=name_server, clients=clients, producer=producer
            )

        yield (
            side(OURS, (ours.address, ours.process.pid), names.address),
            side(PEER, (theirs.address, theirs.process.pid), rocketmq.name_server),
        )
