"""``tanist up``: a cluster comes up, its master is killed by REST, its slave is read, all of it stops."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
from click.testing import CliRunner

from tanist.cli.main import tanist
from tanist.up.plan import Mode, Ports
from tanist.up.traffic import BROADCASTING_GROUP, CLUSTERING_GROUP
from tests.support.console_process import basic
from tests.support.process import ForeignProcess
from tests.support.rocketmq.cluster import free_broker_port, free_port
from tests.support.served import tanist_command
from tests.support.site import wait_until

_LOGIN = re.compile(r"The console is at (\S+)/\nLog in as (\S+) with (\S+) ")
_START_S, _STOP_S = 60.0, 30.0


def up(home: Path, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(tanist, ["up", "--home", str(home), *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def states(told: dict[str, Any]) -> dict[str, str]:
    return {member["name"]: member["state"] for member in told["members"]}


def rest(output: str) -> Callable[..., Any]:
    """Asks the console that told this login."""
    found = _LOGIN.search(output)
    assert found is not None, output
    address, user, password = found.groups()

    def ask(target: str, value: object = None) -> Any:
        body = None if value is None else msgspec.json.encode(value)
        request = Request(f"{address}/api/v1{target}", body, {"Authorization": basic(user, password)})
        with urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    return ask


def test_a_cluster_comes_up_loses_its_master_gets_it_back_and_stops(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    ports = Ports(
        namesrv=free_port(),
        controller=free_port(),
        first=free_broker_port(),
        second=free_broker_port(),
        console=free_port(),
    )
    (home / f"{Mode.FIXED_ROLES.value}.ports.json").write_bytes(msgspec.json.encode(ports))
    command = tanist_command("up", "--home", home, "--demo")
    with ForeignProcess("tanist-up", command, directory=tmp_path) as process:
        process.wait_for_output("Ctrl-C stops all", timeout_s=_START_S)
        ask = rest(process.output())
        assert set(states(up(home, "status")).values()) == {"runs"}
        second = CliRunner().invoke(tanist, ["up", "--home", str(home)])
        assert "runs in" in str(second.exception)

        def reader() -> str | None:
            groups = ask("/slave-consumption")["groups"]
            return str(groups[0]["reader"]) if groups else None

        wait_until(lambda: reader() == f"127.0.0.1:{ports.first}", pause_s=0.2)
        groups = {CLUSTERING_GROUP, BROADCASTING_GROUP}
        wait_until(lambda: groups <= {group["group"] for group in ask("/groups")["groups"]}, pause_s=0.2)
        done = ask("/machine/kill", {"whom": "master"})
        assert done["done"].startswith("broker-1 is killed")
        assert states(up(home, "status"))["broker-1"] == "killed"
        wait_until(lambda: reader() == f"127.0.0.1:{ports.second}", pause_s=0.2)

        assert up(home, "restart")["done"] == "broker-1 started again"
        wait_until(lambda: reader() == f"127.0.0.1:{ports.first}", pause_s=0.2)
        process.stop(timeout_s=_STOP_S)
        assert process.exit_code == 0
    gone = CliRunner().invoke(tanist, ["up", "--home", str(home), "status"])
    assert "no cluster runs" in str(gone.exception)
