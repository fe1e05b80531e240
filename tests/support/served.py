"""A server of ours as a process of its own, on a port that the system chooses."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.process import ForeignProcess, ProcessFailed

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0


def tanist_command(*arguments: str | Path) -> list[str | Path]:
    """What runs ``tanist`` with these arguments."""
    return [sys.executable, "-c", "from tanist.cli.main import main; main()", *arguments]


class ServedProcess:
    """``tanist COMMAND`` with these settings. A restart keeps the port."""

    def __init__(self, command: str, directory: Path, settings: Mapping[str, object], *, ready: str) -> None:
        """``ready`` is what it prints before its address."""
        self._command = command
        self._directory = directory
        self._settings: dict[str, object] = {"listenPort": 0, **settings}
        self._ready = ready
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

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()

    def restart(self) -> None:
        """Start it again after its end, on the same port and with the same files."""
        self._settings["listenPort"] = self.address.rpartition(":")[2]
        self._start()

    def _start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / f"{self._command}.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        self.process = ForeignProcess(
            f"tanist-{self._command}",
            tanist_command(self._command, "-c", config),
            directory=self._directory,
        )
        try:
            self.process.wait_for_output(self._ready, timeout_s=_START_TIMEOUT_S)
        except ProcessFailed:
            self.process.kill()
            raise
        # The line is printed as a whole.
        self.address = self.process.output().partition(self._ready)[2].split()[0]
