"""The kinds of clusters that are broken, and the processes of each. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tanist.up.plan import BROKERS, CONTROLLER, NAME, NAMESRV, MemberPlan

SEGMENT_BYTES = 4 << 20
"""Small files, so that a long run sees more than one."""
HA_DISTANCE = 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything is. What goes through a proxy is known by the proxy's address."""

    folder: Path
    secret: str
    hub: str
    """The address of all that is no broker."""
    hosts: tuple[str, str]
    """The address of each broker's machine."""
    namesrv_port: int
    controller_port: int
    broker_ports: tuple[int, int]
    registry: str
    """Where brokers find the controller."""
    relay: str
    """The address at which slaves find the HA port of a master: a proxy has the same port there."""
    zookeeper: str = ""
    segment_bytes: int = SEGMENT_BYTES
    is_flushed: bool = False
    """Whether a broker acknowledges what is on its disk, and not before."""

    @property
    def name_server(self) -> str:
        return f"{self.hub}:{self.namesrv_port}"

    def address(self, broker: int) -> str:
        """Where a broker serves."""
        return f"{self.hosts[broker]}:{self.broker_ports[broker]}"

    def ha_port(self, broker: int) -> int:
        """Where a broker serves slaves, and its proxy too."""
        return self.broker_ports[broker] + HA_DISTANCE

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
    port = layout.broker_ports[number]
    settings = {
        "brokerClusterName": "DefaultCluster",
        "brokerName": NAME,
        "listenPort": str(port),
        "haListenPort": str(layout.ha_port(number)),
        "brokerIP1": layout.hosts[number],
        "brokerIP2": layout.relay,
        "bindAddress": layout.hosts[number],
        "namesrvAddr": layout.name_server,
        "storePathRootDir": str(layout.store(number)),
        "mappedFileSizeCommitLog": str(layout.segment_bytes),
        "haSecret": layout.secret,
    }
    if mode.has_fixed_roles:
        master = "ASYNC_MASTER" if mode is Mode.CLASSIC_ASYNC else "SYNC_MASTER"
        settings |= {"brokerId": str(number), "brokerRole": "SLAVE" if number else master}
        if number:
            settings["haMasterAddress"] = f"{layout.relay}:{layout.ha_port(0)}"
    else:
        settings |= {"enableControllerMode": "true", "controllerAddr": layout.registry}
    if mode is Mode.SLAVE_CONSUMPTION:
        settings["coordinator"] = f"tanist://{layout.registry}"
    if layout.is_flushed:
        settings["flushDiskType"] = "SYNC_FLUSH"
    ready = f"The broker {NAME} serves at "
    return MemberPlan(BROKERS[number], ("broker",), ready, settings, is_supervised=mode.has_registry)
