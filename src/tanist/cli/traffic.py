"""``tanist traffic``: what ``tanist up --demo`` starts to send and consume. Not in the list of commands."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from tanist.cli.serving import serve, tell_story
from tanist.log import ProcessLog
from tanist.up.traffic import Traffic, running_traffic


@click.command()
@click.argument("kind", type=click.Choice([kind.value for kind in Traffic]))
@click.option("-n", "--namesrvAddr", "name_server", required=True, help="The name server: host:port.")
@click.option(
    "--offsets",
    "offsets_dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where broadcasting consumers keep how far they are.",
)
@click.pass_obj
def traffic(process_log: ProcessLog, *, kind: str, name_server: str, offsets_dir: Path) -> None:
    """Send or consume at a gentle rate until SIGTERM or SIGINT."""
    tell_story(process_log, unknown=(), source=None)

    @asynccontextmanager
    async def running() -> AsyncGenerator[str]:
        async with running_traffic(Traffic(kind), name_server=name_server, offsets_dir=offsets_dir) as told:
            yield told

    serve(running)
