"""The sample configs start as they are, take messages, and export every metric that there is a name for."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tanist.client import Message, MQError, SendStatus
from tanist.metrics.names import ALL
from tanist.sync import Producer
from tests.support.console_process import ConsoleProcess
from tests.support.deployed import expressions
from tests.support.promql import read_query
from tests.support.rocketmq.cluster import free_port
from tests.support.samples import CONF, Running, running_sample
from tests.support.site import wait_until
from tests.support.zookeeper import Ensemble

UNITS = sorted((CONF / "systemd").glob("*.service"))


def send_one(name_server: str) -> None:
    """Until a message is where the settings promise it to be, on the slaves too."""
    with Producer(group="samples", namesrv=name_server) as producer:

        def is_sent() -> bool:
            try:
                return producer.send(Message("SampleTopic", b"...")).status is SendStatus.OK
            except MQError:
                return False

        wait_until(is_sent, pause_s=0.1)


@pytest.mark.partner("java", "maven")
def test_each_sample_starts_takes_a_message_and_is_measured(tmp_path: Path, zookeeper: Ensemble) -> None:
    exported: set[str] = set()

    def look(running: Running) -> None:
        send_one(running.name_server)
        exported.update(running.exported())

    with running_sample("one-pair", tmp_path / "one") as running:
        metrics = f"127.0.0.1:{free_port()}"
        with ConsoleProcess(tmp_path, running.name_server, "--metrics", metrics):
            running.metrics["console"] = f"http://{metrics}/metrics"
            look(running)
    with running_sample("two-pairs", tmp_path / "two") as running:
        look(running)
    registry = f"zk://{zookeeper.hosts}/{tmp_path.name}"
    with running_sample("three-controllers", tmp_path / "three", zookeeper=registry) as running:
        look(running)

    assert {name.exported_name for name in ALL} <= exported
    asked = {metric for expression in expressions() for metric in read_query(expression).metrics}
    assert asked - {"up"} <= exported


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_that_there_is_and_is_what_systemd_takes(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    command = re.search(r"^ExecStart=(\S+) (\w+)", text, re.MULTILINE)
    assert command is not None
    assert command[2] in {"namesrv", "controller", "broker", "console"}
    for needed in ("Restart=on-failure", "User=tanist", "NoNewPrivileges=true", "StateDirectory=tanist"):
        assert f"\n{needed}\n" in text
    if shutil.which("systemd-analyze") is None:
        return
    copy = tmp_path / unit.name
    copy.write_text(text.replace(command[1], os.path.realpath(sys.executable)), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
