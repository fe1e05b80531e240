"""What the commands of ``tanist admin`` share: their options, and the connections they ask over."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import click

from tanist.admin.asking import Access, asking
from tanist.admin.nameservers import answering
from tanist.client.session.wire import Wire

_T = TypeVar("_T")

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
RECORD = click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what --json prints into this file too.",
)
NAME_SERVER = click.option(
    "-n",
    "--namesrvAddr",
    "name_server",
    envvar="NAMESRV_ADDR",
    help="The name server that knows the cluster.",
)


def bundled(
    kind: Callable[..., Any], *options: Callable[[Any], Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options that several commands have, as one argument ``asked``: ``kind`` has a field for each."""

    def wrap(body: Callable[..., None]) -> Callable[..., None]:
        def run(*args: Any, **given: Any) -> None:
            body(*args, asked=kind(**given))

        run = update_wrapper(run, body)
        for option in reversed(options):
            run = option(run)
        return run

    return wrap


def run_asking(access: Access, action: Callable[[Wire], Awaitable[_T]]) -> _T:
    """Do something over connections that last as long."""

    async def ask() -> _T:
        async with asking(access) as wire:
            return await action(wire)

    return asyncio.run(ask())


def name_servers_of(named: str | None) -> list[str]:
    """The name servers that were named, separated by semicolons. A usage error if none was."""
    found = [each.strip() for each in (named or "").split(";") if each.strip()]
    if not found:
        raise click.UsageError("give -n, the name server that knows the cluster, or NAMESRV_ADDR")
    return found


async def name_server_of(wire: Wire, named: str | None) -> str:
    """The first of those that were named that answers: each knows all brokers."""
    return await answering(wire, name_servers_of(named))
