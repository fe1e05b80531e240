"""``tanist up`` as a process: a whole cluster with its console, on ports that are free."""

import re
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tanist.up.plan import Mode, Ports
from tests.support.process import ForeignProcess
from tests.support.rocketmq.cluster import free_broker_port, free_port
from tests.support.served import tanist_command

_LOGIN = re.compile(r"The console is at (\S+)/\nLog in as (\S+) with (\S+) ")
_START_S, _STOP_S = 60.0, 30.0


class UpProcess:
    """A cluster with fixed roles. It ends with the block, and its processes with it."""

    def __init__(self, directory: Path) -> None:
        home = directory / "home"
        home.mkdir(parents=True)
        self.ports = Ports(
            namesrv=free_port(),
            controller=free_port(),
            first=free_broker_port(),
            second=free_broker_port(),
            console=free_port(),
        )
        (home / f"{Mode.FIXED_ROLES.value}.ports.json").write_bytes(msgspec.json.encode(self.ports))
        self.process = ForeignProcess("tanist-up", tanist_command("up", "--home", home), directory=directory)
        self.process.wait_for_output("Ctrl-C stops all", timeout_s=_START_S)
        found = _LOGIN.search(self.process.output())
        assert found is not None, self.process.output()
        self.console, self.user, self.password = found.groups()

    @property
    def master(self) -> str:
        return f"127.0.0.1:{self.ports.first}"

    @property
    def slave(self) -> str:
        return f"127.0.0.1:{self.ports.second}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Killed, it would leave its children behind.
        self.process.stop(timeout_s=_STOP_S)
