"""Apache RocketMQ, started from the jars that somebody has, to be checked beside Tanist."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tanist.admin.asking import asking
from tanist.admin.cluster import topic_route
from tanist.check.ports import free_port
from tanist.errors import MQError

HOME = "ROCKETMQ_HOME"
_HOST = "127.0.0.1"
_BROKER_DISTANCES = (-2, 1)
_START_S = 90.0
_POLL_S = 0.2
_FLAGS = (
    *("-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    # Without it a server makes an RSA key as it starts.
    "-Dtls.server.mode=disabled",
    "-Djava.net.preferIPv4Stack=true",
)
_FIRST_TOPIC = "TBW102"
"""The topic by which a broker makes others; with it the name server knows the broker."""


class NoRocketMQ(MQError):
    """It can not be started here; the text says what is missing."""


def find_jars() -> Path:
    """The folder of the jars. Raises NoRocketMQ, which says how to get them."""
    home = os.environ.get(HOME, "")
    jars = Path(home) / "lib"
    if not home or not any(jars.glob("rocketmq-broker-*.jar")):
        found = f"{jars} holds no rocketmq-broker-*.jar" if home else f"{HOME} is not set"
        raise NoRocketMQ(
            f"Apache RocketMQ can not be started: {found}; unpack a binary release of it and set {HOME} to "
            "its folder, or name a cluster that runs with --target rocketmq=HOST:PORT"
        )
    if shutil.which("java") is None:
        raise NoRocketMQ("Apache RocketMQ can not be started: there is no java; install a JRE of 8 or newer")
    return jars


@contextmanager
def running(folder: Path) -> Generator[str]:
    """A name server and a broker of RocketMQ while the block lasts; gives the name server's address."""
    jars = find_jars()
    with ExitStack() as held:
        name_port = free_port(_HOST, (), held)
        broker_port = free_port(_HOST, _BROKER_DISTANCES, held)
    namesrv = f"{_HOST}:{name_port}"
    with (
        _java(jars, folder / "namesrv", "namesrv.NamesrvStartup", {"listenPort": name_port}),
        _java(jars, folder / "broker", "broker.BrokerStartup", _broker(folder, namesrv, broker_port)),
    ):
        asyncio.run(_wait_for_route(namesrv, folder))
        yield namesrv


def _broker(folder: Path, namesrv: str, port: int) -> dict[str, object]:
    store = folder / "broker" / "store"
    return {
        "brokerName": "broker-a",
        "brokerIP1": _HOST,
        "listenPort": port,
        "haListenPort": port + 1,
        "namesrvAddr": namesrv,
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "mappedFileSizeCommitLog": 64 << 20,
        "timerWheelEnable": "false",
    }


@contextmanager
def _java(jars: Path, home: Path, main: str, settings: Mapping[str, object]) -> Generator[None]:
    home.mkdir(parents=True)
    config = home / "server.conf"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    words = ("java", *_FLAGS, f"-Duser.home={home}", "-cp", f"{jars}/*", f"org.apache.rocketmq.{main}")
    with (home / "output").open("wb") as output:
        process = subprocess.Popen(  # noqa: S603
            [*words, "-c", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, HOME: str(home)},
        )
    try:
        yield
    finally:
        # What it would write down as it stops goes with its folder.
        process.kill()
        process.wait()


async def _wait_for_route(namesrv: str, folder: Path) -> None:
    async with asking() as wire:
        try:
            async with asyncio.timeout(_START_S):
                while True:
                    try:
                        await topic_route(wire, namesrv, _FIRST_TOPIC)
                    except MQError:
                        await asyncio.sleep(_POLL_S)
                    else:
                        return
        except TimeoutError:
            said = (folder / "broker" / "output").read_text(encoding="utf-8", errors="replace")[-500:].strip()
            raise NoRocketMQ(f"no broker of RocketMQ after {_START_S:g} s; it said: {said}") from None
