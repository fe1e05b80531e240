"""All kinds of clusters with all their faults: what `make chaos` runs. Needs Java and Maven for ZooKeeper."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.zookeeper import Ensemble

TANIST = Path(sys.executable).with_name("tanist")


def main() -> int:
    """Start ZooKeeper, and hand over to ``tanist chaos`` with the arguments that were given."""
    with tempfile.TemporaryDirectory() as folder, Ensemble(Path(folder), size=3) as zookeeper:
        command = [TANIST, "chaos", "--zookeeper", zookeeper.hosts, *sys.argv[1:]]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
