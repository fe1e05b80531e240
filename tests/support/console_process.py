"""``tanist console`` as a process of its own."""

import re
from base64 import b64encode
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.process import ForeignProcess
from tests.support.served import tanist_command

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 10.0
_LOGIN = re.compile(r"serves at (\S+)\nLog in as (\S+) with (\S+) ")


def basic(user: str, password: str) -> str:
    """What scripts send to REST in the header Authorization."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


class ConsoleProcess:
    """A console on a port that the system chooses, with the login that it makes for this start."""

    def __init__(self, directory: Path, name_server: str, *options: str) -> None:
        arguments = ("console", "-n", name_server, "-l", "127.0.0.1:0", *options)
        self.process = ForeignProcess("tanist-console", tanist_command(*arguments), directory=directory)
        self.process.wait_for_output("made for this start", timeout_s=_START_TIMEOUT_S)
        found = _LOGIN.search(self.process.output())
        assert found is not None, self.process.output()
        self.address, self.user, self.password = found.groups()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.stop(timeout_s=_STOP_TIMEOUT_S)
