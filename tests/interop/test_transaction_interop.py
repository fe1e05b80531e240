"""Transactions of stock producers of both lines, as Tanist carries them out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.model.property_names import CHECK_IMMUNITY_TIME_IN_SECONDS, TRANSACTION_CHECK_TIMES
from tanist.model.topics import CHECK_MAX_TIME_TOPIC
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import BROKER, Site, bodies, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

CHECK_MAX = 8


def quick_broker(directory: Path, name_server: str, *, note_ms: int = 200) -> BrokerProcess:
    """A broker that asks so soon what became of a transaction that a test need not wait for long."""
    return BrokerProcess(
        directory,
        name_server,
        transactionTimeOut=1_000,
        transactionCheckInterval=1_000,
        transactionCheckMax=CHECK_MAX,
        transactionOpBatchInterval=note_ms,
    )


@pytest.fixture(scope="module")
def quick_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("transactions")
    with (
        NameServerProcess(home / "ns") as names,
        quick_broker(home / "broker", names.address) as broker,
    ):
        yield names.address
        assert "Traceback" not in broker.process.output()


@pytest.fixture
def place(clients: StockClients, quick_names: str, request: pytest.FixtureRequest) -> Site:
    line = clients.line.replace(".", "_")
    return Site(clients, quick_names, f"{line}-{request.node.originalname[-60:]}")


def test_committed_messages_are_delivered_and_rolled_back_ones_are_not(site: Site) -> None:
    topic = site.topic("orders")
    with site.clients.transaction_producer(site.name_server, site.topic("producers")) as producer:
        committed = producer.send(topic, numbered(8, tags=["A", None]), state="COMMIT")
        producer.send(topic, [Outgoing(b"rolled back")], state="ROLLBACK")
        producer.send(topic, [Outgoing(b"nobody knows")], state="UNKNOWN")
        producer.send(topic, [Outgoing(b"last", keys="k", flag=7)], state="COMMIT")
        with site.clients.push_consumer(site.name_server, site.topic("group"), topic) as consumer:
            received = consumer.received(9)
        assert bodies(received) == bodies(numbered(8)) | {b"last"}
        assert len(received) == 9
        by_body = {delivery.body: delivery for delivery in received}
        assert (by_body[b"last"].keys, by_body[b"last"].flag) == ("k", 7)
        assert {(sent.status, sent.state) for sent in committed} == {("SEND_OK", "COMMIT_MESSAGE")}
        assert all(sent.transaction_id == sent.message_id for sent in committed)
        assert {sent.message_id for sent in committed} <= {delivery.message_id for delivery in received}
        assert {delivery.queue_id for delivery in received} >= {sent.queue_id for sent in committed}
        assert bodies(producer.questions(0)) <= {b"nobody knows"}


@pytest.mark.behaviour("S1-3")
def test_a_producer_that_did_not_know_is_asked_and_its_answer_counts(place: Site) -> None:
    topic = place.topic("orders")
    with place.clients.transaction_producer(place.name_server, place.topic("producers")) as producer:
        producer.send(topic, [Outgoing(b"first", tags="A", keys="k")], state="UNKNOWN")
        question = producer.questions(1)[0]
        assert (question.topic, question.body, question.tags, question.keys) == (topic, b"first", "A", "k")
        assert int(question.properties[TRANSACTION_CHECK_TIMES]) >= 1
        producer.answer("COMMIT")
        with place.clients.push_consumer(place.name_server, place.topic("group"), topic) as consumer:
            assert bodies(consumer.received(1)) == {b"first"}
            producer.answer("ROLLBACK")
            before = len(producer.questions(0))
            producer.send(topic, [Outgoing(b"second")], state="UNKNOWN")
            producer.questions(before + 1)
            producer.answer("COMMIT")
            producer.send(topic, [Outgoing(b"third")], state="COMMIT")
            # Were the second one not rolled back, it would be asked for again and committed in this time.
            assert bodies(consumer.received(3, timeout_ms=4_000)) == {b"first", b"third"}


def test_another_producer_of_the_group_is_asked_when_one_was_killed(
    place: Site, clients: StockClients, tmp_path: Path
) -> None:
    topic, group = place.topic("orders"), place.topic("producers")
    with StockClients(clients.line, tmp_path / "doomed") as doomed:
        first = doomed.transaction_producer(place.name_server, group)
        first.send(topic, [Outgoing(b"orphan")], state="UNKNOWN")
        # Leaving the block kills the process.
    with (
        clients.transaction_producer(place.name_server, group) as second,
        clients.push_consumer(place.name_server, place.topic("group"), topic) as consumer,
    ):
        second.answer("COMMIT")
        # It knows no broker before it has something to do with one, and none can ask it before.
        second.send(topic, [Outgoing(b"own")], state="COMMIT")
        assert bodies(consumer.received(2)) == {b"orphan", b"own"}
        assert bodies(second.questions(1)) == {b"orphan"}


@pytest.mark.takes(11)
def test_after_the_last_question_a_transaction_is_given_up(place: Site) -> None:
    topic = place.topic("orders")
    with (
        place.clients.transaction_producer(place.name_server, place.topic("producers")) as producer,
        place.clients.pull_consumer(place.name_server, place.topic("group")) as consumer,
    ):
        producer.send(topic, [Outgoing(b"hopeless " + topic.encode())], state="UNKNOWN")

        def given_up() -> set[bytes]:
            try:
                return bodies(consumer.pull(CHECK_MAX_TIME_TOPIC, BROKER, 0, 0).messages)
            except StepFailed:
                # The topic is not there before the first one is given up.
                return set()

        wait_until(lambda: b"hopeless " + topic.encode() in given_up())
        asked = producer.questions(CHECK_MAX + 1, timeout_ms=2_000)
        checks = [int(question.properties[TRANSACTION_CHECK_TIMES]) for question in asked]
        # The first may have come before the broker knew whom to ask.
        assert checks == list(range(checks[0], CHECK_MAX + 1))
        assert checks[0] < CHECK_MAX


def test_a_producer_that_sets_a_time_is_not_asked_before(place: Site) -> None:
    topic = place.topic("orders")
    with place.clients.transaction_producer(place.name_server, place.topic("producers")) as producer:
        producer.answer("ROLLBACK")
        patient = Outgoing(b"patient", properties={CHECK_IMMUNITY_TIME_IN_SECONDS: "4"})
        producer.send(topic, [patient, Outgoing(b"quick")], state="UNKNOWN")
        asked = {question.body: question for question in producer.questions(2)}
        assert asked.keys() == {b"patient", b"quick"}
        assert asked[b"patient"].received_ms - asked[b"patient"].born_ms >= 4_000


def test_open_transactions_survive_a_kill_of_the_broker(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    topic = "Orders"
    with (
        quick_broker(tmp_path / "broker", own_names.address, note_ms=60_000) as broker,
        clients.transaction_producer(own_names.address, "producers") as producer,
    ):
        producer.send(topic, numbered(20), state="COMMIT")
        producer.send(topic, [Outgoing(b"open")], state="UNKNOWN")
        broker.kill()
        broker.restart()
        producer.answer("COMMIT")
        with clients.push_consumer(own_names.address, "group", topic) as consumer:
            assert bodies(consumer.received(21)) == bodies(numbered(20)) | {b"open"}
            # The kill took the notes of all commits: they are found, nobody is asked, none comes twice.
            assert bodies(producer.questions(2, timeout_ms=3_000)) <= {b"open"}
            assert len(consumer.received(22, timeout_ms=1_000)) == 21
        assert "Traceback" not in broker.process.output()
