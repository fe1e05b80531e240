"""What RocketMQ's distribution has for a first try of the controller, and for containers, runs as it is.

Tests run beside each other: only ports and folders are not those of its files.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.process import ForeignProcess
from tests.support.rocketmq.cluster import free_broker_port, free_port
from tests.support.samples import send_one
from tests.support.served import tanist_command
from tests.support.site import wait_until

pytestmark = pytest.mark.takes(15)

NAMES = {
    "enableControllerInNamesrv": "true",
    "controllerDLegerGroup": "group1",
    "controllerDLegerSelfId": "n0",
}
REPLICA = {
    "brokerClusterName": "DefaultCluster",
    "brokerName": "broker-a",
    "brokerId": "-1",
    "brokerRole": "SLAVE",
    "deleteWhen": "04",
    "fileReservedTime": "48",
    "enableControllerMode": "true",
    "allAckInSyncStateSet": "true",
}
IN_A_CONTAINER = {
    "brokerClusterName": "DefaultCluster",
    "brokerName": "broker-a",
    "brokerId": "0",
    "brokerRole": "SYNC_MASTER",
    "flushDiskType": "ASYNC_FLUSH",
    "totalReplicas": "2",
    "inSyncReplicas": "2",
    "minInSyncReplicas": "1",
    "enableAutoInSyncReplicas": "true",
    "slaveReadEnable": "true",
    "brokerHeartbeatInterval": "1000",
    "brokerNotActiveTimeoutMillis": "5000",
    "sendHeartbeatTimeoutMillis": "1000",
    "enableSlaveActingMaster": "true",
}
NO_EFFECT_IN_A_CONTAINER = (
    "brokerNotActiveTimeoutMillis,enableAutoInSyncReplicas,enableSlaveActingMaster,"
    "sendHeartbeatTimeoutMillis,totalReplicas"
)


@contextmanager
def started(kind: str, folder: Path, settings: Mapping[str, object]) -> Generator[ForeignProcess]:
    """A server whose file has these keys; its home, for what the file leaves open, is the folder."""
    folder.mkdir(parents=True)
    config = folder / f"{kind}.conf"
    config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    env = {**os.environ, "HOME": str(folder)}
    with ForeignProcess(kind, tanist_command(kind, "-c", config), directory=folder, env=env) as process:
        process.wait_for_output(" serves at ", timeout_s=60)
        yield process


def warnings_of(process: ForeignProcess) -> list[str]:
    """The keys in each warning that some do nothing."""
    lines = (line for line in process.output().splitlines() if "settings without effect" in line)
    return [line.partition("keys=")[2] for line in lines]


def own(folder: Path, port: int) -> dict[str, object]:
    store = folder / "store"
    places = {"storePathRootDir": store, "storePathCommitLog": store / "commitlog"}
    return {"listenPort": port, **places}


def test_the_quick_start_of_the_controller_is_a_name_server_and_two_replicas(tmp_path: Path) -> None:
    names, controller = free_port(), free_port()
    peers = {"listenPort": names, "controllerDLegerPeers": f"n0-127.0.0.1:{controller}"}
    places = {"controllerAddr": f"127.0.0.1:{controller}", "namesrvAddr": f"127.0.0.1:{names}"}
    first, second = tmp_path / "n0", tmp_path / "n1"
    with (
        started("namesrv", tmp_path / "names", NAMES | peers) as name_server,
        started("broker", first, {**REPLICA, **places, **own(first, free_broker_port())}) as one,
        started("broker", second, {**REPLICA, **places, **own(second, free_broker_port())}) as other,
    ):
        assert f"The name server serves at 127.0.0.1:{names}\n" in name_server.output()
        name_server.wait_for_output(f"The controller serves at 127.0.0.1:{controller}\n", timeout_s=30)
        assert [warnings_of(process) for process in (name_server, one, other)] == [[], [], []]
        wait_until(lambda: name_server.output().count("replica alive group=broker-a") == 2)
        send_one(f"127.0.0.1:{names}")
        name_server.stop(timeout_s=20)
        assert "Traceback" not in name_server.output()


def test_a_controller_on_its_own_listens_where_its_peers_name_it(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "controllerDLegerGroup": "group1",
        "controllerDLegerPeers": f"n0-127.0.0.1:{port}",
        "controllerDLegerSelfId": "n0",
    }
    with started("controller", tmp_path / "alone", settings) as controller:
        assert f"The controller serves at 127.0.0.1:{port}\n" in controller.output()
        assert warnings_of(controller) == []
    # Without what RocketMQ's controllers agree by each of these would lead.
    several = settings | {"controllerDLegerPeers": f"n0-127.0.0.1:{port};n1-127.0.0.2:{port}"}
    for kind, more in (("controller", {}), ("namesrv", {"enableControllerInNamesrv": "true"})):
        config = tmp_path / f"{kind}.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in (several | more).items()))
        with ForeignProcess(kind, tanist_command(kind, "-c", config), directory=tmp_path) as refused:
            assert refused.wait(timeout_s=30) != 0
            assert f"{config}: controllerDLegerPeers=" in refused.output()
            assert "coordinator=zk://host:port" in refused.output()


def test_brokers_and_name_server_of_containers_run_by_themselves(tmp_path: Path) -> None:
    names = {"listenPort": free_port(), "supportActingMaster": "true"}
    with started("namesrv", tmp_path / "names", names) as name_server:
        assert warnings_of(name_server) == []
        for role, broker_id in (("SYNC_MASTER", 0), ("SLAVE", 1)):
            folder, port = tmp_path / role, free_broker_port()
            settings = IN_A_CONTAINER | {"brokerRole": role, "brokerId": str(broker_id)}
            with started(
                "broker", folder, {**settings, **own(folder, port), "haListenPort": port + 1}
            ) as broker:
                assert warnings_of(broker) == [NO_EFFECT_IN_A_CONTAINER]
