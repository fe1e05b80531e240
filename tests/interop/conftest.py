"""The stock clients of both lines, and the brokers that tests share. Each is started once a process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import partners
from tests.support.rocketmq.cluster import Broker, RocketMQ
from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import Place, Site
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_SOON_ASKED = {
    "transactionTimeOut": 1_000,
    "transactionCheckInterval": 1_000,
    "transactionOpBatchInterval": 200,
}


@pytest.fixture(scope="session")
def started_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], StockClients]]:
    """The clients of a line, which then run until the end: a later test may want them again."""
    started: dict[str, StockClients] = {}
    with ExitStack() as running:

        def start(line: str) -> StockClients:
            if line not in started:
                started[line] = running.enter_context(StockClients(line, tmp_path_factory.mktemp("clients")))
            return started[line]

        yield start


@pytest.fixture(scope="session", params=CLIENT_LINES)
def clients(request: pytest.FixtureRequest, started_clients: Callable[[str], StockClients]) -> StockClients:
    try:
        return started_clients(request.param)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)


@pytest.fixture(scope="session")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A name server, and one broker that all tests share which do not stop it."""
    home = tmp_path_factory.mktemp("tanist")
    with NameServerProcess(home / "ns") as names, BrokerProcess(home / "broker", names.address) as broker:
        yield names.address
        assert "Traceback" not in broker.process.output()


@pytest.fixture(scope="session")
def rocketmq_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RocketMQ, Broker]]:
    """A broker of Apache RocketMQ that all tests share which do not stop it; what it waits for comes soon.

    It has no timers: with them it takes a third of a core even when it has nothing to do.
    """
    try:
        rocketmq = RocketMQ(tmp_path_factory.mktemp("rocketmq"))
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        broker = rocketmq.start_broker(
            properties={
                "messageDelayLevel": "1s 2s 3s 1s 1s 1s",
                "enablePropertyFilter": "true",
                # An operator's reset is then what the clients are told to do.
                "useServerSideResetOffset": "false",
                # On a busy machine it would drop sends that have waited for 200 ms, one-way ones in silence.
                "waitTimeMillsInSendQueue": 60_000,
                **_SOON_ASKED,
            }
        )
        yield rocketmq, broker


@pytest.fixture(scope="session")
def shared_rocketmq(rocketmq_broker: tuple[RocketMQ, Broker]) -> RocketMQ:
    return rocketmq_broker[0]


@pytest.fixture(scope="session", params=["tanist", "rocketmq"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A broker of either kind, which asks soon what became of a transaction."""
    if request.param == "rocketmq":
        rocketmq, broker = request.getfixturevalue("rocketmq_broker")
        yield Place(rocketmq.name_server, broker.address, broker.name)
        return
    home = tmp_path_factory.mktemp("place")
    with (
        NameServerProcess(home / "ns") as names,
        BrokerProcess(home / "broker", names.address, name="broker-a", **_SOON_ASKED) as broker,
    ):
        yield Place(names.address, broker.address, broker.name)
        assert "Traceback" not in broker.process.output()


@pytest.fixture
def site(clients: StockClients, name_server: str, request: pytest.FixtureRequest) -> Site:
    line = clients.line.replace(".", "_")
    return Site(clients, name_server, f"{line}-{request.node.originalname[-60:]}")


@pytest.fixture
def own_names(tmp_path: Path) -> Iterator[NameServerProcess]:
    """A name server for a test that has a broker of its own."""
    with NameServerProcess(tmp_path / "ns") as names:
        yield names
