"""Tanist's brokers under its controller, all as processes of their own: who is master changes by itself.

with GroupProcess(tmp_path, replicas=2) as group:
    old = group.master()
    old.kill()
    new = group.wait_for_master(besides=old)
    old.restart()
    group.wait_in_step()
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.controllers import ControllerView
from tests.support.nameserver import NameServerProcess
from tests.support.rocketmq.cluster import free_port
from tests.support.served import ServedProcess
from tests.support.tanist_cluster import BrokerProcess

NAME = "broker-a"
"""What all replicas are called."""
_SECRET = "the secret of all replicas, long and random"
_TIMEOUT_S = 60.0
_POLL_S = 0.01
_TOLD_CHARACTERS = 3_000


class ControllerProcess(ServedProcess):
    """``tanist controller`` with these settings, and its registry in a file."""

    def __init__(self, directory: Path, **settings: object) -> None:
        given = {"listenPort": free_port(), "controllerStorePath": directory / "store", **settings}
        super().__init__("controller", directory, given, ready="The controller serves at ")


class GroupProcess:
    """A name server, a controller and some replicas, all in step. Everything ends with the block."""

    def __init__(
        self,
        directory: Path,
        *,
        replicas: int = 2,
        controller_settings: Mapping[str, object] | None = None,
        **settings: object,
    ) -> None:
        """``settings`` are those of all replicas."""
        self._settings: dict[str, Any] = {"enableControllerMode": "true", "haSecret": _SECRET, **settings}
        self._directory = directory
        with ExitStack() as running:
            self.names = running.enter_context(NameServerProcess(directory / "names"))
            self.controller = running.enter_context(
                ControllerProcess(directory / "controller", **(controller_settings or {}))
            )
            self.view = running.enter_context(ControllerView(self.controller.address))
            self.replicas: Sequence[BrokerProcess] = [
                running.enter_context(self._start_replica(number)) for number in range(1, replicas + 1)
            ]
            self.wait_in_step()
            self._running = running.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def master(self) -> BrokerProcess:
        """The replica that the controller says is master."""
        return self.wait_for_master()

    def slaves(self) -> list[BrokerProcess]:
        """All the others, whether they run or not."""
        master = self.master()
        return [replica for replica in self.replicas if replica is not master]

    def wait_for_master(self, *, besides: BrokerProcess | None = None) -> BrokerProcess:
        """Wait until the controller says that one is master, and not ``besides``."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        while True:
            address = self.view.group(NAME).master_address
            for replica in self.replicas:
                if replica.address == address and replica is not besides:
                    return replica
            assert time.monotonic() < deadline_s, f"the master is still {address}\n{self._told()}"
            time.sleep(_POLL_S)

    def wait_in_step(self, count: int | None = None) -> None:
        """Wait until so many replicas are in the sync state set, by default all."""
        try:
            self.view.wait_for_set(NAME, size=len(self.replicas) if count is None else count)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._told()}") from error

    def _told(self) -> str:
        """The last that each process said, the controller first."""
        processes = [self.controller.process, *(replica.process for replica in self.replicas)]
        return "\n\n".join(process.output()[-_TOLD_CHARACTERS:] for process in processes)

    def _start_replica(self, number: int) -> BrokerProcess:
        return BrokerProcess(
            self._directory / f"replica-{number}",
            self.names.address,
            name=NAME,
            controllerAddr=self.controller.address,
            **self._settings,
        )
