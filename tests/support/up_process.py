"""``tanist up`` as a process: a whole cluster with its console, on ports that are free."""

import re
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tanist.up.plan import Mode, Ports
from tests.support.process import ForeignProcess, ProcessFailed
from tests.support.rocketmq.cluster import free_broker_port, free_port
from tests.support.served import tanist_command

_LOGIN = re.compile(r"The console is at (\S+)/\nLog in as (\S+) with (\S+) ")
_START_S, STOP_S = 120.0, 60.0


class UpProcess:
    """A cluster that came up. It ends with the block, and its processes with it."""

    def __init__(self, directory: Path, *options: str, mode: Mode = Mode.FIXED_ROLES) -> None:
        self.home = directory / "home"
        self.home.mkdir(parents=True)
        self.ports = keep_ports(self.home, mode)
        command = tanist_command("up", "--home", self.home, "--mode", mode.value, *options)
        self.process = ForeignProcess("tanist-up", command, directory=directory)
        try:
            self.process.wait_for_output("Ctrl-C stops all", timeout_s=_START_S)
        except ProcessFailed:
            self._end()
            raise
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
        self._end()

    def _end(self) -> None:
        # Killed, it would leave its children behind.
        if self.process.is_running:
            self.process.stop(timeout_s=STOP_S)


def keep_ports(home: Path, mode: Mode) -> Ports:
    """Have the cluster of a folder use ports that are free."""
    ports = free_ports()
    (home / f"{mode.value}.ports.json").write_bytes(msgspec.json.encode(ports))
    return ports


def free_ports() -> Ports:
    """All of them: those by default are free to each of several clusters that start at once."""
    brokers = {"first", "second"}
    return Ports(
        **{name: free_broker_port() if name in brokers else free_port() for name in Ports.__struct_fields__}
    )
