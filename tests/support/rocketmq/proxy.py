"""RocketMQ's proxy, through which clients with gRPC reach a broker of any kind."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.support.process import ForeignProcess
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.rocketmq.jars import QUICK_START, environment, install_proxy

_START_TIMEOUT_S = 60.0


@contextmanager
def running_proxy(
    home: Path, name_server: str, *, cluster: str, flags: Sequence[str] = QUICK_START
) -> Generator[str]:
    """Run a proxy for the brokers of one cluster; the address that clients use."""
    port = free_broker_port()
    settings = {
        "rocketMQClusterName": cluster,
        "namesrvAddr": name_server,
        "grpcServerPort": port,
        "remotingListenPort": free_broker_port(),
    }
    home.mkdir(parents=True)
    config = home / "rmq-proxy.json"
    config.write_bytes(msgspec.json.encode(settings))
    command = install_proxy().command(
        "org.apache.rocketmq.proxy.ProxyStartup",
        *("-pm", "cluster", "-n", name_server, "-pc", str(config)),
        home=home,
        heap="512m",
        flags=flags,
    )
    with ForeignProcess("proxy", command, directory=home, env=environment(home)) as process:
        process.wait_for_output("startup successfully", timeout_s=_START_TIMEOUT_S)
        yield f"127.0.0.1:{port}"
