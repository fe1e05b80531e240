"""Replication: how masters and slaves stand to each other, and filling a slave anew."""

from contextlib import aclosing
from functools import partial

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from tanist.admin.asking import Access
from tanist.admin.parallel import Told, ask_each
from tanist.admin.replication import ha_status, rebuild_slave
from tanist.cli.asked import JSON, run_asking
from tanist.cli.commanding import ALL_BROKERS, ONE_BROKER, Asker, command
from tanist.cli.ha_views import print_status, to_value
from tanist.cli.shown import Shown, outcome_of, to_json
from tanist.client.session.wire import Wire
from tanist.protocol.bodies.replication import HARuntimeInfo


@command("haStatus", ONE_BROKER, ALL_BROKERS, repeats=True)
async def ha_status_command(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Show how masters and slaves stand to each other: lag, state, who was refused, and why.

    The JSON of -b is an object, that of -c an array of them.
    """
    addresses = await ask.brokers(address, cluster, with_slaves=True)
    if address is not None:
        told = Told(address, await ha_status(ask.wire, address))
        return Shown(to_value(told), [partial(print_status, told=told)])
    answers = await ask_each(addresses, lambda each: ha_status(ask.wire, each))
    parts = [partial(print_status, told=each) for each in answers]
    return Shown([to_value(each) for each in answers], parts, outcome_of(answers))


@click.command(name="rebuildSlave")
@click.option("-b", "--brokerAddr", "address", required=True, help="The slave, host:port.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
@click.pass_obj
def rebuild_slave_command(access: Access, *, address: str, yes: bool, as_json: bool) -> None:
    """Fill a slave anew from its master, because its log is not the master's.

    Its old files are set aside at first, and deleted when it is in step.
    """
    status = run_asking(access, lambda wire: ha_status(wire, address))
    _check_rebuildable(address, status)
    if not yes:
        click.confirm(_question(address, status), abort=True, err=True)
    last = run_asking(access, lambda wire: _watch(wire, address, status, is_quiet=as_json))
    if as_json:
        click.echo(to_json(to_value(Told(address, last))))
    else:
        click.echo(f"in step at {last.client.log_end}; the old files are deleted")


def _check_rebuildable(address: str, status: HARuntimeInfo) -> None:
    if status.role is None:
        raise click.ClickException(f"{address} is a broker of RocketMQ, which can not do that")
    if status.is_master:
        raise click.ClickException(f"{address} is a master: its log is the one that slaves copy")


def _question(address: str, status: HARuntimeInfo) -> str:
    client = status.client
    reason = f"Its master does not take it: {client.reason}\n" if client.is_refused else ""
    return (
        f"Slave {status.broker_id} of {status.broker_name} at {address}: its log ends at {client.log_end}.\n"
        f"{reason}Set the log aside, fill the slave anew from {client.master_addr}, and delete the old files "
        "when it is in step?"
    )


async def _watch(wire: Wire, address: str, status: HARuntimeInfo, *, is_quiet: bool) -> HARuntimeInfo:
    """Follow the slave until it is in step."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True, quiet=is_quiet)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("begins anew", total=None)
        async with aclosing(rebuild_slave(wire, address, status)) as looks:
            async for found in looks:
                client = found.client
                if client.is_refused:
                    raise click.ClickException(f"the master still does not take it: {client.reason}")
                progress.update(
                    task,
                    description=client.state or "",
                    total=client.master_log_end,
                    completed=client.log_end,
                )
                status = found
    return status


COMMANDS = (ha_status_command, rebuild_slave_command)
