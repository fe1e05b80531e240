"""Apache RocketMQ's controller, and brokers whose role it decides.

with RocketMQ(tmp_path) as rocketmq:
    controller = start_controller(rocketmq)
    first, second = (start_replica(rocketmq, controller.address) for _ in range(2))
    first.kill()
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.controllers import ControllerView
from tests.support.process import ForeignProcess
from tests.support.rocketmq.cluster import HOST, Broker, RocketMQ, free_port, retried

__all__ = ["SWIFT_CONTROLLER", "SWIFT_REPLICA", "Controller", "start_controller", "start_replica"]

SWIFT_CONTROLLER: Mapping[str, object] = {
    "scanNotActiveBrokerInterval": 200,
    "scanInactiveMasterInterval": 500,
}
SWIFT_REPLICA: Mapping[str, object] = {
    "brokerHeartbeatInterval": 200,
    "controllerHeartBeatTimeoutMills": 2_000,
    "syncBrokerMetadataPeriod": 500,
    "checkSyncStateSetPeriod": 200,
    "syncControllerMetadataPeriod": 1_000,
}
"""For tests: what by default is looked at every five seconds, and given up after ten, is looked at sooner."""
_STOP_TIMEOUT_S = 60.0
_GROUP = "tanist-controllers"
# What it keeps it lays out by a library that wants to look into Java's own classes.
_FLAGS = ("--add-opens=java.base/java.lang=ALL-UNNAMED",)
# The log of its decisions is never longer than a few KiB here.
_SMALL_STORE = {"mappedFileSize": 1 << 20}


@dataclass(frozen=True)
class Controller:
    """One running controller, which leads."""

    process: ForeignProcess
    port: int
    home: Path
    host: str = HOST

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def stop(self) -> None:
        """Stop it cleanly."""
        self.process.stop(timeout_s=_STOP_TIMEOUT_S)

    def kill(self) -> None:
        """Stop it as a crash would."""
        self.process.kill()


def start_controller(
    rocketmq: RocketMQ,
    *,
    home: Path | None = None,
    port: int | None = None,
    properties: Mapping[str, object] | None = None,
) -> Controller:
    """Start the only controller of a group (DLedger's), with RocketMQ's defaults but for ``properties``.

    With the ``home`` and ``port`` of one that has ended, it is that one started again.
    """
    place = home or rocketmq.new_home("controller")
    if port is not None:
        return _start_controller(rocketmq, place, port, properties or {})
    return retried(lambda: _start_controller(rocketmq, place, free_port(), properties or {}))


def _start_controller(
    rocketmq: RocketMQ, home: Path, port: int, properties: Mapping[str, object]
) -> Controller:
    settings = {
        "controllerDLegerGroup": _GROUP,
        "controllerDLegerPeers": f"n0-{rocketmq.host}:{port}",
        "controllerDLegerSelfId": "n0",
        "controllerStorePath": home / "store",
        "bindAddress": rocketmq.host,
        **_SMALL_STORE,
        **properties,
    }
    main_class = "org.apache.rocketmq.controller.ControllerStartup"
    process = rocketmq.start_program(
        "controller", main_class, home, settings, ready="boot success", flags=_FLAGS, heap="128m"
    )
    controller = Controller(process, port, home, rocketmq.host)
    with ControllerView(controller.address) as view:
        view.wait_for_leader()
    return controller


def start_replica(
    rocketmq: RocketMQ,
    controllers: str,
    *,
    store_dir: Path | None = None,
    name: str = "broker-a",
    properties: Mapping[str, object] | None = None,
    within: Sequence[str] = (),
) -> Broker:
    """Start a broker that has its id and its role from a controller, and wait until it has them.

    On the store and the ports of one that has ended, it is that one started again.
    """
    given = {"enableControllerMode": "true", "controllerAddr": controllers, **(properties or {})}
    return rocketmq.start_broker(store_dir=store_dir, name=name, properties=given, within=within)
