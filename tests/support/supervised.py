"""A supervised process that is no broker, but has the pulse of one: a supervisor does the same for both.

Run as a program it supervises itself, and its child prints its number and its session, and waits for SIGTERM.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from tanist.log import ProcessLog
from tanist.remoting import TlsSettings
from tanist.supervisor import SupervisorSettings, pulse, supervise

CLUSTER, BROKER_NAME = "c", "a"
EXIT_CODE = 7
"""What the child ends with after SIGTERM."""


def supervised_command(settings: SupervisorSettings) -> list[str | Path]:
    """What runs this program with these settings."""
    return [sys.executable, Path(__file__), msgspec.json.encode(settings).decode()]


async def _live() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with pulse():
        print(f"child {os.getpid()} {os.environ['TANIST_SESSION_ID']} lives", flush=True)
        await stopping.wait()


def main() -> None:
    settings = msgspec.json.decode(sys.argv[1], type=SupervisorSettings)
    with ProcessLog(level=0) as log:
        supervise(settings, tls=TlsSettings(), process_log=log)
        asyncio.run(_live())
        sys.exit(EXIT_CODE)


if __name__ == "__main__":
    main()
