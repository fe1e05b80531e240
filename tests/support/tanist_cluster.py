"""Tanist's name server and broker as processes of their own, on the loopback address.

with NameServerProcess(tmp_path / "ns") as names, BrokerProcess(tmp_path / "b", names.address) as broker:
    broker.kill()
    broker.restart()
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.nameserver import NameServerProcess
from tests.support.process import ForeignProcess, ProcessFailed
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.served import tanist_command

__all__ = ["BrokerProcess", "NameServerProcess", "broker_command"]

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 20.0
_START_ATTEMPTS = 3

# Small files: a test's store is a few MiB, and its end of file is soon reached.
_SMALL_STORE = {
    "mappedFileSizeCommitLog": 4 << 20,
    "mappedFileSizeConsumeQueue": 20 * 1000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
}


def broker_command(*arguments: str | Path) -> list[str | Path]:
    """What runs ``tanist broker`` with these arguments."""
    return tanist_command("broker", *arguments)


class BrokerProcess:
    """``tanist broker`` with these settings. The port is chosen at the first start; a restart keeps it."""

    def __init__(
        self,
        directory: Path,
        name_server: str,
        within: Sequence[str] = (),
        /,
        *,
        name: str = "broker-a",
        **settings: object,
    ) -> None:
        """``within`` is a command that runs it elsewhere, as in another network namespace."""
        self.name = name
        self._directory = directory
        self._within = within
        self._settings: dict[str, object] = {
            "brokerClusterName": "tanist-tests",
            "brokerName": name,
            "namesrvAddr": name_server,
            "storePathRootDir": directory / "store",
            **_SMALL_STORE,
            **settings,
        }
        self._start_on_a_free_port()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signal(signal.SIGKILL)
        self.process.kill()

    @property
    def address(self) -> str:
        return f"{self._settings.get('brokerIP1', '127.0.0.1')}:{self._settings['listenPort']}"

    @property
    def store(self) -> Path:
        return self._directory / "store"

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.stop(timeout_s=_STOP_TIMEOUT_S)

    def kill(self) -> None:
        """End it as a crash would. A supervisor, if it has one, tells of that and ends too."""
        supervised = self.process.children if self.process.is_running else []
        for pid in supervised:
            os.kill(pid, signal.SIGKILL)
        if supervised:
            self.process.wait(timeout_s=_STOP_TIMEOUT_S)
        self.process.kill()

    def pause(self) -> None:
        """Freeze it, and its supervisor if it has one, as a machine that stands still would."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a pause."""
        self._signal(signal.SIGCONT)

    def restart(self, **settings: object) -> None:
        """Start it again after its end, on the same port and store; ``settings`` override the former ones."""
        self._settings.update(settings)
        self._start()

    def _signal(self, number: signal.Signals) -> None:
        # Until it is waited for its number is no other process's.
        if self.process.is_running:
            for pid in (*self.process.children, self.process.pid):
                os.kill(pid, number)

    def _start_on_a_free_port(self) -> None:
        """Somebody may take a port between its choice and its use: then others are tried."""
        for attempt in range(1, _START_ATTEMPTS + 1):
            self._settings["listenPort"] = free_broker_port()
            try:
                self._start()
            except ProcessFailed as failure:
                if "listenPort" not in str(failure) or attempt == _START_ATTEMPTS:
                    raise
            else:
                return

    def _start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "broker.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        self.process = ForeignProcess(
            f"tanist-{self.name}", [*self._within, *broker_command("-c", config)], directory=self._directory
        )
        self.process.wait_for_output(
            f"The broker {self.name} serves at {self.address}\n", timeout_s=_START_TIMEOUT_S
        )
