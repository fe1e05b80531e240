"""Replication: how masters and slaves stand to each other, and filling a slave anew."""

import time
from contextlib import aclosing

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from tanist.admin.asking import Access
from tanist.admin.replication import cluster_brokers, ha_status, rebuild_slave
from tanist.cli.asked import JSON, NAME_SERVER, check_whom, first_of, run_asking
from tanist.cli.ha_views import Told, print_status, to_json
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.protocol.bodies.replication import HARuntimeInfo


@click.command(name="haStatus")
@click.option("-b", "--brokerAddr", "address", help="One broker, host:port.")
@click.option("-c", "--clusterName", "cluster", help="All brokers of a cluster.")
@NAME_SERVER
@click.option(
    "-i", "--interval", "interval_s", type=click.IntRange(min=1), help="Again every so many seconds."
)
@JSON
@click.pass_obj
def ha_status_command(
    access: Access,
    *,
    address: str | None,
    cluster: str | None,
    name_server: str | None,
    interval_s: int | None,
    as_json: bool,
) -> None:
    """Show how masters and slaves stand to each other: lag, state, who was refused, and why."""
    check_whom(address=address, cluster=cluster, name_server=name_server)

    async def look(wire: Wire) -> list[Told]:
        if address is not None:
            return [Told(address, await ha_status(wire, address))]
        assert name_server is not None
        assert cluster is not None
        found = await cluster_brokers(wire, first_of(name_server), cluster)
        return [await _told(wire, one) for one in found]

    while True:
        for told in run_asking(access, look):
            if as_json:
                click.echo(to_json(told, is_pretty=interval_s is None))
            else:
                print_status(Console(), told)
        if interval_s is None:
            return
        time.sleep(interval_s)


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
        click.echo(to_json(Told(address, last)))
    else:
        click.echo(f"in step at {last.client.log_end}; the old files are deleted")


async def _told(wire: Wire, address: str) -> Told:
    """One of several brokers: that it does not answer keeps nobody from seeing the others."""
    try:
        return Told(address, await ha_status(wire, address))
    except MQError as error:
        return Told(address, None, str(error))


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
