"""Name servers: their settings, keys and values, and whether a broker may be written."""

import click

from tanist.admin import nameservers
from tanist.admin.parallel import Told, ask_each
from tanist.cli.commanding import BROKER_NAME, KEY, VALUE, Asker, command
from tanist.cli.shown import Shown, done_at, failed_lines, outcome_of, settings_lines

_NAMESPACE = click.option("-s", "--namespace", required=True, help="The namespace of the key.")


@command("getNamesrvConfig", repeats=True)
async def get_config(ask: Asker) -> Shown:
    """Show the settings that all name servers run with."""
    told = await ask_each(ask.name_servers, lambda each: nameservers.nameserver_config(ask.wire, each))
    parts = [
        line
        for each in told
        if each.value is not None
        for line in (f"# {each.address}", *settings_lines(each.value))
    ]
    value = {each.address: each.value for each in told if each.value is not None}
    return Shown(value, [*parts, *failed_lines(told)], outcome_of(told))


@command("updateNamesrvConfig", KEY, VALUE)
async def update_config(ask: Asker, *, key: str, value: str) -> Shown:
    """Change a setting of all name servers while they run."""
    told = await nameservers.update_nameserver_config(ask.wire, ask.name_servers, {key: value})
    return done_at(told, f"{key}={value}")


@command("updateKvConfig", _NAMESPACE, KEY, VALUE)
async def update_value(ask: Asker, *, namespace: str, key: str, value: str) -> Shown:
    """Set a value at all name servers."""
    told = await nameservers.put_value(ask.wire, ask.name_servers, namespace=namespace, key=key, value=value)
    return done_at(told, f"{namespace} {key}={value}")


@command("deleteKvConfig", _NAMESPACE, KEY)
async def delete_value(ask: Asker, *, namespace: str, key: str) -> Shown:
    """Delete a value at all name servers."""
    told = await nameservers.delete_value(ask.wire, ask.name_servers, namespace=namespace, key=key)
    return done_at(told, f"{namespace} {key} is deleted")


@command("wipeWritePerm", BROKER_NAME)
async def wipe_write(ask: Asker, *, broker_name: str) -> Shown:
    """Keep producers from a broker, by the routes of all name servers."""
    told = await nameservers.wipe_write_perm(ask.wire, ask.name_servers, broker_name)
    return _counted(told, f"{broker_name} takes no messages any more")


@command("addWritePerm", BROKER_NAME)
async def add_write(ask: Asker, *, broker_name: str) -> Shown:
    """Let producers come back to a broker."""
    told = await nameservers.add_write_perm(ask.wire, ask.name_servers, broker_name)
    return _counted(told, f"{broker_name} takes messages again")


COMMANDS = (get_config, update_config, update_value, delete_value, wipe_write, add_write)


def _counted(told: list[Told[int]], done: str) -> Shown:
    value = [
        {
            "namesrvAddr": each.address,
            "topicCount": each.value,
            "failure": None if each.failure is None else str(each.failure),
        }
        for each in told
    ]
    lines = [f"{each.address}: {done}, {each.value} topics" for each in told if each.failure is None]
    return Shown(value, [*lines, *failed_lines(told)], outcome_of(told))
