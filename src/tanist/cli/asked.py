"""What the commands of ``tanist admin`` share: their options, and the connections they ask over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from tanist.admin.asking import asking
from tanist.client.session.wire import Wire
from tanist.client.settings import Credentials

_T = TypeVar("_T")

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
NAME_SERVER = click.option(
    "-n",
    "--namesrvAddr",
    "name_server",
    envvar="NAMESRV_ADDR",
    help="The name server that knows the cluster.",
)


def run_asking(credentials: Credentials | None, action: Callable[[Wire], Awaitable[_T]]) -> _T:
    """Do something over connections that last as long."""

    async def ask() -> _T:
        async with asking(credentials) as wire:
            return await action(wire)

    return asyncio.run(ask())


def check_whom(*, address: str | None, cluster: str | None, name_server: str | None) -> None:
    """Refuse to ask nobody, or both one broker and a cluster."""
    if (address is None) == (cluster is None):
        raise click.UsageError("give either -b, one broker, or -c, a cluster")
    if cluster is not None and name_server is None:
        raise click.UsageError("-c needs -n, the name server that knows the cluster")


def first_of(name_servers: str) -> str:
    """The first of several name servers: each knows all brokers."""
    return name_servers.split(";", maxsplit=1)[0].strip()
