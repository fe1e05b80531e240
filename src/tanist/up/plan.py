"""What a cluster on one machine consists of: ports, settings, folders. Pure.

A broker is known to the registry by its address, so ports are kept from one start to the next as long as
they are free.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from tanist.up.traffic import Traffic

HOST = "127.0.0.1"
NAME = "broker-a"
"""What both brokers are called: they are one replica group."""
NAMESRV, CONTROLLER, CONSOLE = "namesrv", "controller", "console"
BROKERS = ("broker-1", "broker-2")
"""In fixed roles the first is the master."""
_FAST_DISTANCE = 2
_SEGMENT_BYTES = 128 << 20
"""Small files: nobody wants a GiB of disk gone for a look."""


class Mode(StrEnum):
    """Who is master: always the first broker, or whom the controller elects."""

    FIXED_ROLES = "fixed-roles"
    AUTO_SWITCH = "auto-switch"


class Ports(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The port of each process. A broker takes those two below and one above it besides."""

    namesrv: int = 9876
    controller: int = 9878
    first: int = 10911
    second: int = 11911
    console: int = 8080
    namesrv_metrics: int = 5557
    controller_metrics: int = 5558
    first_metrics: int = 5559
    second_metrics: int = 5560
    console_metrics: int = 5561


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """One process: what it is called, what runs it, and what it prints when it serves."""

    name: str
    arguments: tuple[str, ...]
    """After ``tanist``."""
    ready: str
    settings: dict[str, str]
    """What its config file says; nothing if it has none."""
    is_supervised: bool = False
    """Whether the process that serves is the child of the one that is started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The processes, in the groups in which they start: each group needs those before it."""

    home: Path
    mode: Mode
    ports: Ports
    stages: tuple[tuple[MemberPlan, ...], ...]

    @property
    def name_server(self) -> str:
        return f"{HOST}:{self.ports.namesrv}"

    @property
    def coordinator(self) -> str:
        return f"tanist://{HOST}:{self.ports.controller}"

    def address(self, member: str) -> str:
        """Where a member serves; of one that serves nobody, whom it asks."""
        port = {
            NAMESRV: self.ports.namesrv,
            CONTROLLER: self.ports.controller,
            BROKERS[0]: self.ports.first,
            BROKERS[1]: self.ports.second,
            CONSOLE: self.ports.console,
        }.get(member, self.ports.namesrv)
        return f"{HOST}:{port}"


def choose_ports(
    wanted: Ports, is_free: Callable[[int], bool], find_free: Callable[[], int]
) -> tuple[Ports, list[str]]:
    """The ports that are wanted, and others for those that are taken; what was replaced, in words."""
    chosen: dict[str, int] = {}
    told: list[str] = []
    for name in Ports.__struct_fields__:
        port = getattr(wanted, name)
        is_broker = name in {"first", "second"}
        if not all(is_free(each) for each in _all_ports(port, is_broker=is_broker)):
            found = find_free()
            while is_broker and not all(is_free(each) for each in _all_ports(found, is_broker=True)):
                found = find_free()
            told.append(f"port {port} is taken; {found} is used instead")
            port = found
        chosen[name] = port
    return Ports(**chosen), told


def moved_brokers(kept: Ports, chosen: Ports) -> list[tuple[str, int]]:
    """The brokers that could not have their port of the last start, and that port."""
    ports = zip(BROKERS, (kept.first, kept.second), (chosen.first, chosen.second), strict=True)
    return [(name, before) for name, before, now in ports if before != now]


def plan_cluster(
    home: Path, mode: Mode, ports: Ports, *, secret: str, control: Path, has_traffic: bool = False
) -> ClusterPlan:
    """What runs in ``home``. ``secret`` is what the brokers prove to each other, ``control`` a socket."""
    folder = home / mode.value
    names = MemberPlan(
        NAMESRV,
        ("namesrv",),
        "The name server serves at ",
        {
            "listenPort": str(ports.namesrv),
            "kvConfigPath": str(folder / "kvConfig.json"),
            **_measured(ports.namesrv_metrics),
        },
    )
    controller = MemberPlan(
        CONTROLLER,
        ("controller",),
        "The controller serves at ",
        {
            "listenPort": str(ports.controller),
            "controllerStorePath": str(folder / "controller"),
            **_measured(ports.controller_metrics),
        },
    )
    console = MemberPlan(
        CONSOLE,
        (
            "console",
            *("-n", f"{HOST}:{ports.namesrv}"),
            *("-l", f"{HOST}:{ports.console}"),
            *("--metrics", f"{HOST}:{ports.console_metrics}"),
            *("--users", str(home / "console.users")),
            *("--audit-log", str(home / "audit.jsonl")),
            *("--plans", str(folder / "plans")),
            *("--certificates", str(home / "certificates")),
            *("--control", str(control)),
            *(("--coordinator", f"tanist://{HOST}:{ports.controller}") if mode is Mode.FIXED_ROLES else ()),
        ),
        "The console serves at ",
        {},
    )
    brokers = [_broker(number, folder, mode, ports, secret=secret) for number in range(len(BROKERS))]
    traffic = tuple(_traffic(kind, folder, ports) for kind in Traffic) if has_traffic else ()
    stages = ((names, controller), tuple(brokers), (console,), traffic)
    return ClusterPlan(home=home, mode=mode, ports=ports, stages=stages)


def _traffic(kind: Traffic, folder: Path, ports: Ports) -> MemberPlan:
    name_server, offsets = f"{HOST}:{ports.namesrv}", str(folder / "offsets")
    arguments = ("traffic", kind.value, "-n", name_server, "--offsets", offsets)
    return MemberPlan(f"demo-{kind.value}", arguments, "The traffic runs: ", {})


def _broker(number: int, folder: Path, mode: Mode, ports: Ports, *, secret: str) -> MemberPlan:
    port = (ports.first, ports.second)[number]
    settings = {
        "brokerClusterName": "DefaultCluster",
        "brokerName": NAME,
        "listenPort": str(port),
        "haListenPort": str(port + 1),
        "namesrvAddr": f"{HOST}:{ports.namesrv}",
        "storePathRootDir": str(folder / BROKERS[number]),
        "mappedFileSizeCommitLog": str(_SEGMENT_BYTES),
        "haSecret": secret,
        **_measured((ports.first_metrics, ports.second_metrics)[number]),
    }
    if mode is Mode.AUTO_SWITCH:
        settings |= {"enableControllerMode": "true", "controllerAddr": f"{HOST}:{ports.controller}"}
    else:
        settings |= {
            "brokerId": str(number),
            "brokerRole": ("SYNC_MASTER", "SLAVE")[number],
            "coordinator": f"tanist://{HOST}:{ports.controller}",
        }
    return MemberPlan(
        BROKERS[number], ("broker",), f"The broker {NAME} serves at ", settings, is_supervised=True
    )


def _measured(port: int) -> dict[str, str]:
    return {"metricsExporterType": "PROM", "metricsPromExporterPort": str(port)}


def _all_ports(port: int, *, is_broker: bool) -> tuple[int, ...]:
    return (port, port - _FAST_DISTANCE, port + 1) if is_broker else (port,)
