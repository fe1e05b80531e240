"""A name server, brokers and clients of Apache RocketMQ, all on the loopback address.

Ports are chosen at random. Between choosing and binding somebody else may take one, so a start that fails on
a taken port is tried again with others.
"""

import contextlib
import functools
import itertools
import random
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from tanist.model.topics import AUTO_CREATE_TOPIC
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.nameserver import GetRouteRequest
from tests.support.process import ForeignProcess, ProcessFailed
from tests.support.rocketmq.client import (
    MAIN_CLASS,
    BackgroundProducer,
    KeyQuestion,
    Received,
    Sent,
    TimeQuestion,
    ask,
    encode_options,
)
from tests.support.rocketmq.jars import (
    CLIENT_LINES,
    LOGGING,
    QUICK_START,
    Installation,
    environment,
    install,
    install_client,
    install_old_broker,
)
from tests.support.wire import Wire

_T = TypeVar("_T")

CONSUMER_GROUP = "tanist-test-consumer"
"""The group in whose name ``consume_all`` pulls."""

HOST = "127.0.0.1"
"""Where everything listens."""
_START_TIMEOUT_S = 60.0
# A broker that stops waits for its consume queues and its threads in turn.
_STOP_TIMEOUT_S = 60.0
_START_ATTEMPTS = 3
_ROUTE_TIMEOUT_S = 60.0
_ROUTE_POLL_S = 0.05
_ENDLESS = 1 << 30
# The fast listener's port is fixed at this distance from the broker's.
_FAST_PORT_DISTANCE = 2
_HA_PORT_DISTANCE = 1
_SERVER_PORTS = (12_000, 32_000)

# The older line lets go of files in a way that Java no longer allows by itself.
_OLD_BROKER_FLAGS = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.nio", "sun.nio.ch", "jdk.internal.ref")
)

# Small files and buffers: a test's store is a few MiB, and its end of file is soon reached.
_SMALL_STORE = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20 * 1000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
    "timerWheelEnable": "false",
}


@dataclass(frozen=True)
class Broker:
    """One running broker."""

    process: ForeignProcess
    name: str
    port: int
    ha_port: int
    store_dir: Path
    host: str = HOST

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def stop(self) -> None:
        """Stop it cleanly: everything is flushed and ``abort`` is removed."""
        self.process.stop(timeout_s=_STOP_TIMEOUT_S)

    def kill(self) -> None:
        """Stop it as a crash would: ``abort`` stays."""
        self.process.kill()


