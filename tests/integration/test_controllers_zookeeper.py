"""Three controllers as processes, with their records in ZooKeeper: the leader is killed, and frozen."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.controller import (
    ApplyBrokerIdRequest,
    BrokerHeartbeatResponse,
    RegisterReplicaRequest,
)
from tests.support.controllers import ControllerView
from tests.support.reigning import CLUSTER, NAME, asks, heartbeat
from tests.support.site import wait_until
from tests.support.tanist_group import ControllerProcess
from tests.support.wire import Wire
from tests.support.zookeeper import Ensemble

pytestmark = pytest.mark.partner("java", "maven")

C, R = RequestCode, ResponseCode
DONE = frozenset({int(R.SUCCESS), int(R.CONTROLLER_MASTER_STILL_EXIST)})
LEASE_MS = 60_000
"""Longer than the test: nobody is to be replaced in it."""


@pytest.fixture
def controllers(tmp_path: Path, zookeeper: Ensemble) -> Iterator[list[ControllerProcess]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ControllerProcess(
                    tmp_path / str(number),
                    coordinator=f"zk://{zookeeper.hosts}/{tmp_path.name}",
                    coordinatorTimeoutMillis=2_000,
                )
            )
            for number in range(3)
        ]


def is_leader(controller: ControllerProcess) -> bool:
    with ControllerView(controller.address) as view:
        return view.is_leader()


def leader_of(controllers: list[ControllerProcess]) -> ControllerProcess:
    """The one that leads; it is waited for."""
    leading: list[ControllerProcess] = []

    def is_one() -> bool:
        leading[:] = [each for each in controllers if is_leader(each)]
        return len(leading) == 1

    wait_until(is_one)
    return leading[0]


def lease(wire: Wire, **fields: object) -> int | None:
    header = heartbeat(1, heartbeat_timeout_ms=LEASE_MS, **fields)
    answer = wire.ask(Command.request(C.BROKER_HEARTBEAT, header))
    assert answer.code == R.SUCCESS, answer.remark
    return answer.header(BrokerHeartbeatResponse).lease_epoch


def ask_until_done(wire: Wire, code: RequestCode, header: Header) -> None:
    """On a busy machine a leader may not be sure of it for a moment."""
    wait_until(lambda: wire.ask(Command.request(code, header)).code in DONE)


def crown(controller: ControllerProcess) -> None:
    """Make a group with one replica, which is master."""
    requests = (
        (
            C.CONTROLLER_APPLY_BROKER_ID,
            ApplyBrokerIdRequest(
                cluster_name=CLUSTER, broker_name=NAME, applied_broker_id=1, register_check_code="a:1;5"
            ),
        ),
        (
            C.CONTROLLER_REGISTER_BROKER,
            RegisterReplicaRequest(
                cluster_name=CLUSTER, broker_name=NAME, broker_id=1, broker_address="127.0.0.1:1"
            ),
        ),
        (C.BROKER_HEARTBEAT, heartbeat(1, heartbeat_timeout_ms=LEASE_MS)),
        (C.CONTROLLER_ELECT_MASTER, asks(1)),
    )
    with Wire(controller.address) as wire:
        for code, header in requests:
            ask_until_done(wire, code, header)


def test_another_controller_leads_and_knows_the_group_when_the_leader_is_killed_or_frozen(
    controllers: list[ControllerProcess],
) -> None:
    first = leader_of(controllers)
    crown(first)
    first.kill()
    left = [each for each in controllers if each is not first]
    second = leader_of(left)
    with Wire(second.address) as wire:
        wait_until(lambda: lease(wire) == 1)

    os.kill(second.process.pid, signal.SIGSTOP)
    try:
        (third,) = (each for each in left if each is not second)
        assert leader_of([third]) is third
        with Wire(third.address) as wire:
            wait_until(lambda: lease(wire) == 1)
    finally:
        os.kill(second.process.pid, signal.SIGCONT)
    # It wakes up and takes itself for the leader no more, and names the one there is.
    with Wire(second.address) as wire:
        assert lease(wire) is None
        answer = wire.ask(Command.request(C.CONTROLLER_ELECT_MASTER, asks(1)))
        assert answer.code == R.CONTROLLER_NOT_LEADER

        def is_named() -> bool:
            remark = wire.ask(Command.request(C.CONTROLLER_ELECT_MASTER, asks(1))).remark
            return f"ask {third.address}" in (remark or "")

        wait_until(is_named)
    assert all("Traceback" not in each.process.output() for each in controllers)
