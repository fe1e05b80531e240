"""The stock clients of both lines, and the Tanist broker that the tests share. Each is started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import partners
from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import Site
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess


@pytest.fixture(scope="session", params=CLIENT_LINES)
def clients(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StockClients]:
    try:
        started = StockClients(request.param, tmp_path_factory.mktemp("clients"))
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with started:
        yield started


@pytest.fixture(scope="session")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A name server, and one broker that all tests share which do not stop it."""
    home = tmp_path_factory.mktemp("tanist")
    with NameServerProcess(home / "ns") as names, BrokerProcess(home / "broker", names.address) as broker:
        yield names.address
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
