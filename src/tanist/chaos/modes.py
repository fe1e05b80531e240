"""The kinds of clusters that are broken, and the processes of each. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tanist.chaos.planted import OPERATOR, Planted
from tanist.up.plan import BROKERS, CONSOLE, CONTROLLER, NAME, NAMESRV, MemberPlan

CLUSTER = "DefaultCluster"

SEGMENT_BYTES = 4 << 20
"""Small files, so that a long run sees more than one."""
_SMALL_INDEX = {"maxHashSlotNum": "5000", "maxIndexNum": "20000"}
"""One of the usual size is 400 MB, too much for a disk that is slow, or a program."""
HA_DISTANCE, METRICS_DISTANCE = 1, 2
"""From a broker's own port."""


class Mode(StrEnum):
    """How a replica group agrees on who is written and read."""

    CLASSIC_ASYNC = "classic-async"
    CLASSIC_SYNC = "classic-sync"
    SLAVE_CONSUMPTION = "slave-consumption"
    AUTO_SWITCH = "auto-switch"
    AUTO_SWITCH_ZOOKEEPER = "auto-switch-zookeeper"

    @property
    def has_fixed_roles(self) -> bool:
        return self not in {Mode.AUTO_SWITCH, Mode.AUTO_SWITCH_ZOOKEEPER}

    @property
    def has_registry(self) -> bool:
        return self not in {Mode.CLASSIC_ASYNC, Mode.CLASSIC_SYNC}


@dataclass(frozen=True, slots=True)
class Road:
    """Where a broker is found, and finds others."""

    host: str
    """Where others find it."""
    bound: str
    """Where it listens."""
    name_server: str
    registry: str
    """Where it finds the controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything is. What goes through a proxy is known by the proxy's address."""

    folder: Path
    planted: Planted
    hub: str
    """The address of all that is no broker."""
    roads: tuple[Road, Road]
    """Of each broker."""
    namesrv_port: int
    controller_port: int
    broker_ports: tuple[int, int]
    console_port: int
    console_metrics_port: int
    relay: str
    """The address at which slaves find the HA port of a master: a proxy has the same port there."""
    zookeeper: str = ""
    segment_bytes: int = SEGMENT_BYTES
    is_flushed: bool = False
    """Whether a broker acknowledges what is on its disk, and not before, to clients and to its master."""

    @property
    def name_server(self) -> str:
        return f"{self.hub}:{self.namesrv_port}"

    def address(self, broker: int) -> str:
        """Where a broker is found."""
        return f"{self.roads[broker].host}:{self.broker_ports[broker]}"

    def ha_port(self, broker: int) -> int:
        """Where a broker serves slaves, and its proxy too."""
        return self.broker_ports[broker] + HA_DISTANCE

    def metrics(self, broker: int) -> str:
        """Where a broker shows its metrics."""
        return f"{self.roads[broker].bound}:{self.broker_ports[broker] + METRICS_DISTANCE}"

    @property
    def console(self) -> str:
        """Where the console serves. It answers by no other address than that of its machine itself."""
        return f"127.0.0.1:{self.console_port}"

    @property
    def console_metrics(self) -> str:
        return f"127.0.0.1:{self.console_metrics_port}"

    @property
    def console_users(self) -> Path:
        """The file of who may log in there."""
        return self.folder / "console.users"

    def store(self, broker: int) -> Path:
        """Where a broker keeps its log."""
        return self.folder / BROKERS[broker]


def plan_members(mode: Mode, layout: Layout) -> tuple[tuple[MemberPlan, ...], ...]:
    """The processes of a mode, in the groups in which they start."""
    names = MemberPlan(
        NAMESRV,
        ("namesrv",),
        "The name server serves at ",
        {
            "listenPort": str(layout.namesrv_port),
            "bindAddress": layout.hub,
            "kvConfigPath": str(layout.folder / "kvConfig.json"),
        },
    )
    first = (names, _controller(mode, layout)) if mode.has_registry else (names,)
    return first, tuple(_broker(number, mode, layout) for number in range(len(BROKERS)))


def plan_console(layout: Layout) -> MemberPlan:
    """The console of any of them. Its users are to be made before."""
    arguments = (
        "console",
        *("-n", layout.name_server),
        *("-l", layout.console),
        *("--metrics", layout.console_metrics),
        *("--users", str(layout.console_users)),
        *("--audit-log", str(layout.folder / "audit.jsonl")),
        *("--access-file", str(layout.planted.access_file)),
    )
    return MemberPlan(CONSOLE, arguments, "The console serves at ", {})


def plan_operator(layout: Layout) -> tuple[str, ...]:
    """What is said to ``tanist`` to make the console's one user."""
    user = (OPERATOR, "--role", "operator", "--password", layout.planted.console_password)
    return ("console", "adduser", *user, "--users", str(layout.console_users))


def _controller(mode: Mode, layout: Layout) -> MemberPlan:
    settings = {
        "listenPort": str(layout.controller_port),
        "bindAddress": layout.hub,
        "controllerStorePath": str(layout.folder / "controller"),
    }
    if mode is Mode.AUTO_SWITCH_ZOOKEEPER:
        settings["coordinator"] = f"zk://{layout.zookeeper}"
    return MemberPlan(CONTROLLER, ("controller",), "The controller serves at ", settings)


def _broker(number: int, mode: Mode, layout: Layout) -> MemberPlan:
    port, road = layout.broker_ports[number], layout.roads[number]
    settings = {
        "brokerClusterName": CLUSTER,
        "brokerName": NAME,
        "listenPort": str(port),
        "haListenPort": str(layout.ha_port(number)),
        "brokerIP1": road.host,
        "brokerIP2": layout.relay,
        "bindAddress": road.bound,
        "namesrvAddr": road.name_server,
        "storePathRootDir": str(layout.store(number)),
        "mappedFileSizeCommitLog": str(layout.segment_bytes),
        "haSecret": layout.planted.ha_secret,
        "tlsServerKeyPassword": layout.planted.tls_key_password,
        "aclEnable": "true",
        "aclConfigPath": str(layout.planted.access_rules),
        "metricsExporterType": "PROM",
        "metricsPromExporterHost": road.bound,
        "metricsPromExporterPort": str(port + METRICS_DISTANCE),
    }
    if mode.has_fixed_roles:
        master = "ASYNC_MASTER" if mode is Mode.CLASSIC_ASYNC else "SYNC_MASTER"
        settings |= {"brokerId": str(number), "brokerRole": "SLAVE" if number else master}
        if number:
            settings["haMasterAddress"] = f"{layout.relay}:{layout.ha_port(0)}"
    else:
        settings |= {"enableControllerMode": "true", "controllerAddr": road.registry}
    if mode is Mode.SLAVE_CONSUMPTION:
        settings["coordinator"] = f"tanist://{road.registry}"
    if layout.is_flushed:
        settings |= {"flushDiskType": "SYNC_FLUSH", "haAckMode": "flushed", **_SMALL_INDEX}
    ready = f"The broker {NAME} serves at "
    return MemberPlan(BROKERS[number], ("broker",), ready, settings, is_supervised=mode.has_registry)
