"""All kinds of clusters with all their faults: what `make chaos` runs. Needs Java and Maven for ZooKeeper."""

import sys
import tempfile
from pathlib import Path

from tanist.cli.chaos import chaos
from tests.support.zookeeper import Ensemble, Server

RUNS = 80
"""At least so many: where a machine can not have some faults, the others come again with other seeds."""


class Hand:
    """Strikes the leader of an ensemble."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._struck: Server | None = None

    def kill(self) -> None:
        self._struck = self._ensemble.leader()
        self._struck.kill()

    def freeze(self) -> None:
        self._struck = self._ensemble.leader()
        self._struck.pause()

    def mend(self) -> None:
        if self._struck is not None:
            if self._struck.is_running:
                self._struck.resume()
            else:
                self._struck.start()
            self._struck = None
        self._ensemble.wait_until_serving()


def main() -> None:
    """Start ZooKeeper, and do what ``tanist chaos`` does with the arguments that were given."""
    with tempfile.TemporaryDirectory() as folder, Ensemble(Path(folder), size=3) as zookeeper:
        arguments = ["--zookeeper", zookeeper.hosts, "--runs", str(RUNS), *sys.argv[1:]]
        chaos.main(arguments, prog_name="make chaos", obj=Hand(zookeeper))


if __name__ == "__main__":
    main()
