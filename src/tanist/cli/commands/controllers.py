"""Controllers and switching: who leads, who is master, who is in step, and electing by hand."""

import click

from tanist.admin import controllers
from tanist.cli.commanding import KEY, VALUE, Asker, command
from tanist.cli.shown import Shown, done_at, failed_lines, listing, outcome_of, settings_lines, table_of

_CONTROLLER = click.option(
    "-a", "--controllerAddress", "controller", required=True, help="The controllers: host:port;host:port."
)
_BROKER_NAME = click.option("-bn", "--brokerName", "broker_name", required=True, help="The replica group.")
_ONE_GROUP = (
    click.option("-b", "--brokerName", "broker_name", help="One replica group."),
    click.option("-c", "--clusterName", "cluster", help="All of a cluster."),
)


@command("getSyncStateSet", _CONTROLLER, *_ONE_GROUP, repeats=True)
async def sync_state_set(
    ask: Asker, *, controller: str, broker_name: str | None, cluster: str | None
) -> Shown:
    """Show who is master of each group and who is in step with it, as the controller says."""
    if broker_name is not None:
        names = [broker_name]
    elif cluster is not None:
        info = await controllers.groups_named(
            ask.wire, await ask.name_server(), broker_name=None, cluster=cluster
        )
        names = list(info.broker_addr_table)
    else:
        raise click.UsageError("give -b, a replica group, or -c, a cluster")
    found = await controllers.sync_state(ask.wire, _listed(controller), names)
    shown = listing(controllers.replica_rows(found), controllers.ReplicaRow, none="it knows no such group")
    return Shown(found, shown.parts)


@command("getBrokerEpoch", *_ONE_GROUP, repeats=True)
async def broker_epoch(ask: Asker, *, broker_name: str | None, cluster: str | None) -> Shown:
    """Show the epochs in the logs of all replicas of a group, or of all groups of a cluster."""
    if (broker_name is None) == (cluster is None):
        raise click.UsageError("give either -b, a replica group, or -c, a cluster")
    info = await controllers.groups_named(
        ask.wire, await ask.name_server(), broker_name=broker_name, cluster=cluster
    )
    told = await controllers.epoch_rows(ask.wire, info)
    rows = [row for each in told for row in each.value or []]
    return Shown(rows, [table_of(rows, controllers.EpochRow), *failed_lines(told)], outcome_of(told))


@command("getControllerMetaData", _CONTROLLER, repeats=True)
async def metadata(ask: Asker, *, controller: str) -> Shown:
    """Show who leads the controllers, and who they are."""
    found = await controllers.controller_metadata(ask.wire, _listed(controller)[0])
    peers = [f"peer: {peer}" for peer in (found.peers or "").split(";") if peer]
    leader = f"leader: {found.controller_leader_id} at {found.controller_leader_address or 'nobody'}"
    return Shown(found, [f"group: {found.group}", leader, *peers])


@command("getControllerConfig", _CONTROLLER, repeats=True)
async def get_config(ask: Asker, *, controller: str) -> Shown:
    """Show the settings that controllers run with."""
    told = await controllers.controller_config(ask.wire, _listed(controller))
    parts = [
        line
        for each in told
        if each.value is not None
        for line in (f"# {each.address}", *settings_lines(each.value))
    ]
    value = {each.address: each.value for each in told if each.value is not None}
    return Shown(value, [*parts, *failed_lines(told)], outcome_of(told))


@command("updateControllerConfig", _CONTROLLER, KEY, VALUE)
async def update_config(ask: Asker, *, controller: str, key: str, value: str) -> Shown:
    """Change a setting of controllers while they run."""
    told = await controllers.update_controller_config(ask.wire, _listed(controller), {key: value})
    return done_at(told, f"{key}={value}")


@command(
    "electMaster",
    _CONTROLLER,
    click.option("-b", "--brokerId", "broker_id", type=int, required=True, help="Who becomes master."),
    _BROKER_NAME,
    click.option("-c", "--clusterName", "cluster", required=True, help="The cluster of the group."),
)
async def elect(ask: Asker, *, controller: str, broker_id: int, broker_name: str, cluster: str) -> Shown:
    """Have a replica become master of its group. It has to be alive and in step."""
    found = await controllers.elect_master(
        ask.wire, _listed(controller), cluster=cluster, broker_name=broker_name, broker_id=broker_id
    )
    line = (
        f"{broker_name}: master is {found.master_broker_id} at {found.master_address}, "
        f"epoch {found.master_epoch}, in step {', '.join(map(str, found.sync_state_set)) or 'unchanged'}"
    )
    return Shown(found, [line])


@command(
    "cleanBrokerMetadata",
    _CONTROLLER,
    _BROKER_NAME,
    click.option("-c", "--clusterName", "cluster", help="The cluster; needed with -l or without -b."),
    click.option(
        "-b",
        "--brokerControllerIdsToClean",
        "broker_ids",
        help="1;2 for these replicas; without it the group.",
    ),
    click.option("-l", "--cleanLivingBroker", "are_living_too", is_flag=True, help="Also who is alive."),
)
async def clean_metadata(
    ask: Asker,
    *,
    controller: str,
    broker_name: str,
    cluster: str | None,
    broker_ids: str | None,
    are_living_too: bool,
) -> Shown:
    """Have the controllers forget replicas that do not come back."""
    if broker_ids is not None and not all(each.strip().isdecimal() for each in broker_ids.split(";")):
        raise click.UsageError("-b is a list of ids, as 1;2;3")
    await controllers.clean_broker_metadata(
        ask.wire,
        _listed(controller),
        cluster=cluster,
        broker_name=broker_name,
        broker_ids=broker_ids,
        are_living_too=are_living_too,
    )
    what = f"replicas {broker_ids}" if broker_ids is not None else "all replicas"
    return Shown({"brokerName": broker_name, "cleaned": what}, [f"{what} of {broker_name} are forgotten"])


COMMANDS = (sync_state_set, broker_epoch, metadata, get_config, update_config, elect, clean_metadata)


def _listed(controllers_named: str) -> list[str]:
    return [each.strip() for each in controllers_named.split(";") if each.strip()]
