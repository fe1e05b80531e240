"""How a server command runs: its settings, then the fastest event loop there is, until it is told to stop."""

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import click
import msgspec
from prometheus_client import CollectorRegistry

from tanist.cli.cores import forbid_cores
from tanist.config import LogFormat, ProcessSettings, describe, secret_values, warn_unsupported
from tanist.log import ProcessLog
from tanist.metrics import serving_metrics
from tanist.remoting.event_loop import find_loop_factory
from tanist.remoting.file_limit import raise_file_limit

_log = logging.getLogger(__name__)

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

config_file_option = click.option(
    "-c",
    "--configFile",
    "config_file",
    type=click.Path(path_type=Path),
    help="The config file, in RocketMQ's format and with its keys.",
)
print_option = click.option(
    "-p",
    "--printConfigItem",
    "is_printing",
    is_flag=True,
    help="Print every key with its value, and its default where that is another, and end.",
)


def print_settings(*settings: msgspec.Struct) -> None:
    """What ``-p`` prints: itself a config file."""
    for line in describe(*settings):
        click.echo(line)


def tell_story(
    process_log: ProcessLog, *settings: msgspec.Struct, unknown: Collection[str], source: Path | None
) -> None:
    """A server's log tells what happens, keeps its secrets, and begins with the keys that do nothing."""
    process_log.set_level(logging.INFO)
    process_log.hide(*secret_values(*settings))
    for group in settings:
        if isinstance(group, ProcessSettings):
            process_log.use_json_unless_told(is_json=group.log_format is LogFormat.JSON)
    warn_unsupported(_log, unknown, source=source)


@asynccontextmanager
async def measured(registry: CollectorRegistry, process: ProcessSettings) -> AsyncGenerator[None]:
    """Serve metrics while the block lasts, if the settings say so. Raises ConfigError."""
    if not process.is_measured:
        yield
        return
    host, port = process.metrics_prom_exporter_host, process.metrics_prom_exporter_port
    async with serving_metrics(registry, host, port):
        yield


def serve(make: Callable[[], AbstractAsyncContextManager[str]]) -> None:
    """Serve inside what ``make`` returns until SIGTERM or SIGINT; then leave it, and return.

    What entering gives is printed: the line that says that, and where, the process serves.
    """
    forbid_cores()
    raise_file_limit()
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(_serve(make))


async def _serve(make: Callable[[], AbstractAsyncContextManager[str]]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for stop_signal in _STOP_SIGNALS:
        loop.add_signal_handler(stop_signal, stopping.set)
    async with make() as line:
        click.echo(line)
        await stopping.wait()
