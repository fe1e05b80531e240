"""The process that serves as a broker. Apart from the command, so that a supervisor does not import it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tanist.broker import Broker, BrokerSettings
from tanist.cli.serving import measured, print_settings, serve, tell_story
from tanist.config import ProcessSettings, parse_settings
from tanist.ha.settings import HaSettings
from tanist.log import ProcessLog
from tanist.remoting import ServerLimits, TlsSettings
from tanist.store import StoreSettings
from tanist.supervisor import pulse


def run_broker(
    raw: Mapping[str, str], process_log: ProcessLog, *, config_file: Path | None, is_printing: bool
) -> None:
    """Serve with the settings of ``raw`` until SIGTERM or SIGINT; or print them only."""
    settings, store_settings, limits, tls, ha, process, unknown = parse_settings(
        *(raw, BrokerSettings, StoreSettings, ServerLimits, TlsSettings, HaSettings, ProcessSettings),
        source=config_file,
    )
    if is_printing:
        print_settings(settings, store_settings, limits, tls, ha, process)
        return
    tell_story(
        *(process_log, settings, store_settings, limits, tls, ha, process),
        unknown=unknown,
        source=config_file,
    )

    @asynccontextmanager
    async def serving_broker() -> AsyncGenerator[str]:
        served = Broker(
            *(settings, store_settings),
            limits=limits,
            tls=tls,
            ha=ha,
            process=process,
            config_file=config_file,
        )
        async with served.serving(), measured(served.metrics, process), pulse():
            yield f"The broker {settings.broker_name} serves at {served.address}"

    serve(serving_broker)
