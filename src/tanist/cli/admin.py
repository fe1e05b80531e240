"""``tanist admin``: what operators do, with the names and the flags of RocketMQ's ``mqadmin``."""

from types import ModuleType
from typing import Any

import click

from tanist.cli import drill, replication, reset, slave_consume
from tanist.cli.access import AccessGiven, access_options, take_access
from tanist.cli.commands import (
    accounts,
    brokers,
    controllers,
    exports,
    groups,
    messages,
    nameservers,
    offsets,
    sending,
    statistics,
    topics,
    unsupported,
)

SUBJECTS: tuple[ModuleType, ...] = (
    topics,
    groups,
    offsets,
    reset,
    messages,
    sending,
    brokers,
    replication,
    slave_consume,
    drill,
    controllers,
    nameservers,
    statistics,
    exports,
    accounts,
    unsupported,
)
"""Where the commands are, in the order of the reference."""


@click.group()
@access_options
@click.pass_context
def admin(context: click.Context, **given: Any) -> None:
    """Look after brokers, Tanist's and RocketMQ's.

    The names and flags are mqadmin's. How it ends is told by the exit code, see docs/admin.md.
    """
    take_access(context, AccessGiven(**given))


for _subject in SUBJECTS:
    for _command in _subject.COMMANDS:
        admin.add_command(_command)
