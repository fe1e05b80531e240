"""A broker whose log grows: its start after a stop and after a kill, and finding a time in it."""

import shutil
import time
from pathlib import Path

from bench.figures import OURS, Figure, Series
from bench.ha_catch_up import TOPIC, fill
from bench.lean_sends import LeanClient
from bench.replica_groups import STORE, Node
from bench.turns import Allowance
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.offsets import SearchOffsetRequest
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

_ROW = "log-sizes"
_GIB = 1 << 30
_SIZES = (1, 4, 16)
_ROOM = 2.0
"""So many times the size of the log has to be free on the disk: others write there, too."""
_LOOKUPS = 200


def log_size_figures(home: Path, allowance: Allowance) -> list[Figure]:
    figures: list[Figure] = []
    with (
        LeanClient(home / "lean") as client,
        NameServerProcess(home / "names") as names,
        BrokerProcess(home / "broker", names.address, name="broker-a", **STORE) as broker,
    ):
        for gib in _SIZES:
            size = allowance.amount(gib * _GIB)
            free = shutil.disk_usage(home).free
            if figures and allowance.is_over:
                allowance.note(f"a log of {gib} GiB: left out, for want of time")
                continue
            if free < size * _ROOM:
                allowance.note(f"a log of {gib} GiB: left out, {free / _GIB:.0f} GiB are free on this disk")
                continue
            fill(client, Node(broker.address, broker.process, broker.store), until=size)
            figures += _measure(broker, gib)
    return figures


def _measure(broker: BrokerProcess, gib: int) -> list[Figure]:
    looked_up_ms = _lookup_ms(broker.address)
    broker.stop()
    stopped_s = _restart_s(broker)
    broker.kill()
    killed_s = _restart_s(broker)
    seen = (
        ("start after a stop, by the size of the log", "s", stopped_s),
        ("start after a kill, by the size of the log", "s", killed_s),
        ("finding a time, by the size of the log", "ms", looked_up_ms),
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
