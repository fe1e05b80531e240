"""Stock Java clients of both lines over TLS: they check the servers, and show who they are where asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rocketmq.jars import QUICK_START
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import bodies, numbered
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.tls import certificate, key

pytestmark = pytest.mark.partner("java", "maven")

SERVER = {
    "tlsServerCertPath": certificate("server"),
    "tlsServerKeyPath": key("server"),
    # What the broker needs as a client of the name server.
    "tlsEnable": "true",
    "tlsClientAuthServer": "true",
    "tlsClientTrustCertPath": certificate("ca"),
    "tlsClientCertPath": certificate("client"),
    "tlsClientKeyPath": key("client"),
}
TOLD_S = 10.0
PERMISSIVE = {**SERVER, "tlsMode": "permissive"}
ENFORCING = {**SERVER, "tlsMode": "enforcing"}
CERTIFIED = {
    **ENFORCING,
    "tlsServerNeedClientAuth": "require",
    "tlsServerTrustCertPath": certificate("ca"),
}

TRUSTING = (
    "-Dtls.enable=true",
    "-Dtls.test.mode.enable=false",
    "-Dtls.client.authServer=true",
    f"-Dtls.client.trustCertPath={certificate('ca')}",
)
SHOWING = (f"-Dtls.client.certPath={certificate('client')}", f"-Dtls.client.keyPath={key('client')}")


@pytest.fixture(scope="module")
def trusting_clients(
    clients: StockClients, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StockClients]:
    """Clients that speak TLS and check who the server is."""
    home = tmp_path_factory.mktemp("trusting")
    with StockClients(clients.line, home, flags=(*QUICK_START, *TRUSTING)) as started:
        yield started


@pytest.fixture(scope="module")
def certified_clients(
    clients: StockClients, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StockClients]:
    """Clients that also show who they are."""
    home = tmp_path_factory.mktemp("certified")
    with StockClients(clients.line, home, flags=(*QUICK_START, *TRUSTING, *SHOWING)) as started:
        yield started


def check_that_messages_pass(clients: StockClients, address: str, topic: str) -> None:
    """Send, push and poll, a body of several TLS records included."""
    large = numbered(1)[0].body.ljust(300_000, b".")
    with clients.producer(address) as producer:
        producer.send(topic, numbered(20))
        producer.send(topic, numbered(10, start=20), mode="async")
        producer.send(topic, [Outgoing(large)])
        expected = bodies(numbered(30)) | {large}
        with (
            clients.push_consumer(address, f"{topic}-pushed", topic) as pushed,
            clients.lite_consumer(address, f"{topic}-lite", topic) as lite,
        ):
            assert bodies(pushed.received(31)) == expected
            assert bodies(lite.poll(31)) == expected


def test_a_permissive_broker_and_name_server_take_clients_with_and_without_tls(
    clients: StockClients, trusting_clients: StockClients, tmp_path: Path
) -> None:
    with (
        NameServerProcess(tmp_path / "ns", **PERMISSIVE) as names,
        BrokerProcess(tmp_path / "broker", names.address, **PERMISSIVE),
    ):
        check_that_messages_pass(clients, names.address, "Plain")
        check_that_messages_pass(trusting_clients, names.address, "Secure")


@pytest.mark.parametrize("enforcing", ["broker", "name server"])
def test_where_tls_is_enforced_a_plain_client_is_refused(
    clients: StockClients, trusting_clients: StockClients, tmp_path: Path, enforcing: str
) -> None:
    is_broker = enforcing == "broker"
    with (
        NameServerProcess(tmp_path / "ns", **(PERMISSIVE if is_broker else ENFORCING)) as names,
        BrokerProcess(
            tmp_path / "broker", names.address, **(ENFORCING if is_broker else PERMISSIVE)
        ) as broker,
    ):
        with clients.producer(names.address) as plain, pytest.raises(StepFailed):
            plain.send("T", numbered(1))
        strict = broker if is_broker else names
        strict.process.wait_for_output("cause=BAD_TLS reason=plain text", timeout_s=TOLD_S)
        check_that_messages_pass(trusting_clients, names.address, "T")


def test_where_certificates_are_required_a_client_without_one_is_refused(
    trusting_clients: StockClients, certified_clients: StockClients, tmp_path: Path
) -> None:
    with (
        NameServerProcess(tmp_path / "ns", **CERTIFIED) as names,
        BrokerProcess(tmp_path / "broker", names.address, **CERTIFIED) as broker,
    ):
        with trusting_clients.producer(names.address) as nobody, pytest.raises(StepFailed):
            nobody.send("T", numbered(1))
        names.process.wait_for_output("cause=BAD_TLS", timeout_s=TOLD_S)
        assert "cause=BAD_TLS" not in broker.process.output()
        check_that_messages_pass(certified_clients, names.address, "T")


def test_a_broker_that_requires_certificates_refuses_a_client_without_one(
    trusting_clients: StockClients, certified_clients: StockClients, tmp_path: Path
) -> None:
    with (
        NameServerProcess(tmp_path / "ns", **ENFORCING) as names,
        BrokerProcess(tmp_path / "broker", names.address, **CERTIFIED) as broker,
    ):
        with trusting_clients.producer(names.address) as nobody, pytest.raises(StepFailed):
            nobody.send("T", numbered(1))
        broker.process.wait_for_output("cause=BAD_TLS", timeout_s=TOLD_S)
        check_that_messages_pass(certified_clients, names.address, "T")


def test_a_client_does_not_talk_to_a_server_whose_certificate_it_does_not_trust(
    clients: StockClients, tmp_path: Path
) -> None:
    elsewhere = f"-Dtls.client.trustCertPath={certificate('stranger')}"
    with (
        StockClients(
            clients.line, tmp_path / "home", flags=(*QUICK_START, *TRUSTING, elsewhere)
        ) as distrustful,
        NameServerProcess(tmp_path / "ns", **PERMISSIVE) as names,
        distrustful.producer(names.address) as producer,
    ):
        with pytest.raises(StepFailed):
            producer.send("T", numbered(1))
        names.process.wait_for_output("cause=BAD_TLS", timeout_s=TOLD_S)
