"""No server can leave a core: of each process that holds secrets the system says that it is not dumped."""

import subprocess
import sys

import pytest

IS_DUMPABLE = "__import__('ctypes').CDLL(None).prctl(3, 0, 0, 0, 0)"

SERVED = f"""
import os, signal
from contextlib import asynccontextmanager
from tanist.cli.serving import serve

@asynccontextmanager
async def running():
    os.kill(os.getpid(), signal.SIGTERM)
    yield str({IS_DUMPABLE})

print({IS_DUMPABLE})
serve(running)
"""

SUPERVISED = f"""
from tanist.cli import broker
from tanist.log import ProcessLog

def supervise(*_, **__):
    print({IS_DUMPABLE})
    raise SystemExit

print({IS_DUMPABLE})
broker.supervise = supervise
broker.load_properties = lambda _: {{"enableControllerMode": "true", "controllerAddr": "127.0.0.1:1"}}
broker.broker.main(["-c", "broker.conf"], obj=ProcessLog(level=0))
"""


@pytest.mark.parametrize("script", [SERVED, SUPERVISED], ids=["whoever serves", "a broker's parent"])
def test_what_holds_secrets_leaves_no_core(script: str) -> None:
    # In a process of its own, for what is forbidden to this one would stay so.
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["1", "0"], done.stderr
