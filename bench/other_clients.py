"""The other Python clients of RocketMQ, where they can be had.

They are looked for in the Python that ``OTHER_CLIENTS_PYTHON`` names, else in ours: none of them is among
what the project needs. One talks to the broker itself, through a library in C++ that its package does not
bring; the other one talks gRPC to RocketMQ's proxy, which is started for it.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.partners import PartnerMissing
from tests.support.process import ProcessFailed
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.proxy import running_proxy
from tests.support.rocketmq.scenario import ScenarioProcess

WITH_GRPC = "rocketmq-python-client"
WITH_CPP = "rocketmq-client-python"
_PYTHON = "OTHER_CLIENTS_PYTHON"
_STEPS = Path(__file__).with_name("other_client_steps.py")


@dataclass
class OtherClients:
    """Those that run, with the address that they are to be given; and why others do not."""

    running: list[tuple[str, ScenarioProcess, str]] = field(
        default_factory=list[tuple[str, ScenarioProcess, str]]
    )
    lacks: dict[str, str] = field(default_factory=dict[str, str])


@contextmanager
def other_clients(home: Path, name_server: str, *, cluster: str) -> Generator[OtherClients]:
    """Start what there is, in processes of their own."""
    python = os.environ.get(_PYTHON, sys.executable)
    others = OtherClients()
    with ExitStack() as running:
        for name in (WITH_GRPC, WITH_CPP):
            version = _version(python, name)
            if version is None:
                others.lacks[name] = f"not installed in this Python; {_PYTHON} may name one that has it"
                continue
            try:
                address = name_server
                if name == WITH_GRPC:
                    proxy = running_proxy(home / "proxy", name_server, cluster=cluster, flags=FULL_SPEED)
                    address = running.enter_context(proxy)
            except (PartnerMissing, ProcessFailed) as lack:
                others.lacks[name] = str(lack)
                continue
            process = running.enter_context(ScenarioProcess([python, str(_STEPS), name], home / name))
            others.running.append((f"{name} {version}", process, address))
        yield others


def _version(python: str, name: str) -> str | None:
    script = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    asked = subprocess.run([python, "-c", script, name], capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else None
