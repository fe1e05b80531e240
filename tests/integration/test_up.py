"""``tanist up``: a cluster comes up, its master is killed by REST, its slave is read, all of it stops."""

import json
import os
import signal
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
from click.testing import CliRunner

from tanist.cli.main import tanist
from tanist.up.home_lock import locked_home
from tanist.up.plan import Mode, Ports
from tanist.up.traffic import BROADCASTING_GROUP, CLUSTERING_GROUP
from tests.support.console_process import basic
from tests.support.process import ForeignProcess
from tests.support.served import tanist_command
from tests.support.site import wait_until
from tests.support.up_process import STOP_S, UpProcess, keep_ports

_LARGE_BYTES = 1 << 20


def up(home: Path, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(tanist, ["up", "--home", str(home), *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def states(told: dict[str, Any]) -> dict[str, str]:
    return {member["name"]: member["state"] for member in told["members"]}


def rest(cluster: UpProcess) -> Callable[..., Any]:
    """Asks the console of a cluster."""

    def ask(target: str, value: object = None) -> Any:
        body = None if value is None else msgspec.json.encode(value)
        headers = {"Authorization": basic(cluster.user, cluster.password)}
        with urlopen(Request(f"{cluster.console}/api/v1{target}", body, headers), timeout=60) as answer:
            return json.loads(answer.read())

    return ask


def all_told(cluster: UpProcess) -> dict[str, bytes]:
    """All that the console and the metrics tell to who asks, by where."""
    headers = {"Authorization": basic(cluster.user, cluster.password)}
    targets = [
        f"{cluster.console}/api/v1{path.replace('{address}', cluster.master)}"
        for path, methods in rest(cluster)("/openapi.json")["paths"].items()
        if "get" in methods and "{" not in path.replace("{address}", "")
    ]
    assert any(cluster.master in target for target in targets)
    metrics = [
        f"http://127.0.0.1:{getattr(cluster.ports, name)}/metrics"
        for name in Ports.__struct_fields__
        if name.endswith("_metrics")
    ]
    return {target: read(Request(target, headers=headers)) for target in (*targets, *metrics)}


def read(request: Request) -> bytes:
    """The answer, also if it says what was wrong with the question."""
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.read()
    except HTTPError as error:
        if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return error.read()


def holders(cluster: UpProcess, told: dict[str, bytes]) -> set[str]:
    """Where a secret of the cluster stands, in files and in what was told."""
    secret = (cluster.home / "ha.secret").read_bytes()
    files = {
        path.name: path.read_bytes()
        for path in cluster.home.rglob("*")
        if path.is_file() and path.stat().st_size < _LARGE_BYTES
    }
    assert any(b"127.0.0.1" in files[name] for name in files if name.endswith(".log"))
    assert secret not in cluster.process.output().encode()
    return {
        where for where, text in (files | told).items() if secret in text or cluster.password.encode() in text
    }


def test_a_cluster_comes_up_loses_its_master_gets_it_back_and_stops(tmp_path: Path) -> None:
    with UpProcess(tmp_path, "--demo") as cluster:
        home, ask = cluster.home, rest(cluster)
        assert set(states(up(home, "status")).values()) == {"runs"}
        second = CliRunner().invoke(tanist, ["up", "--home", str(home)])
        assert "runs in" in str(second.exception)

        def reader() -> str | None:
            groups = ask("/slave-consumption")["groups"]
            return str(groups[0]["reader"]) if groups else None

        wait_until(lambda: reader() == cluster.master, pause_s=0.2)
        groups = {CLUSTERING_GROUP, BROADCASTING_GROUP}
        wait_until(lambda: groups <= {group["group"] for group in ask("/groups")["groups"]}, pause_s=0.2)
        done = ask("/machine/kill", {"whom": "master"})
        assert done["done"].startswith("broker-1 is killed")
        assert states(up(home, "status"))["broker-1"] == "killed"
        wait_until(lambda: reader() == cluster.slave, pause_s=0.2)

        assert up(home, "restart")["done"] == "broker-1 started again"
        wait_until(lambda: reader() == cluster.master, pause_s=0.2)
        told = all_told(cluster)
        assert up(home, "kill", "master")["done"].startswith("broker-1 is killed")
        assert states(up(home, "status"))["broker-1"] == "killed"
        stopped = CliRunner().invoke(tanist, ["up", "--home", str(home), "stop"])
        assert (stopped.exit_code, stopped.output) == (0, "stopped\n")
        assert cluster.process.wait(timeout_s=STOP_S) == 0
    assert holders(cluster, told) == {"ha.secret", "broker-1.conf", "broker-2.conf"}
    gone = CliRunner().invoke(tanist, ["up", "--home", str(home), "status"])
    assert "no cluster runs" in str(gone.exception)


def test_ctrl_c_while_it_starts_is_obeyed_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    keep_ports(home, Mode.FIXED_ROLES)
    with ForeignProcess("tanist-up", tanist_command("up", "--home", home), directory=tmp_path) as process:
        wait_until((home / Mode.FIXED_ROLES.value / "controller.log").exists)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout_s=STOP_S) == 0
        assert process.output() == "Stopping.\n"
    # Who is left behind would hold it.
    with locked_home(home):
        pass
