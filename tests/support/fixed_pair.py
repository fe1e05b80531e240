"""A master and its slave with fixed roles and a registry, all as processes of their own.

with FixedPair(tmp_path) as pair:
    pair.kill_master()
    pair.wait_for(pair.slave, "READ")
    pair.restart_master()
    pair.wait_for(pair.master, "FULL")
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.bodies.slave_consume import SlaveConsumeStatus
from tanist.protocol.java_json import decode_java_json
from tests.support.nameserver import NameServerProcess
from tests.support.rocketmq.cluster import free_port
from tests.support.tanist_cluster import BrokerProcess
from tests.support.tanist_group import ControllerProcess
from tests.support.wire import Wire
from tests.support.zookeeper import Ensemble

NAME = "broker-a"
"""What both brokers are called."""
SQLITE, ZOOKEEPER = "sqlite", "zk"
"""Where the registry may be kept."""
_SECRET = "the secret of the pair, long and random"
_TIMEOUT_S = 60.0
_POLL_S = 0.01
_ANSWER_S = 2.0


class FixedPair:
    """A name server, a registry, and a SYNC_MASTER with its slave in step. Everything ends with the block."""

    def __init__(self, directory: Path, *, coordinator: str = SQLITE, **settings: object) -> None:
        """Its registry is in the controller's SQLite or in ZooKeeper; ``settings`` are both brokers'."""
        with ExitStack() as running:
            self.names = running.enter_context(NameServerProcess(directory / "names"))
            given: dict[str, Any] = {
                "coordinator": _start_registry(running, directory, coordinator),
                "haSecret": _SECRET,
                **settings,
            }

            def start(home: str, **role: object) -> BrokerProcess:
                ports = {"haListenPort": free_port()}
                broker = BrokerProcess(
                    directory / home, self.names.address, name=NAME, **{**ports, **given, **role}
                )
                return running.enter_context(broker)

            self.master = start("master", brokerRole="SYNC_MASTER", brokerId=0)
            self.slave = start("slave", brokerRole="SLAVE", brokerId=1)
            self.wait_in_step()
            self._running = running.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def kill_master(self) -> None:
        """End the process that serves, as a crash would. Its parent, if it has one, lives on."""
        served = self.master.process.children
        if not served:
            self.master.kill()
        for pid in served:
            os.kill(pid, signal.SIGKILL)

    def restart_master(self) -> None:
        """Start it again on its store, as an operator would: a parent that is left over is ended first."""
        if self.master.process.is_running:
            self.master.stop()
        self.master.restart()

    def standing(self, broker: BrokerProcess) -> dict[str, str]:
        """What a broker says about its right to be read; nothing while it does not answer."""
        try:
            with Wire(broker.address, timeout_s=_ANSWER_S) as wire:
                answer = wire.ask(Command.request(RequestCode.GET_READ_STANDING))
        except (OSError, AssertionError):
            return {}
        return dict(answer.ext) if answer.code == ResponseCode.SUCCESS else {}

    def wait_for(self, broker: BrokerProcess, permission: str) -> None:
        """Wait until a broker has this permission: FULL, WRITE, READ or NONE."""
        self._wait(
            lambda: self.standing(broker).get("permission") == permission,
            lambda: f"{broker.address} has {permission}; its standing is {self.standing(broker)}",
        )

    def wait_in_step(self) -> None:
        """Wait until the slave has all that the master has, and is the second that is read without it."""
        self._wait(lambda: is_in_step(self.master.address), lambda: "the slave is in step")
        self._wait(self._is_second_named, lambda: "the slave is named second")

    def _is_second_named(self) -> bool:
        try:
            with Wire(self.slave.address, timeout_s=_ANSWER_S) as wire:
                answer = wire.ask(Command.request(RequestCode.GET_SLAVE_CONSUME_STATUS))
        except (OSError, AssertionError):
            return False
        record = decode_java_json(answer.body, SlaveConsumeStatus).record
        return record is not None and record.second == self.slave.address

    def _wait(self, is_so: Callable[[], bool], what: Callable[[], str]) -> None:
        deadline_s = time.monotonic() + _TIMEOUT_S
        while not is_so():
            if time.monotonic() > deadline_s:
                told = "\n\n".join(one.process.output()[-3000:] for one in (self.master, self.slave))
                raise AssertionError(f"not within {_TIMEOUT_S:g} s: {what()}\n{told}")
            time.sleep(_POLL_S)


def is_in_step(master: str) -> bool:
    """Whether the master at this address, whoever made it, has slaves that have all that it has."""
    try:
        with Wire(master, timeout_s=_ANSWER_S) as wire:
            answer = wire.ask(Command.request(RequestCode.GET_BROKER_HA_STATUS))
    except (OSError, AssertionError):
        return False
    status = decode_java_json(answer.body, HARuntimeInfo)
    return bool(status.slaves) and all(slave.acked_to >= status.log_end for slave in status.slaves)


def _start_registry(running: ExitStack, directory: Path, kind: str) -> str:
    """Start what keeps the registry; what brokers are told of it."""
    if kind == ZOOKEEPER:
        return f"zk://{running.enter_context(Ensemble(directory / 'zookeeper', size=1)).hosts}/tanist"
    controller = running.enter_context(ControllerProcess(directory / "controller"))
    return f"tanist://{controller.address}"
