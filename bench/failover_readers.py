"""Consumers of a group whose master is struck: when they go on."""

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.controlled_groups import TOPIC, ControlledGroup
from bench.processes import own_process
from bench.slave_reads import Delivery
from tests.support.rocketmq.scenario import ScenarioProcess
from tests.support.rocketmq.stock_client import StockClients

_POLL_S = 0.02
_LIMIT_S = 75.0


class _Reader:
    """One consumer at default settings, which takes no time over a message."""

    def __init__(self, process: ScenarioProcess, name: str, group: ControlledGroup) -> None:
        self._process = process
        self._name = name
        self._taken = 0
        process.do("reader", name=name, nameServer=group.name_server, group=name, topic=TOPIC, paceMs=0)

    def went_on(self, since_ns: int) -> int:
        """When it was first given a message since then; times of later calls only grow."""
        deadline_s = time.monotonic() + _LIMIT_S
        while time.monotonic() < deadline_s:
            more = self._process.do("read", name=self._name, **{"from": self._taken})
            self._taken += len(more)
            for one in more:
                if (delivery := Delivery(*one)).time_ns >= since_ns:
                    return delivery.time_ns
            time.sleep(_POLL_S)
        raise TimeoutError(f"{self._name} was given nothing for {_LIMIT_S:g} s")


class Readers:
    """A consumer of ours and a stock one. They end with the block, or the Java process."""

    def __init__(self, home: Path, group: ControlledGroup, java: StockClients) -> None:
        self._process = own_process("bench.read_steps", home / f"read-{group.name}")
        self.tanist = _Reader(self._process, f"tanist-reads-{group.name}", group)
        self.java = _Reader(java.process, f"java-reads-{group.name}", group)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def wait_for_flow(self) -> None:
        """Wait until both are given messages now."""
        now_ns = time.monotonic_ns()
        self.tanist.went_on(now_ns)
        self.java.went_on(now_ns)
