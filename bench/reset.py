"""The reset of a group with many clients and queues: how long until the last of them has moved.

The clients are ours at both brokers, each a member with its share of the queues, and each queue has one
message. At Tanist an order is given, and the broker says when the last client has confirmed it. RocketMQ's
``mqadmin resetOffsetByTime`` gives no receipts: it is timed itself, with the start of Java, and the clients
say when their last queue began anew. RocketMQ 5.3 tells clients with their next pull; how it did that before,
by an order to each of them, is still there and measured too.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.processes import own_process
from bench.reset_steps import Standing
from bench.table import Row
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.reset import (
    QueueTarget,
    QueueTargets,
    ReceiptState,
    ResetOrders,
    ResetOrderView,
    ResetState,
)
from tanist.protocol.headers.reset import ApplyResetRequest, GetResetOrdersRequest
from tanist.protocol.java_json import decode_java_json
from tests.support.requests import send_request
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.scenario import ScenarioProcess
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.topics import create_topic
from tests.support.wire import Wire

_TOPIC = "BenchReset"
_GROUP = "bench-reset"
_ORDER = "bench"
_CLIENTS = 100
_QUEUES = 1_000
_PROCESSES = 4
_READY_S = 180.0
_MOVED_S = 60.0
_SETTLE_S = 30.0
"""Then the pulls are over that members left at the broker when their queues went to others as those joined.
RocketMQ 5.3 would answer one of them, to a client that has the queue no more, and take it for told."""
_LOOK_S = 0.1


@dataclass(frozen=True)
class _Times:
    """Seconds from the order on."""

    told_s: float
    """Until whoever gave it was answered."""
    moved_s: float
    """Until the last queue began anew."""
    moved: int
    """How many of them did, within a minute."""
    receipts_s: float = 0.0
    """Until whoever gave it knew that the last client has moved."""


def run() -> list[Row]:
    ours = _tanist()
    by_pull = _rocketmq(is_server_side=True)
    by_order = _rocketmq(is_server_side=False)
    what = f"reset of {_CLIENTS} clients with {_QUEUES:,} queues"
    return [
        Row(f"{what}: the last receipt", _s(ours.receipts_s), "mqadmin: there are none", None, "", None),
        _moved_row("  the last queue begins anew", ours, by_pull, "mqadmin 5.3.3"),
        _moved_row("    if clients are sent orders", ours, by_order, "useServerSideResetOffset=false"),
        _row("  the order is answered", ours.told_s, by_pull.told_s, "mqadmin with its start"),
    ]


def _row(what: str, ours_s: float, peer_s: float, peer: str) -> Row:
    return Row(what, _s(ours_s), f"{peer} {_s(peer_s)}", ours_s / peer_s, "", None)


def _moved_row(what: str, ours: _Times, theirs: _Times, peer: str) -> Row:
    if theirs.moved == _QUEUES:
        return _row(what, ours.moved_s, theirs.moved_s, peer)
    return Row(what, _s(ours.moved_s), f"{peer} {theirs.moved} within {_MOVED_S:.0f} s", None, "", None)


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s"


def _tanist() -> _Times:
    with (
        tempfile.TemporaryDirectory(prefix="tanist-bench-") as root,
        NameServerProcess(Path(root, "ns")) as names,
        BrokerProcess(Path(root, "broker"), names.address) as broker,
        _members(Path(root), names.address, broker.address) as members,
        Wire(broker.address, timeout_s=60) as wire,
    ):
        began_s = time.time()
        view = _apply(wire)
        told_s = time.time() - began_s
        while not _is_confirmed(view):
            view = _orders(wire, view)
        receipts_s = time.time() - began_s
        return _times(members, began_s, told_s, receipts_s)


def _apply(wire: Wire) -> ResetOrders:
    header = ApplyResetRequest(order_id=_ORDER, topic=_TOPIC, group=_GROUP, caller="bench")
    targets = [
        QueueTarget(queue_id=queue_id, expected_offset=QueueOffset(1), target=QueueOffset(0))
        for queue_id in range(_QUEUES)
    ]
    request = Command.request(
        RequestCode.APPLY_RESET, header, body=encode_body(QueueTargets(targets=targets))
    )
    answer = wire.ask(request)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    order = decode_java_json(answer.body, ResetOrderView)
    assert order.state is ResetState.APPLIED
    return ResetOrders(version=-1, orders=[order])


def _orders(wire: Wire, seen: ResetOrders) -> ResetOrders:
    header = GetResetOrdersRequest(order_id=_ORDER, seen_version=seen.version, wait_ms=10_000)
    answer = wire.ask(Command.request(RequestCode.GET_RESET_ORDERS, header))
    return decode_java_json(answer.body, ResetOrders)


def _is_confirmed(view: ResetOrders) -> bool:
    receipts = view.orders[0].receipts
    assert not [receipt for receipt in receipts if receipt.state is ReceiptState.FAILED]
    confirmed = [receipt for receipt in receipts if receipt.state is ReceiptState.CONFIRMED]
    return len(confirmed) == _CLIENTS and sum(len(each.queues) for each in confirmed) == _QUEUES


def _rocketmq(*, is_server_side: bool) -> _Times:
    with (
        tempfile.TemporaryDirectory(prefix="tanist-bench-") as root,
        RocketMQ(Path(root, "rocketmq")) as rocketmq,
    ):
        broker = rocketmq.start_broker(properties={"useServerSideResetOffset": str(is_server_side).lower()})
        with _members(Path(root), rocketmq.name_server, broker.address) as members:
            began_s = time.time()
            rocketmq.mqadmin("resetOffsetByTime", "-g", _GROUP, "-t", _TOPIC, "-s", "0")
            told_s = time.time() - began_s
            return _times(members, began_s, told_s)


@contextmanager
def _members(root: Path, name_server: str, broker: str) -> Generator[list[ScenarioProcess]]:
    """All clients, each with its queues, in which each of them has read and committed the one message."""
    create_topic(broker, _TOPIC, queue_count=_QUEUES)
    with Wire(broker) as wire:
        for queue_id in range(_QUEUES):
            assert wire.ask(send_request(b"x", topic=_TOPIC, queue_id=queue_id)).code == ResponseCode.SUCCESS
    with ExitStack() as running:
        members = [
            running.enter_context(own_process("bench.reset_steps", root / f"members-{number}"))
            for number in range(_PROCESSES)
        ]
        for member in members:
            member.do(
                "start",
                topic=_TOPIC,
                group=_GROUP,
                nameServer=name_server,
                count=_CLIENTS // _PROCESSES,
            )
        ready = _wait(members, lambda each: each.queues == _QUEUES <= each.handled, _READY_S)
        assert ready.queues == _QUEUES <= ready.handled, ready
        time.sleep(_SETTLE_S)
        for member in members:
            member.do("commit")
        print(f"  {_CLIENTS} clients have {_QUEUES:,} queues", file=sys.stderr)
        yield members


def _times(members: list[ScenarioProcess], began_s: float, told_s: float, receipts_s: float = 0.0) -> _Times:
    seen = _wait(members, lambda all_of: all_of.moved == _QUEUES, _MOVED_S)
    return _Times(told_s, seen.last_moved_s - began_s, seen.moved, receipts_s)


def _wait(members: list[ScenarioProcess], is_so: Callable[[Standing], bool], timeout_s: float) -> Standing:
    """What there is when it is so, or when the time is over."""
    end_s = time.monotonic() + timeout_s
    while True:
        each = [msgspec.convert(member.do("standing"), Standing) for member in members]
        all_of = Standing(
            queues=sum(standing.queues for standing in each),
            handled=sum(standing.handled for standing in each),
            moved=sum(standing.moved for standing in each),
            last_moved_s=max(standing.last_moved_s for standing in each),
        )
        if is_so(all_of) or time.monotonic() > end_s:
            return all_of
        time.sleep(_LOOK_S)
