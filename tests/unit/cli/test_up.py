"""What keeps ``tanist up`` from starting, and what it leaves as it was then."""

import socket
from pathlib import Path

import msgspec
from click.testing import CliRunner

from tanist.cli.console import keep_user, made_user
from tanist.cli.main import tanist
from tanist.console.access.users import Role, read_users
from tanist.up.home_lock import locked_home
from tanist.up.plan import HOST, Mode, Ports


def refusal(home: Path) -> str:
    done = CliRunner().invoke(tanist, ["up", "--home", str(home)])
    assert done.exit_code != 0
    return str(done.exception)


def test_a_brokers_port_that_is_taken_is_told_and_the_registry_stays(tmp_path: Path) -> None:
    registry = tmp_path / Mode.FIXED_ROLES.value / "controller" / "registry"
    registry.parent.mkdir(parents=True)
    registry.write_text("who may be read")
    kept = tmp_path / f"{Mode.FIXED_ROLES.value}.ports.json"
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        kept.write_bytes(msgspec.json.encode(Ports(second=port)))
        told = refusal(tmp_path)
    assert f"{port} of broker-2" in told
    assert "--home" in told
    assert registry.read_text() == "who may be read"
    assert msgspec.json.decode(kept.read_bytes(), type=Ports).second == port


def test_users_that_were_added_outlive_the_next_start(tmp_path: Path) -> None:
    users = tmp_path / "console.users"
    for name, password in (("ann", "a long enough one"), ("operator", "of the first start")):
        keep_user(users, made_user(name, Role.VIEWER, password))
    keep_user(users, made_user("operator", Role.OPERATOR, "of the second start"))
    read = read_users(users)
    assert read.check("ann", "a long enough one") is not None
    assert read.check("operator", "of the first start") is None
    operator = read.check("operator", "of the second start")
    assert operator is not None
    assert operator.is_operator
    assert users.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_work_in_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with locked_home(tmp_path):
        assert "work in" in refusal(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]
