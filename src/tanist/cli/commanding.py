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
from typing import Any, NoReturn

import click
from rich.console import Console

from tanist.admin.asking import Access
from tanist.admin.replication import cluster_brokers, cluster_masters
from tanist.cli.asked import JSON, NAME_SERVER, name_server_of, name_servers_of, run_asking
from tanist.cli.exit_codes import in_one_line
from tanist.cli.shown import Shown, print_shown, to_json
from tanist.client.session.wire import Wire
from tanist.errors import MQError

TOPIC = click.option("-t", "--topic", required=True, help="The topic.")
GROUP = click.option("-g", "--groupName", "group", required=True, help="The consumer group.")
BROKER = click.option("-b", "--brokerAddr", "address", required=True, help="The broker, host:port.")
BROKER_NAME = click.option("-b", "--brokerName", "broker_name", required=True, help="The broker's name.")
ONE_BROKER = click.option("-b", "--brokerAddr", "--broker", "address", help="One broker, host:port.")
CLUSTER = click.option("-c", "--clusterName", "--cluster", "cluster", help="All masters of a cluster.")
ALL_BROKERS = click.option(
    "-c", "--clusterName", "--cluster", "cluster", help="All brokers of a cluster, slaves too."
)
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
    is_repeated: bool = False
    """Whether it is asked again and again."""

    @property
    def name_servers(self) -> list[str]:
        """All name servers. A usage error if none was named."""
        return name_servers_of(self.named)

    async def name_server(self) -> str:
        """The first name server that answers."""
        return await name_server_of(self.wire, self.named)

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
            def look() -> Shown:
                is_repeated = interval_s is not None
                return run_asking(
                    access, lambda wire: body(Asker(wire, access, name_server, is_repeated), **given)
                )

            if interval_s is not None:
                _repeat(look, interval_s, as_json=as_json)
            shown = look()
            _print(shown, as_json=as_json)
            if shown.exit_code:
                raise SystemExit(shown.exit_code)

        made: Any = run
        shared = (NAME_SERVER, *([_interval(options)] if repeats else []), JSON)
        for option in reversed((*options, *shared)):
            made = option(made)
        return click.command(name=name, help=body.__doc__)(made)

    return make


def _repeat(look: Callable[[], Shown], interval_s: int, *, as_json: bool) -> NoReturn:
    """Look until Ctrl-C. Who watches a cluster wants to see it come back: an error is a line, and no end."""
    while True:
        try:
            _print(look(), as_json=as_json, is_pretty=False)
        except MQError as error:
            click.echo(f"tanist: {in_one_line(error)}", err=True)
        time.sleep(interval_s)


def _print(shown: Shown, *, as_json: bool, is_pretty: bool = True) -> None:
    if as_json:
        click.echo(to_json(shown.value, is_pretty=is_pretty))
    else:
        print_shown(shown, Console())


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
