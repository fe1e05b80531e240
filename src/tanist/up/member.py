"""One child process: started, watched, stopped. Its log and config file lie in the cluster's folder."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from tanist.errors import MQError
from tanist.up.plan import MemberPlan

_START_S = 60.0
_STOP_S = 15.0


class StartFailed(MQError):
    """A member did not come up; the text says why, or where that stands."""


class Member:
    """A process that runs, or will, or did."""

    def __init__(
        self, plan: MemberPlan, folder: Path, *, lock: int | None = None, within: tuple[str, ...] = ()
    ) -> None:
        """``lock`` is a descriptor for it to hold; ``within`` a command that runs it elsewhere."""
        self.plan = plan
        self._locks = () if lock is None else (lock,)
        self._within = within
        self.log_file = folder / f"{plan.name}.log"
        self._config_file = folder / f"{plan.name}.conf"
        self._process: asyncio.subprocess.Process | None = None
        self._said: list[bytes] = []

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def pid(self) -> int | None:
        """Of the process that was started, while it runs."""
        running = self._process
        return running.pid if running is not None and running.returncode is None else None

    @property
    def serving_pid(self) -> int | None:
        """Of the process that serves: the child of a broker's supervisor, else the one that was started."""
        pid = self.pid
        if pid is None:
            return None
        children = self._children(pid)
        return (children[0] if children else None) if self.plan.is_supervised else pid

    async def start(self) -> None:
        """Start it, and wait until it serves. Raises StartFailed."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        arguments = list(self.plan.arguments)
        if self.plan.settings:
            # It holds the secret of the brokers.
            self._config_file.touch(mode=0o600)
            lines = (f"{key}={value}\n" for key, value in self.plan.settings.items())
            self._config_file.write_text("".join(lines), encoding="utf-8")
            arguments += ["-c", str(self._config_file)]
        command = [
            *self._within,
            sys.executable,
            "-m",
            "tanist.cli",
            "--log-file",
            str(self.log_file),
            *arguments,
        ]
        # In a session of its own: Ctrl-C is for the parent, who stops all in order.
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            # It holds the folder too, should it outlive the parent.
            pass_fds=self._locks,
        )
        await self._wait_until_it_serves(self._process)

    async def wait(self) -> int:
        """Wait for its end, and return how."""
        # This one, though another may have been started in its place meanwhile.
        process = self._process
        assert process is not None
        assert process.stdout is not None
        # What it prints after its first line is read, so that it never waits for us.
        while await process.stdout.read(65536):
            pass
        return await process.wait()

    async def said(self) -> bytes:
        """All that it has printed, once it has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        return b"".join(self._said) + await self._process.stdout.read()

    async def stop(self) -> None:
        """Ask it to end and wait; kill it if it does not."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def kill(self) -> bool:
        """End the process that serves, as a crash would; whether there was one."""
        pid = self.serving_pid
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return True

    async def crash(self) -> None:
        """End all of it at once, as its machine would without power."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()

    def pause(self) -> None:
        """Have all of it stand still, as a machine that hangs would."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            for each in (*self._children(pid), pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, number)

    async def _wait_until_it_serves(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self._said.clear()
        said: list[str] = []
        try:
            async with asyncio.timeout(_START_S):
                while printed := await process.stdout.readline():
                    self._said.append(printed)
                    line = printed.decode(errors="replace")
                    if line.startswith(self.plan.ready):
                        return
                    said.append(line.strip())
        except TimeoutError:
            await self.stop()
            said.append(f"it does not serve after {_START_S:g} s")
        raise StartFailed(f"{self.name} did not start: {' '.join(said) or f'see {self.log_file}'}")

    @staticmethod
    def _children(pid: int) -> list[int]:
        try:
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        except OSError:
            return []
        return [int(child) for child in text.split()]
