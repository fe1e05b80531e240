"""A broker's process, as a child of this one that ends with it.

The child is forked, not started anew: it goes on where the caller stands, with the same arguments, log and
terminal. No thread may run yet, and nothing large should be imported: the parent keeps it.
"""

import ctypes
import os
import secrets
import signal
from contextlib import suppress
from dataclasses import dataclass

from tanist.supervisor.watchdog import Pulse

SESSION_ID = "TANIST_SESSION_ID"
"""The variable by which the child knows the name of its session, which its heartbeats carry."""
WATCHDOG_FD = "TANIST_WATCHDOG_FD"
"""The variable with the number of the pipe that its pulse goes down."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""What asks a process to stop. They are held back in the parent until it can pass them on."""

_PR_SET_PDEATHSIG = 1
_READ_BYTES = 4096
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class ForkedBroker:
    """The child, as the parent sees it. Until ``reap`` its number can not become another process's."""

    pid: int
    session_id: str
    _pipe: int

    def wait(self) -> None:
        """Return when the process has ended. Blocks."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def reap(self) -> int:
        """How the process ended: with its exit code, or with 128 and the signal's number, as in a shell."""
        os.close(self._pipe)
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else _SIGNALLED - code

    def send(self, signal_number: int) -> None:
        os.kill(self.pid, signal_number)

    def look(self) -> Pulse:
        """What came down the pipe since the last look."""
        try:
            return Pulse.BEAT if os.read(self._pipe, _READ_BYTES) else Pulse.ENDED
        except BlockingIOError:
            return Pulse.SILENT


def fork_broker() -> ForkedBroker | None:
    """The child in the parent, and None in the child. The parent begins with STOP_SIGNALS held back."""
    session_id = secrets.token_hex(16)
    looked_at, beaten = os.pipe()
    parent = os.getpid()
    # One that came before the parent can pass it on would end the parent alone.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    pid = os.fork()
    if pid:
        os.close(beaten)
        os.set_blocking(looked_at, False)
        return ForkedBroker(pid, session_id, looked_at)
    _end_with(parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    os.close(looked_at)
    os.set_blocking(beaten, False)
    os.environ[SESSION_ID] = session_id
    os.environ[WATCHDOG_FD] = str(beaten)
    return None


def _end_with(parent: int) -> None:
    """Have the system kill this process when its parent is gone, however that ends.

    Nobody would see it die, or see it hang, any more.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"a process can not be tied to its parent: {os.strerror(number)}")
    if os.getppid() != parent:
        with suppress(ProcessLookupError):  # It was gone already.
            os.kill(os.getpid(), signal.SIGKILL)
