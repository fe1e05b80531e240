"""A broker whose log grows: how it starts after a stop and a kill, finds a time in it, and fills a slave."""

import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.figures import OURS, Figure, Series
from bench.ha_catch_up import TOPIC, catch_up, fill
from bench.lean_sends import LeanClient
from bench.replica_groups import STORE, Node
from bench.turns import Allowance
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.offsets import SearchOffsetRequest
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

_ROW = "log-sizes"
_GIB = 1 << 30
_SIZES = (1, 4, 16)
_ROOM = 3.0
"""So many times the size of the log has to be free on the disk: a slave has it too, and others write."""
_LOOKUPS = 200
_SECRET = "the secret of the benchmark"


def log_size_figures(home: Path, allowance: Allowance) -> list[Figure]:
    figures: list[Figure] = []
    with (
        LeanClient(home / "lean") as client,
        NameServerProcess(home / "names") as names,
        _broker(home / "master", names, brokerId=0, brokerRole="ASYNC_MASTER") as broker,
        ExitStack() as running,
    ):
        slaves = _Slaves(home, names, running)
        for gib in _SIZES:
            size = allowance.amount(gib * _GIB)
            free = shutil.disk_usage(home).free
            if figures and allowance.is_over:
                allowance.note(f"a log of {gib} GiB: left out, for want of time")
                continue
            if free < size * _ROOM:
                allowance.note(f"a log of {gib} GiB: left out, {free / _GIB:.0f} GiB are free on this disk")
                continue
            fill(client, _node(broker), until=size)
            figures += _measure(broker, slaves, gib)
    return figures


@dataclass(frozen=True)
class _Slaves:
    """Starts slaves of the one master that there is."""

    home: Path
    names: NameServerProcess
    running: ExitStack

    def start_slave(self, number: int) -> Node:
        home = Path(tempfile.mkdtemp(prefix="slave-", dir=self.home))
        slave = _broker(home, self.names, brokerId=number, brokerRole="SLAVE")
        return _node(self.running.enter_context(slave))


def _broker(home: Path, names: NameServerProcess, **settings: object) -> BrokerProcess:
    given = {**STORE, **settings, "haListenPort": free_broker_port(), "haSecret": _SECRET}
    return BrokerProcess(home, names.address, name="broker-a", **given)


def _node(broker: BrokerProcess) -> Node:
    return Node(broker.address, broker.process, broker.store)


def _measure(broker: BrokerProcess, slaves: _Slaves, gib: int) -> list[Figure]:
    copied = catch_up(slaves, _node(broker))
    looked_up_ms = _lookup_ms(broker.address)
    broker.stop()
    stopped_s = _restart_s(broker)
    broker.kill()
    killed_s = _restart_s(broker)
    seen = (
        ("start after a stop, by the size of the log", "s", stopped_s),
        ("start after a kill, by the size of the log", "s", killed_s),
        ("finding a time, by the size of the log", "ms", looked_up_ms),
        ("an empty slave is in step, by the size of the log", "s", copied.in_step_s - copied.began_s),
    )
    return [
        Figure(_ROW, f"{curve}: {gib} GiB", unit, (Series(OURS, (value,)),), curve=curve, at=gib)
        for curve, unit, value in seen
    ]


def _restart_s(broker: BrokerProcess) -> float:
    began_s = time.perf_counter()
    broker.restart()
    return time.perf_counter() - began_s


def _lookup_ms(address: str) -> float:
    """The mean of many lookups, all of the time between the first message and now."""
    now_ms = int(time.time() * 1000)
    with Wire(address) as wire:
        began_s = time.perf_counter()
        for number in range(_LOOKUPS):
            request = SearchOffsetRequest(topic=TOPIC, queue_id=0, timestamp_ms=now_ms - number * 50)
            answer = wire.ask(Command.request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, request))
            assert answer.code == ResponseCode.SUCCESS, answer.remark
        return (time.perf_counter() - began_s) / _LOOKUPS * 1e3
