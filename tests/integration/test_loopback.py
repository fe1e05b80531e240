"""A controller and a console that nobody tells otherwise listen on the loopback address, and on no other."""

from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from tanist.check.ports import free_port
from tanist.cli.console import DEFAULT_LISTEN
from tests.support.console_process import ConsoleProcess
from tests.support.tanist_group import ControllerProcess

_LISTEN = "0A"
LOOPBACK = "127.0.0.1"


def listening(port: int) -> list[str]:
    """The addresses at which somebody on this machine listens on a port, as the system has them."""
    return [*_listening(Path("/proc/net/tcp"), port), *_listening(Path("/proc/net/tcp6"), port)]


def _listening(table: Path, port: int) -> Iterator[str]:
    for line in table.read_text().splitlines()[1:] if table.exists() else []:
        _, local, _, state, *_ = line.split()
        address, _, hex_port = local.partition(":")
        if state == _LISTEN and int(hex_port, 16) == port:
            # One of IPv6 stays as it is written there: whichever it is, it is not the one that is wanted.
            is_old = len(address) == 8
            yield str(IPv4Address(bytes.fromhex(address)[::-1])) if is_old else address


def test_a_controller_and_its_metrics_are_for_this_machine_alone(tmp_path: Path) -> None:
    with ExitStack() as held:
        metrics = free_port(LOOPBACK, (), held)
    settings: dict[str, object] = {"metricsExporterType": "PROM", "metricsPromExporterPort": metrics}
    with ControllerProcess(tmp_path, **settings) as controller:
        assert listening(int(controller.address.rpartition(":")[2])) == [LOOPBACK]
        assert listening(metrics) == [LOOPBACK]


def test_a_console_is_for_this_machine_alone(tmp_path: Path) -> None:
    host = DEFAULT_LISTEN.rpartition(":")[0]
    with ConsoleProcess(tmp_path, "127.0.0.1:1", "-l", f"{host}:0") as console:
        assert listening(urlsplit(console.address).port or 0) == [LOOPBACK]
