"""Processes: a module of ours that takes steps, and the time that a process has used."""

import os
import sys
from pathlib import Path

import psutil

from tests.support.rocketmq.scenario import ScenarioProcess


def own_process(module: str, home: Path) -> ScenarioProcess:
    """Run ``python -m module``, which can import what we can import."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    return ScenarioProcess([sys.executable, "-m", module], home, env=environment)


def cpu_s(pid: int | None) -> float:
    """Seconds of CPU time that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system
