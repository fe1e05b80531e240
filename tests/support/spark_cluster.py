"""A Spark cluster on loopback, from the pip package: a master, two workers, and what is submitted to them."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.spark.java import find_java
from tanist.spark.shipping import pack
from tests.support.rocketmq.cluster import free_port

_START_S = 300.0
_POLL_S = 0.05
_SOURCES = Path(__file__).parents[2] / "src"
_WITHOUT_US = f"import sys\nsys.path[:] = [path for path in sys.path if path != {str(_SOURCES)!r}]\n"
"""What Python runs when it starts, in workers: then they have no Tanist but what they are given."""


class SparkCluster:
    """Everything ends with the block; what the processes said is in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        self._home = Path(spec.origin).parent
        self.master = f"spark://127.0.0.1:{free_port()}"
        self.package = folder / "tanist.zip"
        self._environ = os.environ | {
            "JAVA_HOME": find_java().home,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }

    def __enter__(self) -> Self:
        pack(_SOURCES, self.package)
        (self._folder / "without").mkdir()
        (self._folder / "without" / "sitecustomize.py").write_text(_WITHOUT_US)
        with ExitStack() as running:
            port = self.master.rpartition(":")[2]
            self._start(running, "Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
            for number in (1, 2):
                work = str(self._folder / f"work-{number}")
                given = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", work)
                self._start(running, "Worker", *given, self.master, name=f"worker-{number}", is_bare=True)
            for number in (1, 2):
                self._wait_for(f"worker-{number}", "Successfully registered with master")
            self._running = running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def submit(self, script: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """Submit a script with the package beside it; what it says is in ``driver.log``."""
        command = [
            *(str(self._home / "bin" / "spark-submit"), "--master", self.master),
            *("--py-files", str(self.package), "--driver-memory", "512m", "--executor-memory", "512m"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
            *(str(script), *arguments),
        ]
        with (self._folder / "driver.log").open("wb") as said:
            # Its working folder is where the sources are not: what it imports has to be what was shipped.
            return subprocess.Popen(command, env=self._environ, cwd=self._folder, stdout=said, stderr=said)

    def command(self, *words: str) -> str:
        """Run ``tanist spark`` on the cluster, which ships the package itself; what it prints."""
        given = ("--master", self.master, "--conf", "spark.driver.host=127.0.0.1")
        given += ("--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m")
        command = [sys.executable, "-m", "tanist.cli", "spark", *words, *given]
        with (self._folder / "command.log").open("wb") as said:
            done = subprocess.run(
                command, env=self._environ, cwd=self._folder, stdout=subprocess.PIPE, stderr=said, check=False
            )
        assert done.returncode == 0, self.said("command")[-5000:]
        return done.stdout.decode()

    def said(self, name: str = "driver") -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _start(
        self, running: ExitStack, kind: str, *arguments: str, name: str = "master", is_bare: bool = False
    ) -> None:
        daemon = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        command = [str(self._home / "bin" / "spark-class"), daemon, *arguments]
        environ = self._environ | ({"PYTHONPATH": str(self._folder / "without")} if is_bare else {})
        with (self._folder / f"{name}.log").open("wb") as said:
            process = subprocess.Popen(command, env=environ, cwd=self._folder, stdout=said, stderr=said)
        running.callback(_end, process)

    def _wait_for(self, name: str, text: str) -> None:
        deadline_s = time.monotonic() + _START_S
        while text not in self.said(name):
            assert time.monotonic() < deadline_s, self.said(name)
            time.sleep(_POLL_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
