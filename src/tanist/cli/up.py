"""``tanist up``: a whole cluster on this machine, to look at and to try things with."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import time
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.cli.asked import JSON
from tanist.cli.console import keep_user, made_user
from tanist.cli.ha_views import print_whole
from tanist.console.access.users import Role
from tanist.errors import MQError
from tanist.log import ProcessLog
from tanist.up.cluster import LocalCluster
from tanist.up.control import (
    Act,
    ClusterState,
    NotRunning,
    Order,
    control_place,
    find_socket,
    give_order,
)
from tanist.up.home_lock import HomeTaken, locked_home
from tanist.up.plan import HOST, ClusterPlan, Mode, Ports, choose_ports, moved_brokers, plan_cluster

_STOP_S = 60.0
_USER = "operator"


class AlreadyRunning(MQError):
    """A cluster runs in this folder."""


class PortTaken(MQError):
    """A broker can not have the port by which the registry of this folder knows it."""


def _default_home() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "tanist"


@click.group(invoke_without_command=True)
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=_default_home,
    show_default="~/.local/state/tanist",
    help="The folder that holds everything: stores, logs, settings.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.FIXED_ROLES.value,
    show_default=True,
    help="A master whose slave is read when it is gone, or one that a controller replaces.",
)
@click.option(
    "--demo",
    "has_traffic",
    is_flag=True,
    help="Add traffic: producers at a gentle rate, a clustering and a broadcasting group.",
)
@click.pass_context
def up(context: click.Context, *, home: Path, mode: str, has_traffic: bool) -> None:
    """Run a name server, a controller, two brokers and the console on this machine, until Ctrl-C.

    The console's address and a login are printed. From a second terminal: status, kill master, restart, stop.
    """
    home = home.absolute()
    if context.invoked_subcommand is not None:
        context.obj = home
        return
    process_log: ProcessLog = context.obj
    _refuse_second(home)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked_home(home) as lock, control_place(home) as control:
        plan = _plan(home, Mode(mode), control, has_traffic=has_traffic)
        password = secrets.token_urlsafe(12)
        process_log.hide(password)
        keep_user(home / "console.users", made_user(_USER, Role.OPERATOR, password))
        asyncio.run(_run(plan, control, password, lock=lock))


@up.command()
@JSON
@click.pass_obj
def status(home: Path, *, as_json: bool) -> None:
    """Show which processes run."""
    _show(_order(home, Act.STATUS), as_json=as_json)


@up.command()
@click.argument("whom", default="master")
@JSON
@click.pass_obj
def kill(home: Path, *, whom: str, as_json: bool) -> None:
    """Kill a process as a crash would: the master, or one by its name. It stays dead until restart."""
    _show(_order(home, Act.KILL, whom), as_json=as_json)


@up.command()
@click.argument("whom", default="")
@JSON
@click.pass_obj
def restart(home: Path, *, whom: str, as_json: bool) -> None:
    """Start a process again; without a name, all that are dead."""
    _show(_order(home, Act.RESTART, whom), as_json=as_json)


@up.command()
@click.pass_obj
def stop(home: Path) -> None:
    """Stop the cluster, and wait until it has."""
    _order(home, Act.STOP)
    deadline_s = time.monotonic() + _STOP_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(HomeTaken), locked_home(home):
            click.echo("stopped")
            return
        time.sleep(0.05)
    raise click.ClickException(f"it has not stopped after {_STOP_S:g} s; its logs are in {home}")


async def _run(plan: ClusterPlan, control: Path, password: str, *, lock: int) -> None:
    started_s = time.monotonic()
    cluster = LocalCluster(plan, lock=lock)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cluster.is_told_to_stop.set)
    async with cluster.running(control) as is_up:
        if is_up:
            click.echo(f"Up after {time.monotonic() - started_s:.1f} s, all of it in {plan.home}")
            click.echo(f"Point RocketMQ clients at the name server {plan.name_server}")
            click.echo(f"The console is at http://{plan.address('console')}/")
            click.echo(f"Log in as {_USER} with {password} (made for this start). Ctrl-C stops all.")
        await cluster.is_told_to_stop.wait()
        click.echo("Stopping.")


def _plan(home: Path, mode: Mode, control: Path, *, has_traffic: bool) -> ClusterPlan:
    """The plan, with the ports of the last start where they are free. Raises PortTaken."""
    kept = home / f"{mode.value}.ports.json"
    wanted = msgspec.json.decode(kept.read_bytes(), type=Ports) if kept.exists() else Ports()
    ports, told = choose_ports(wanted, _is_free, _find_free)
    if kept.exists():
        _refuse_move(home, wanted, ports)
    for line in told:
        click.echo(line.capitalize())
    kept.write_bytes(msgspec.json.encode(ports))
    return plan_cluster(home, mode, ports, secret=_secret(home), control=control, has_traffic=has_traffic)


def _refuse_move(home: Path, kept: Ports, chosen: Ports) -> None:
    """The registry knows brokers by their address: those that moved would be others to it."""
    moved = moved_brokers(kept, chosen)
    if moved:
        names = " and ".join(f"{port} of {name}" for name, port in moved)
        raise PortTaken(
            f"port {names} is taken, or one beside it (2 below, 1 above), and the registry in {home}"
            " knows brokers by their port; free it, or start another cluster with: tanist up --home FOLDER"
        )


def _secret(home: Path) -> str:
    file = home / "ha.secret"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(32), encoding="utf-8")
    return file.read_text(encoding="utf-8")


def _refuse_second(home: Path) -> None:
    try:
        asyncio.run(give_order(find_socket(home), Order(act=Act.STATUS)))
    except NotRunning:
        return
    raise AlreadyRunning(f"a cluster runs in {home} already: tanist up --home {home} status")


def _order(home: Path, act: Act, whom: str = "") -> ClusterState:
    return asyncio.run(give_order(find_socket(home), Order(act=act, whom=whom)))


def _show(state: ClusterState, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(state), indent=2).decode())
        return
    if state.done:
        click.echo(state.done)
    table = Table("process", "state", "pid", "address", "log", box=None)
    for member in state.members:
        name = f"{member.name} (master)" if member.is_master else member.name
        table.add_row(name, member.state, str(member.pid or ""), member.address, member.log_file)
    print_whole(Console(), table)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            return False
    return True


def _find_free() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
