"""``tanist controller``: run a controller, with the options of RocketMQ's ``mqcontroller``."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
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
from tanist.remoting import ClientLimits, ServerLimits, TlsSettings


@click.command()
@config_file_option
@print_option
@click.pass_obj
def controller(process_log: ProcessLog, *, config_file: Path | None, is_printing: bool) -> None:
    """Run a controller until SIGTERM or SIGINT.

    It elects the masters of brokers that run with enableControllerMode=true, those of RocketMQ 5 too.
    """
    raw = load_properties(config_file) if config_file is not None else {}
    settings, server_limits, client_limits, tls, process, unknown = parse_settings(
        raw, ControllerSettings, ServerLimits, ClientLimits, TlsSettings, ProcessSettings, source=config_file
    )
    if is_printing:
        print_settings(settings, server_limits, client_limits, tls, process)
        return
    tell_story(
        *(process_log, settings, server_limits, client_limits, tls, process),
        unknown=unknown,
        source=config_file,
    )

    @asynccontextmanager
    async def running() -> AsyncGenerator[str]:
        server = Controller(settings, server_limits=server_limits, client_limits=client_limits, tls=tls)
        async with server.serving(), measured(server.metrics, process):
            yield f"The controller serves at {server.address}"

    serve(running)
