"""``tanist controller`` as a process: what survives its end, and how it fails to start."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.controller import (
    ApplyBrokerIdRequest,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
)
from tests.support.controllers import ControllerView
from tests.support.reigning import CLUSTER, NAME, asks, heartbeat
from tests.support.served import tanist_command
from tests.support.tanist_group import ControllerProcess
from tests.support.wire import Wire

C, R = RequestCode, ResponseCode


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[ControllerProcess]:
    with ControllerProcess(tmp_path / "controller") as process:
        yield process


def crown(wire: Wire) -> None:
    """Make a group with one replica without a session, which is master."""
    taking = ApplyBrokerIdRequest(
        cluster_name=CLUSTER, broker_name=NAME, applied_broker_id=1, register_check_code="127.0.0.1:1;5"
    )
    requests = (
        Command.request(C.CONTROLLER_APPLY_BROKER_ID, taking),
        Command.request(C.BROKER_HEARTBEAT, heartbeat(1, session_id=None)),
        Command.request(C.CONTROLLER_ELECT_MASTER, asks(1)),
    )
    for request in requests:
        answer = wire.ask(request)
        assert answer.code == R.SUCCESS, answer.remark


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        tanist_command("controller", *arguments), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_groups_survive_its_end_and_that_is_no_news_about_their_masters(
    controller: ControllerProcess, end: str
) -> None:
    with Wire(controller.address) as wire:
        crown(wire)
        getattr(controller, end)()
    controller.restart()
    with ControllerView(controller.address) as view:
        group = view.group(NAME)
        assert (group.master_broker_id, group.master_epoch) == (1, 1)
    with Wire(controller.address) as wire:
        asking = GetNextBrokerIdRequest(cluster_name=CLUSTER, broker_name=NAME)
        answer = wire.ask(Command.request(C.CONTROLLER_GET_NEXT_BROKER_ID, asking))
        assert answer.header(GetNextBrokerIdResponse).next_broker_id == 2
    assert "Traceback" not in controller.process.output()


def test_two_controllers_do_not_share_a_file(controller: ControllerProcess, tmp_path: Path) -> None:
    config = tmp_path / "second.conf"
    config.write_text(f"listenPort=0\ncontrollerStorePath={tmp_path / 'controller' / 'store'}\n")
    ended = run("-c", config)
    assert ended.returncode == 1
    assert "tanist: " in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


def test_a_wrong_value_is_one_line_that_names_it(tmp_path: Path) -> None:
    config = tmp_path / "controller.conf"
    config.write_text("coordinator=etcd://here\n")
    ended = run("-c", config)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"tanist: {config}: coordinator=")


def test_p_prints_every_key_and_the_default_where_it_differs(tmp_path: Path) -> None:
    config = tmp_path / "controller.conf"
    config.write_text("enableElectUncleanMaster=true\nscanNotActiveBrokerInterval=5000\n")
    printed = run("-c", config, "-p").stdout.splitlines()
    assert "listenPort=9878" in printed
    position = printed.index("enableElectUncleanMaster=true")
    assert printed[position - 1] == "# default: enableElectUncleanMaster=false"
