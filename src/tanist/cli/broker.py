"""``tanist broker``: run a broker, with the options of RocketMQ's ``mqbroker``."""

from importlib import import_module
from pathlib import Path

import click

from tanist.cli.cores import forbid_cores
from tanist.cli.serving import config_file_option, print_option
from tanist.config import LogFormat, ProcessSettings, load_properties, parse_settings
from tanist.log import ProcessLog
from tanist.remoting import TlsSettings
from tanist.supervisor import SupervisorSettings, supervise


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
    it follows a master and holds a copy of its log. With enableControllerMode=true a controller decides which
    of the two it is. Then, and with a coordinator, it runs as two processes, and the parent sees to it that
    its end is noticed.
    """
    raw = load_properties(config_file) if config_file is not None else {}
    if name_servers is not None:
        raw["namesrvAddr"] = name_servers
    supervisor, tls, own, _ = parse_settings(
        raw, SupervisorSettings, TlsSettings, ProcessSettings, source=config_file
    )
    process_log.use_json_unless_told(is_json=own.log_format is LogFormat.JSON)
    if supervisor.is_supervised and not is_printing:
        forbid_cores()
        supervise(supervisor, tls=tls, process_log=process_log)
    # Only here, so that the parent does not hold in memory what it never uses.
    process = import_module("tanist.cli.broker_process")
    process.run_broker(raw, process_log, config_file=config_file, is_printing=is_printing)
