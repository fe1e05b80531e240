"""A module of ours as a process that takes steps."""

import os
import sys
from pathlib import Path

from tests.support.rocketmq.scenario import ScenarioProcess


def own_process(module: str, home: Path) -> ScenarioProcess:
    """Run ``python -m module``, which can import what we can import."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    return ScenarioProcess([sys.executable, "-m", module], home, env=environment)
