"""The sample configs start as they are, take messages, and export every metric that there is a name for."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.cli.console import keep_user, made_user
from tanist.config import load_properties
from tanist.console.access.users import Role
from tanist.metrics.names import ALL
from tests.support.deployed import expressions
from tests.support.process import ForeignProcess
from tests.support.promql import read_query
from tests.support.rocketmq.cluster import free_port
from tests.support.samples import CONF, Running, running_sample, send_one
from tests.support.served import tanist_command
from tests.support.zookeeper import Ensemble

UNITS = sorted((CONF / "systemd").glob("*.service"))


def words_of(unit: Path) -> list[str]:
    """What a unit has systemd run, after ``tanist``."""
    line = re.search(
        r"^ExecStart=/opt/tanist/bin/tanist (.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert line is not None
    environment = load_properties(CONF / "systemd" / "console.env")
    return line[1].replace("$TANIST_CONSOLE_OPTIONS", environment["TANIST_CONSOLE_OPTIONS"]).split()


@contextmanager
def console_of_its_unit(folder: Path, name_server: str, metrics: str) -> Generator[None]:
    """The console as its unit and the sample of its options have it, but for places of the test."""
    keep_user(folder / "console.users", made_user("ann", Role.VIEWER, "a long enough one"))
    places = {"127.0.0.1:9876": name_server, "127.0.0.1:5561": metrics}
    words = [
        places.get(word, word.replace("/var/lib/tanist", str(folder)))
        for word in words_of(CONF / "systemd" / "tanist-console.service")
    ]
    command = tanist_command(*words, "-l", "127.0.0.1:0")
    with ForeignProcess("tanist-console", command, directory=folder) as process:
        process.wait_for_output("The console serves at ", timeout_s=60)
        yield


@pytest.mark.partner("java", "maven")
def test_each_sample_starts_takes_a_message_and_is_measured(tmp_path: Path, zookeeper: Ensemble) -> None:
    exported: set[str] = set()

    def look(running: Running) -> None:
        send_one(running.name_server)
        exported.update(running.exported())

    with running_sample("one-pair", tmp_path / "one") as running:
        metrics = f"127.0.0.1:{free_port()}"
        with console_of_its_unit(tmp_path, running.name_server, metrics):
            running.metrics["console"] = f"http://{metrics}/metrics"
            look(running)
    with running_sample("two-pairs", tmp_path / "two") as running:
        look(running)
    with running_sample("quick-start", tmp_path / "quick") as running:
        look(running)
    registry = f"zk://{zookeeper.hosts}/{tmp_path.name}"
    with running_sample("three-controllers", tmp_path / "three", zookeeper=registry) as running:
        look(running)

    assert {name.exported_name for name in ALL} <= exported
    asked = {metric for expression in expressions() for metric in read_query(expression).metrics}
    assert asked - {"up"} <= exported


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_that_there_is(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    kind, *options = words_of(unit)
    assert unit.name in {f"tanist-{kind}.service", f"tanist-{kind}@.service"}
    if kind != "console":
        # So running_sample starts the others, with the file that the unit is told of.
        name = "%i" if "@" in unit.name else kind
        assert options == ["-c", f"/etc/tanist/{name}.conf"]
    for needed in ("Restart=on-failure", "User=tanist", "NoNewPrivileges=true", "StateDirectory=tanist"):
        assert f"\n{needed}\n" in text


@pytest.mark.partner("systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_what_systemd_takes(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    copy = tmp_path / unit.name
    copy.write_text(
        text.replace("/opt/tanist/bin/tanist", os.path.realpath(sys.executable)), encoding="utf-8"
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
