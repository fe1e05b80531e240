"""Tanist's name server as a process of its own, on the loopback address."""

import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.process import ForeignProcess, ProcessFailed

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 10.0
_SERVES = "The name server serves at "


class NameServerProcess:
    """``tanist namesrv`` with these settings. The system chooses the port; a restart keeps it."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self._directory = directory
        self._settings = {"listenPort": 0, "kvConfigPath": directory / "kvConfig.json", **settings}
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.stop(timeout_s=_STOP_TIMEOUT_S)

    def restart(self) -> None:
        """Start it again after its end, on the same port and with the same file."""
        self._settings["listenPort"] = self.address.rpartition(":")[2]
        self._start()

    def _start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "namesrv.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        command = [sys.executable, "-c", "from tanist.cli.main import main; main()", "namesrv", "-c", config]
        self.process = ForeignProcess("tanist-namesrv", command, directory=self._directory)
        try:
            self.process.wait_for_output(_SERVES, timeout_s=_START_TIMEOUT_S)
        except ProcessFailed:
            self.process.kill()
            raise
        # The line is printed as a whole.
        self.address = self.process.output().partition(_SERVES)[2].split()[0]