class RocketMQ:
    """The name server of one test, and what is started around it. Everything ends with the block."""

    def __init__(
        self,
        directory: Path,
        *,
        name_server: str = "",
        flags: Sequence[str] = QUICK_START,
        host: str = HOST,
        name_server_properties: Mapping[str, object] | None = None,
    ) -> None:
        """Use the name server at this address, which the test runs; without one, start RocketMQ's own.

        ``flags`` are Java's, for the servers. ``host`` is where those listen that are no brokers.
        ``name_server_properties`` override the settings of RocketMQ's own name server.
        """
        self.host = host
        self._installation = install()
        self._directory = directory
        self._client_home = directory / "client"
        self._running = contextlib.ExitStack()
        self._home_count = 0
        self._flags = flags
        self._name_server_properties = name_server_properties or {}
        self.name_server = name_server

    def __enter__(self) -> Self:
        if not self.name_server:
            self.name_server = f"{self.host}:{retried(self._start_name_server)}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def stop_name_server(self) -> None:
        """Stop RocketMQ's own name server cleanly."""
        self._name_server_process.stop(timeout_s=_STOP_TIMEOUT_S)

    def start_broker(
        self,
        *,
        store_dir: Path | None = None,
        name: str = "broker-a",
        properties: Mapping[str, object] | None = None,
        within: Sequence[str] = (),
    ) -> Broker:
        """Start a broker on this store, on a new one if none is given.

        It is a master with small files; ``properties`` override that, and every other setting of ours.
        ``within`` is a command that runs it elsewhere, as in another network namespace.
        """
        start = functools.partial(self._start_broker, within=within)
        return self._start_on_new_ports(start, store_dir, name, properties)

    def start_old_broker(
        self,
        *,
        store_dir: Path | None = None,
        name: str = "broker-a",
        properties: Mapping[str, object] | None = None,
    ) -> Broker:
        """Start a broker of the 4.9 line in the same way. Slaves find it at the port above its own."""
        return self._start_on_new_ports(self._start_old_broker, store_dir, name, properties)

    def _start_on_new_ports(
        self,
        start: Callable[[Path, Path, str, Mapping[str, object]], Broker],
        store_dir: Path | None,
        name: str,
        properties: Mapping[str, object] | None,
    ) -> Broker:
        home = self.new_home("broker")
        return retried(lambda: start(home, store_dir or home / "store", name, properties or {}))

    def new_home(self, kind: str) -> Path:
        """A directory for one more server, which is not there yet."""
        self._home_count += 1
        return self._directory / f"{kind}-{self._home_count}"

    def produce(
        self,
        topic: str,
        *,
        count: int,
        body_bytes: int = 100,
        queues: Sequence[int] = (0,),
        tags: Sequence[str] = (),
        key_prefix: str = "",
        delay_level: int = 0,
    ) -> list[Sent]:
        """Send messages to these queues in turn, with these tags in turn, delayed if a level is given.

        The key of a message is its number after ``key_prefix``, if there is one; its body is that of
        :func:`body_of`. A topic that is not there yet is created with enough queues.
        """
        self._wait_for_route(topic, AUTO_CREATE_TOPIC)
        lines = self.client(
            "produce",
            topic=topic,
            count=count,
            bodyBytes=body_bytes,
            queues=list(queues),
            tags=list(tags),
            keyPrefix=key_prefix,
            delayLevel=delay_level,
        )
        return [msgspec.convert(line, Sent) for line in lines]

    def start_producing(self, topic: str, *, body_bytes: int, queues: Sequence[int]) -> BackgroundProducer:
        """Start to send messages like those of ``produce``, without end."""
        options = {
            "nameServer": self.name_server,
            "topic": topic,
            "count": _ENDLESS,
            "bodyBytes": body_bytes,
            "queues": list(queues),
            "tags": [],
            "keyPrefix": "",
        }
        home = self._client_home
        command = self._installation.command(
            MAIN_CLASS, "produce", encode_options(options), home=home, heap="256m"
        )
        process = ForeignProcess("background-producer", command, directory=home, env=environment(home))
        return BackgroundProducer(self._running.enter_context(process))

    def consume_all(self, *topics: str, is_committed: bool = False) -> list[Received]:
        """Pull every message of every queue of these topics, queue by queue in offset order.

        The offsets are kept by the broker for the group ``CONSUMER_GROUP`` if ``is_committed``.
        """
        for topic in topics:
            self._wait_for_route(topic)
        lines = self.client("consume-all", topics=list(topics), isCommitted=is_committed)
        return [msgspec.convert(line, Received) for line in lines]

    def _wait_for_route(self, *topics: str) -> None:
        """Wait until the name server knows one of them: a broker tells it a little later than it serves."""
        deadline_s = time.monotonic() + _ROUTE_TIMEOUT_S
        with Wire(self.name_server) as wire:
            for topic in itertools.cycle(topics):
                request = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic))
                if wire.ask(request).code == ResponseCode.SUCCESS:
                    return
                if time.monotonic() > deadline_s:
                    raise ProcessFailed(f"{self.name_server} knows no route of {topics}")
                time.sleep(_ROUTE_POLL_S)

    def query_key(self, questions: Sequence[KeyQuestion]) -> list[list[int]]:
        """Look keys up; for each question the log offsets of the messages that were found."""
        return [line["logOffsets"] for line in self.client("query-key", questions=list(questions))]

    def query_id(self, topic: str, ids: Sequence[str]) -> list[Received]:
        """Look messages up by their offset ids."""
        questions = [{"topic": topic, "id": message_id} for message_id in ids]
        return [msgspec.convert(line, Received) for line in self.client("query-id", questions=questions)]

    def search_time(self, questions: Sequence[TimeQuestion]) -> list[list[int]]:
        """Look times up; for each question the queue offsets, one a time."""
        return [line["queueOffsets"] for line in self.client("search-time", questions=list(questions))]

    def client(self, command: str, **options: object) -> list[dict[str, Any]]:
        """Run one command of our Java programs against this name server and return what it answered."""
        return ask(
            self._installation, command, home=self._client_home, nameServer=self.name_server, **options
        )

    def use_access_key(self, access_key: str, secret_key: str) -> None:
        """Have ``mqadmin`` sign its requests from now on."""
        file = self._client_home / "conf" / "tools.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"accessKey: {access_key}\nsecretKey: {secret_key}\n")

    def mqadmin(self, *arguments: str) -> str:
        """Run RocketMQ's own operator command and return what it printed."""
        main_class = "org.apache.rocketmq.tools.command.MQAdminStartup"
        return self._installation.run(main_class, *arguments, "-n", self.name_server, home=self._client_home)

    def mqadmin_each(self, *commands: Sequence[str]) -> list[str]:
        """Run RocketMQ's own operator command with each of these, in one process; what each printed."""
        return mqadmin_each(self.name_server, *commands, home=self._client_home)

    def _start_name_server(self) -> int:
        port = free_port()
        settings = {"listenPort": port, "bindAddress": self.host, **self._name_server_properties}
        home = self._directory / "name-server"
        self._name_server_process = self.start_program(
            "name-server", "org.apache.rocketmq.namesrv.NamesrvStartup", home, settings, ready="boot success"
        )
        return port

    def _start_broker(
        self,
        home: Path,
        store_dir: Path,
        name: str,
        properties: Mapping[str, object],
        *,
        within: Sequence[str],
    ) -> Broker:
        settings = self._broker_settings(store_dir, name, {"haListenPort": free_port(), **properties})
        main_class = "tanist.partner.BrokerMain"
        process = self.start_program(
            name, main_class, home, settings, ready="broker registered", within=within
        )
        port, ha_port = int(settings["listenPort"]), int(settings["haListenPort"])
        return Broker(process, name, port, ha_port, store_dir, settings["brokerIP1"])

    def _start_old_broker(
        self, home: Path, store_dir: Path, name: str, properties: Mapping[str, object]
    ) -> Broker:
        settings = self._broker_settings(store_dir, name, properties)
        logging = home / "conf" / "logback_broker.xml"
        logging.parent.mkdir(parents=True, exist_ok=True)
        logging.write_bytes(LOGGING.read_bytes())
        process = self.start_program(
            name,
            "org.apache.rocketmq.broker.BrokerStartup",
            home,
            settings,
            ready="boot success",
            installation=install_old_broker(),
            flags=_OLD_BROKER_FLAGS,
        )
        port = int(settings["listenPort"])
        return Broker(process, name, port, port + _HA_PORT_DISTANCE, store_dir)

    def _broker_settings(
        self, store_dir: Path, name: str, properties: Mapping[str, object]
    ) -> dict[str, Any]:
        return {
            "brokerClusterName": "tanist-tests",
            "brokerName": name,
            "brokerId": 0,
            "namesrvAddr": self.name_server,
            "brokerIP1": HOST,
            "brokerIP2": HOST,
            "bindAddress": HOST,
            "listenPort": free_broker_port(),
            "storePathRootDir": store_dir,
            "storePathCommitLog": store_dir / "commitlog",
            "autoCreateTopicEnable": "true",
            **_SMALL_STORE,
            **properties,
        }

    def start_program(
        self,
        name: str,
        main_class: str,
        home: Path,
        settings: Mapping[str, object],
        *,
        ready: str,
        installation: Installation | None = None,
        flags: Sequence[str] = (),
        heap: str = "384m",
        within: Sequence[str] = (),
    ) -> ForeignProcess:
        """Start a server of RocketMQ's with these settings, and wait until it has printed ``ready``."""
        home.mkdir(parents=True, exist_ok=True)
        config = home / f"{name}.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = (installation or self._installation).command(
            main_class, "-c", str(config), home=home, heap=heap, flags=(*self._flags, *flags)
        )
        process = ForeignProcess(name, [*within, *command], directory=home, env=environment(home))
        self._running.enter_context(process)
        process.wait_for_output(ready, timeout_s=_START_TIMEOUT_S)
        return process


