"""A broker whose log grows: how it starts after a stop and a kill, finds a time in it, and fills a slave.

Beside the slave stands a bare copy of the same bytes, once before it and once after it. It grows by more than
the bytes, too: memory that the machine has not used for a while has to be found first, which on a virtual one
is the host's work and can take more time than all else; what goes beyond a share of memory waits for the
disk; and a log that memory does not hold beside its copy is read from there, too. The first copy has paid for
memory that the slave then finds, and the slave for some of the second's.
"""

import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.bare_copy import copy_rate
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
_CATCH_UP_LIMIT_S = 240.0
_BARE = "bare copy"
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
            try:
                figures += _measure(broker, slaves, gib, allowance)
            except TimeoutError as late:
                if not figures:
                    raise
                # The slave is there yet, and in the way of a larger log.
                allowance.note(f"a log of {gib} GiB: not run: {late}")
                break
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


def _measure(broker: BrokerProcess, slaves: _Slaves, gib: int, allowance: Allowance) -> list[Figure]:
    bare = [Series(f"{_BARE} before", (_bare_copy_s(broker, slaves.home),))]
    copied = catch_up(slaves, _node(broker), limit_s=_CATCH_UP_LIMIT_S)
    if allowance.is_over:
        allowance.note(f"{gib} GiB: no bare copy after the slave, for want of time")
    else:
        bare.append(Series(f"{_BARE} after", (_bare_copy_s(broker, slaves.home),)))
    looked_up_ms = _lookup_ms(broker.address)
    broker.stop()
    stopped_s = _restart_s(broker)
    broker.kill()
    killed_s = _restart_s(broker)
    seen = (
        ("start after a stop, by the size of the log", "s", stopped_s, ()),
        ("start after a kill, by the size of the log", "s", killed_s, ()),
        ("finding a time, by the size of the log", "ms", looked_up_ms, ()),
        ("an empty slave is in step, by the size of the log", "s", copied.in_step_s - copied.began_s, bare),
    )
    return [
        Figure(_ROW, f"{curve}: {gib} GiB", unit, (Series(OURS, (value,)), *peers), curve=curve, at=gib)
        for curve, unit, value, peers in seen
    ]


def _bare_copy_s(broker: BrokerProcess, home: Path) -> float:
    """How long the log takes without us, into files of the same size."""
    size_bytes = _node(broker).status().log_end
    return size_bytes / copy_rate(sorted((broker.store / "commitlog").iterdir()), home / "copy", size_bytes)


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
