"""``tanist broker``: run a broker, with the options of RocketMQ's ``mqbroker``."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from tanist.broker import Broker, BrokerSettings
from tanist.cli.serving import config_file_option, print_option, print_settings, serve, tell_story
from tanist.config import load_properties, parse_settings
from tanist.ha.settings import HaSettings
from tanist.log import ProcessLog
from tanist.remoting import ServerLimits, TlsSettings
from tanist.store import StoreSettings


@click.command()
@config_file_option
@click.option(
    "-n", "--namesrvAddr", "name_servers", envvar="NAMESRV_ADDR", help="Name servers: host:port;host:port."
)
@print_option
@click.pass_obj
def broker(
    process_log: ProcessLog, *, config_file: Path | None, name_servers: str | None, is_printing: bool
) -> None:
    """Run a broker until SIGTERM or SIGINT.

    It serves the producers, the consumers and the mqadmin of RocketMQ 4.9 and 5. With brokerRole=SLAVE
    it follows a master and holds a copy of its log.
    """
    raw = load_properties(config_file) if config_file is not None else {}
    if name_servers is not None:
        raw["namesrvAddr"] = name_servers
    settings, store_settings, limits, tls, ha, unknown = parse_settings(
        raw, BrokerSettings, StoreSettings, ServerLimits, TlsSettings, HaSettings, source=config_file
    )
    if is_printing:
        print_settings(settings, store_settings, limits, tls, ha)
        return
    tell_story(process_log, settings, store_settings, limits, tls, ha, unknown=unknown, source=config_file)

    @asynccontextmanager
    async def serving_broker() -> AsyncGenerator[str]:
        served = Broker(settings, store_settings, limits=limits, tls=tls, ha=ha, config_file=config_file)
        async with served.serving():
            yield f"The broker {settings.broker_name} serves at {served.address}"

    serve(serving_broker)
