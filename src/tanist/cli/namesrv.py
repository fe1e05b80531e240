"""``tanist namesrv``: run a name server, with the options of RocketMQ's ``mqnamesrv``."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import click

from tanist.cli.serving import (
    config_file_option,
    measured,
    print_option,
    print_settings,
    serve,
    tell_story,
)
from tanist.config import ProcessSettings, load_properties, parse_settings
from tanist.controller import Controller, ControllerSettings
from tanist.log import ProcessLog
from tanist.metrics import together
from tanist.nameserver import NameServer, NameServerSettings
from tanist.remoting import ClientLimits, ServerLimits, TlsSettings


@click.command()
@config_file_option
@print_option
@click.pass_obj
def namesrv(process_log: ProcessLog, *, config_file: Path | None, is_printing: bool) -> None:
    """Run a name server until SIGTERM or SIGINT.

    Brokers register with it and clients ask it where topics are, those of RocketMQ 4.9 and 5 too. With
    enableControllerInNamesrv=true it runs a controller as well, as RocketMQ's quick start has it.
    """
    raw = load_properties(config_file) if config_file is not None else {}
    settings, server_limits, client_limits, tls, process, unknown = parse_settings(
        raw, NameServerSettings, ServerLimits, ClientLimits, TlsSettings, ProcessSettings, source=config_file
    )
    groups = (settings, server_limits, client_limits, tls, process)
    beside: ControllerSettings | None = None
    if settings.enable_controller_in_namesrv:
        # The port that the file names is the name server's.
        rest = {key: value for key, value in raw.items() if key != "listenPort"}
        beside, not_its = parse_settings(rest, ControllerSettings, source=config_file)
        unknown &= not_its
    if is_printing:
        # What both have is the name server's.
        print_settings(*([beside] if beside else []), *groups)
        return
    tell_story(process_log, *groups, unknown=unknown, source=config_file)

    @asynccontextmanager
    async def name_server() -> AsyncGenerator[str]:
        server = NameServer(settings, server_limits=server_limits, client_limits=client_limits, tls=tls)
        controller = beside and Controller(
            beside, server_limits=server_limits, client_limits=client_limits, tls=tls
        )
        metrics = together(server.metrics, controller.metrics) if controller else server.metrics
        beside_it = controller.serving() if controller else nullcontext()
        async with server.serving(), beside_it, measured(metrics, process):
            told = f"\nThe controller serves at {controller.address}" if controller else ""
            yield f"The name server serves at {server.address}{told}"

    serve(name_server)
