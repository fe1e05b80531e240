"""A process that is not ours: started, watched, stopped.

Its output goes to a file, so that nothing blocks on a full pipe and a failed test can show it.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_SECONDS = 0.02


class ProcessFailed(Exception):
    """A partner process ended, or did not do in time what it was waited for."""


class ForeignProcess:
    """One running partner process. Leaving the ``with`` block kills it: its data is thrown away."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        directory: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.output_file = directory / f"{name}.out"
        # A restarted process appends; only what it writes from here on counts.
        self._output_start = self.output_file.stat().st_size if self.output_file.exists() else 0
        with self.output_file.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory, env=env
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def children(self) -> list[int]:
        """The processes that it started and that it has not seen end."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """What this process printed so far."""
        return self.output_file.read_bytes()[self._output_start :].decode(errors="replace")

    def wait_for_output(self, text: str, *, timeout_s: float) -> None:
        """Wait until the process has printed this text."""
        deadline = time.monotonic() + timeout_s
        while text not in self.output():
            if not self.is_running:
                raise self._failure(f"ended with code {self._process.returncode} before it printed {text!r}")
            if time.monotonic() > deadline:
                raise self._failure(f"did not print {text!r} within {timeout_s} s")
            time.sleep(_POLL_SECONDS)

    def wait(self, *, timeout_s: float) -> int:
        """Wait until it ends by itself, and return how."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self._failure(f"did not end within {timeout_s} s") from None

    def stop(self, *, timeout_s: float) -> None:
        """Ask the process to end (SIGTERM) and wait until it has: what it holds is flushed."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failure(f"did not stop within {timeout_s} s") from None

    def kill(self) -> None:
        """End the process at once (SIGKILL), as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def _failure(self, what: str) -> ProcessFailed:
        return ProcessFailed(f"{self.name} {what}; its last output was:\n{self.output()[-3000:]}")
