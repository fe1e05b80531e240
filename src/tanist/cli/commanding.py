"""How a command of ``tanist admin`` is made: an async function that asks, and says what to show.

    @command("topicClusterList", TOPIC, repeats=True)
    async def topic_clusters(ask: Asker, *, topic: str) -> Shown:
        "Show which clusters have a topic."
        return Shown(found := await topics.clusters_of(ask.wire, await ask.name_server(), topic), found)

Every one of them has ``-n``, ``--json`` and, if it only looks, ``-i SECONDS`` (``--interval`` where
``mqadmin`` uses ``-i`` for something else).
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console

from tanist.admin.asking import Access
from tanist.admin.nameservers import answering
from tanist.admin.replication import cluster_brokers, cluster_masters
from tanist.cli.asked import JSON, NAME_SERVER, run_asking
from tanist.cli.shown import Shown, print_shown, to_json
from tanist.client.session.wire import Wire

TOPIC = click.option("-t", "--topic", required=True, help="The topic.")
GROUP = click.option("-g", "--groupName", "group", required=True, help="The consumer group.")
BROKER = click.option("-b", "--brokerAddr", "address", required=True, help="The broker, host:port.")
BROKER_NAME = click.option("-b", "--brokerName", "broker_name", required=True, help="The broker's name.")
ONE_BROKER = click.option("-b", "--brokerAddr", "--broker", "address", help="One broker, host:port.")
CLUSTER = click.option("-c", "--clusterName", "--cluster", "cluster", help="All masters of a cluster.")
WHOM = (ONE_BROKER, CLUSTER)
KEY = click.option("-k", "--key", required=True, help="The key of the setting.")
VALUE = click.option("-v", "--value", required=True, help="Its value.")
YES = click.option("--yes", is_flag=True, help="Do not ask.")

Body = Callable[..., Awaitable[Shown]]
Decorate = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Asker:
    """What a command asks with."""

    wire: Wire
    access: Access
    named: str | None
    """The name servers that were named, separated by semicolons."""

    @property
    def name_servers(self) -> list[str]:
        """All name servers. A usage error if none was named."""
        found = [each.strip() for each in (self.named or "").split(";") if each.strip()]
        if not found:
            raise click.UsageError("give -n, the name server that knows the cluster, or NAMESRV_ADDR")
        return found

    async def name_server(self) -> str:
        """The first name server that answers."""
        return await answering(self.wire, self.name_servers)

    async def brokers(
        self, address: str | None, cluster: str | None, *, with_slaves: bool = False
    ) -> list[str]:
        """The broker that was named, or the masters of a cluster, or all its brokers. Raises NotThere."""
        if (address is None) == (cluster is None):
            raise click.UsageError("give either -b, one broker, or -c, a cluster")
        if address is not None:
            return [address]
        assert cluster is not None
        find = cluster_brokers if with_slaves else cluster_masters
        return await find(self.wire, await self.name_server(), cluster)


def command(name: str, *options: Decorate, repeats: bool = False) -> Callable[[Body], click.Command]:
    """Make a command of a body. Its docstring is the help; with ``repeats`` it can look again and again."""

    def make(body: Body) -> click.Command:
        @click.pass_obj
        def run(
            access: Access,
            *,
            name_server: str | None,
            as_json: bool,
            interval_s: int | None = None,
            **given: Any,
        ) -> None:
            while True:
                shown = run_asking(access, lambda wire: body(Asker(wire, access, name_server), **given))
                if as_json:
                    click.echo(to_json(shown.value, is_pretty=interval_s is None))
                else:
                    print_shown(shown, Console())
                if interval_s is None:
                    break
                time.sleep(interval_s)
            if shown.exit_code:
                raise SystemExit(shown.exit_code)

        made: Any = run
        shared = (NAME_SERVER, *([_interval(options)] if repeats else []), JSON)
        for option in reversed((*options, *shared)):
            made = option(made)
        return click.command(name=name, help=body.__doc__)(made)

    return make


def _interval(options: Sequence[Decorate]) -> Decorate:
    """``-i``, unless the command has another use for it."""
    parameters = [parameter for option in options for parameter in _parameters(option)]
    is_taken = any("-i" in parameter.opts for parameter in parameters)
    names = ("--interval",) if is_taken else ("-i", "--interval")
    return click.option(*names, "interval_s", type=click.IntRange(min=1), help="Again every so many seconds.")


def _parameters(option: Decorate) -> list[click.Parameter]:
    """What an option declares, found by declaring it on nothing."""

    def nothing() -> None:
        pass

    return getattr(option(nothing), "__click_params__", [])