def mqadmin_each(
    name_server: str | None, *commands: Sequence[str], home: Path, line: str = CLIENT_LINES[0]
) -> list[str]:
    """Run the operator command of one line with each of these, in one process; what each printed.

    Help is asked of no name server.
    """
    # The older line does not start without a file that says what it logs.
    logging = home / "conf" / "logback_tools.xml"
    logging.parent.mkdir(parents=True, exist_ok=True)
    logging.write_text("<configuration/>")
    place = [] if name_server is None else ["-n", name_server]
    runs = [[*command, *place] for command in commands]
    encoded = msgspec.json.encode(runs).decode()
    printed = install_client(line).run("tanist.client.OperatorMain", encoded, home=home)
    return printed.split("\f")[:-1]


def body_of(number: int, body_bytes: int) -> bytes:
    """Return the body that ``produce`` gives to message ``number``."""
    start = f"{number}:".encode()
    return start.ljust(body_bytes, bytes([ord("a") + number % 26]))


def retried(start: Callable[[], _T]) -> _T:
    """Start something on chosen ports, with other ones if somebody took them meanwhile."""
    for _ in range(_START_ATTEMPTS - 1):
        try:
            return start()
        except ProcessFailed as failure:
            if "Address already in use" not in str(failure):
                raise
    return start()


def free_port() -> int:
    """Find a port for a server that takes one alone."""
    return _free_port(0)


def free_broker_port() -> int:
    """Find a port for a broker, which takes two more: a fast one below, and one for slaves above."""
    return _free_port(-_FAST_PORT_DISTANCE, 0, _HA_PORT_DISTANCE)


def _free_port(*distances: int) -> int:
    """A port that is free, with those at these distances.

    It is none of those that the system gives to callers: while a server is down its peers call it again and
    again, and one of them would be given the very port on which it is to start again.
    """
    while True:
        port = random.SystemRandom().randrange(*_SERVER_PORTS)
        with contextlib.suppress(OSError), contextlib.ExitStack() as probes:
            for distance in distances:
                probes.enter_context(socket.socket()).bind((HOST, port + distance))
            return port
