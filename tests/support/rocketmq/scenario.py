"""A process that does as it is told: a step is a line of JSON, and so is what it answers.

``java_client/*.java`` has the steps of Java's clients.
"""

import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.support.process import ProcessFailed
from tests.support.rocketmq.jars import QUICK_START, environment, install_client

_ANSWER_TIMEOUT_S = 120.0


class StepFailed(Exception):
    """A client threw: ``error`` is the name of its exception, ``code`` the response code it carries."""

    def __init__(self, step: str, *, error: str, message: str, code: int | None = None) -> None:
        super().__init__(f"{step}: {error}: {message}")
        self.error = error
        self.message = message
        self.code = code


class ScenarioProcess:
    """One process that takes steps. Leaving the ``with`` block kills it."""

    def __init__(self, command: Sequence[str], home: Path, *, env: Mapping[str, str] | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._said_file = home / "clients.err"
        with self._said_file.open("wb") as said:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, cwd=home, env=env
            )
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def do(self, step: str, **options: object) -> Any:
        """Have one step done and return its result. Raises StepFailed with what the client threw."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode({"do": step, **options}) + b"\n")
        self._process.stdin.flush()
        try:
            line = self._answers.get(timeout=_ANSWER_TIMEOUT_S)
        except queue.Empty:
            line = b""
        if not line:
            said = self._said_file.read_text(errors="replace")[-3000:]
            raise ProcessFailed(f"the clients did not answer to {step}; they said:\n{said}")
        answer = msgspec.json.decode(line)
        if "error" in answer:
            raise StepFailed(step, **answer)
        return answer["result"]

    def finish(self) -> None:
        """Let it end by itself, which it does when there are no more steps."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_ANSWER_TIMEOUT_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")


def java_clients(line: str, home: Path, *, flags: Sequence[str] = QUICK_START) -> ScenarioProcess:
    """Start a process with the client jars of one line of RocketMQ."""
    command = install_client(line).command("tanist.client.Scenario", home=home, heap="512m", flags=flags)
    return ScenarioProcess(command, home, env=environment(home))
