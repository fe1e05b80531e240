"""What the format ``rocketmq`` reads from a broker, without Spark around it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.client import Credentials, NoPermission, TlsSettings
from tanist.errors import MQError
from tanist.model.route import MessageQueue
from tanist.spark.archive.from_cluster import ClusterSource
from tanist.spark.archive.sources import NewBatch
from tanist.spark.audit.live import audit_live
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.deleted import TopicDeleted, check_not_deleted
from tanist.spark.rocketmq.options import for_batch, for_stream, read_options
from tanist.spark.rocketmq.streaming import from_table
from tanist.sync import Message, Producer
from tanist.testing import EmbeddedBroker
from tests.support.acl import KEY, PLAIN_ACL, SECRET
from tests.support.spark_pulls import pull_batches, pull_rows
from tests.support.tls import certificate, key
from tests.support.topics import delete_topic

pytestmark = pytest.mark.partner("arrow")


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """A broker with 100 messages in two topics, every other one tagged."""
    with EmbeddedBroker(topics={"Orders": 4, "Bills": 1}) as broker:
        with Producer(group="test", namesrv=broker.namesrv) as producer:
            for number in range(100):
                topic, tag = ("Orders", "paid") if number % 2 else ("Bills", "sent")
                body = f"message {number} ".encode() * (1 + 1000 * (number == 7))
                producer.send(
                    Message(topic, body, tags=tag, keys=[f"k{number}"], properties={"n": str(number)})
                )
        yield broker


def numbers(rows: list[dict[str, object]]) -> list[int]:
    return sorted(int(bytes(row["body"]).split()[1]) for row in rows)  # pyright: ignore[reportArgumentType]


def test_all_messages_of_the_topics_come_once_with_their_columns(broker: EmbeddedBroker) -> None:
    rows = pull_rows(broker.namesrv, subscribe="Orders,Bills")

    assert numbers(rows) == list(range(100))
    row = next(row for row in rows if row["keys"] == "k8")
    assert (row["topic"], row["brokerName"], row["tags"]) == ("Bills", broker.broker_name, "sent")
    assert dict(row["properties"])["n"] == "8"
    assert (row["queueId"], row["queueOffset"]) == (0, 4)


def test_a_pattern_finds_topics_and_queues_can_be_assigned(broker: EmbeddedBroker) -> None:
    assert numbers(pull_rows(broker.namesrv, subscribePattern="B.*s")) == list(range(0, 100, 2))
    assigned = {"Bills": {broker.broker_name: [0]}}
    assert len(pull_rows(broker.namesrv, assign=json.dumps(assigned))) == 50


def test_offsets_bound_the_read_and_pieces_do_not_change_it(broker: EmbeddedBroker) -> None:
    def at(offset: int) -> str:
        return json.dumps({"Bills": {broker.broker_name: {"0": offset}}})

    rows = pull_rows(
        broker.namesrv, subscribe="Bills", startingOffsets=at(10), endingOffsets=at(20), minPartitions="3"
    )
    assert [row["queueOffset"] for row in rows] == list(range(10, 20))


def test_times_bound_the_read(broker: EmbeddedBroker) -> None:
    rows = pull_rows(broker.namesrv, subscribe="Bills")
    middle = round(rows[25]["storeTimestamp"].timestamp() * 1000)

    later = pull_rows(broker.namesrv, subscribe="Bills", startingTimestamp=str(middle))
    earlier = pull_rows(broker.namesrv, subscribe="Bills", endingTimestamp=str(middle))

    assert len(later) + len(earlier) == 50
    assert all(round(row["storeTimestamp"].timestamp() * 1000) >= middle for row in later)
    assert all(round(row["storeTimestamp"].timestamp() * 1000) < middle for row in earlier)


def test_a_filter_is_applied_by_the_broker(broker: EmbeddedBroker) -> None:
    both = {"subscribe": "Orders,Bills"}
    assert numbers(pull_rows(broker.namesrv, **both, tags="paid || nothing")) == list(range(1, 100, 2))
    assert pull_rows(broker.namesrv, **both, tags="nothing") == []


def test_a_long_queue_comes_in_its_order_each_message_once() -> None:
    """Pulls overlap: through a filter they go beyond their stretch, and of large messages they end early."""
    count = 6_000
    with EmbeddedBroker(topics={"Long": 1, "Large": 1}) as broker:
        with Producer(group="test", namesrv=broker.namesrv) as producer:
            for first in range(0, count, 1_000):
                batch = range(first, first + 1_000)
                producer.send_batch(
                    [
                        Message("Long", b"message %d" % at, tags="rare" if at % 50 == 7 else "often")
                        for at in batch
                    ]
                )
            for number in range(80):
                producer.send(Message("Large", b"message %d %b" % (number, b"." * (number % 5 * 400_000))))

        assert [row["queueOffset"] for row in pull_rows(broker.namesrv, subscribe="Long")] == list(
            range(count)
        )
        rare = pull_rows(broker.namesrv, subscribe="Long", tags="rare")
        assert [row["queueOffset"] for row in rare] == list(range(7, count, 50))
        assert [row["queueOffset"] for row in pull_rows(broker.namesrv, subscribe="Large")] == list(range(80))


def test_what_is_not_there_is_one_clear_error(broker: EmbeddedBroker) -> None:
    with pytest.raises(SparkError, match="topic Nothing does not exist"):
        pull_rows(broker.namesrv, subscribe="Nothing")
    with pytest.raises(SparkError, match=r"subscribePattern='X\.\*' matches no topic; there is .*Orders"):
        pull_rows(broker.namesrv, subscribePattern="X.*")
    with pytest.raises(SparkError, match=r"no queue Bills/.*/9; did you mean Bills"):
        pull_rows(broker.namesrv, assign=json.dumps({"Bills": {broker.broker_name: [9]}}))
    with pytest.raises(SparkError, match="has no replica for readFrom=slave"):
        pull_rows(broker.namesrv, subscribe="Bills", readFrom="slave")
    with pytest.raises(MQError, match="no name server answers"):
        pull_rows("127.0.0.1:1", subscribe="Bills")


def test_a_group_begins_where_it_has_read_to_if_that_is_committed(broker: EmbeddedBroker) -> None:
    given = {"subscribe": "Bills", "group": "billing", "startingOffsets": "group"}

    first = next(pull_batches(broker.namesrv, **given, commitOffsets="true"))
    again = pull_rows(broker.namesrv, **given, commitOffsets="true")

    # Whoever does not take all of it has read nothing.
    assert (len(first), len(again)) == (50, 50)
    assert pull_rows(broker.namesrv, **given) == []
    # A frame that was planned earlier and is read again does not take the group back.
    ends = json.dumps({"Bills": {broker.broker_name: {"0": 3}}})
    earlier = given | {"startingOffsets": "earliest", "endingOffsets": ends}
    assert len(pull_rows(broker.namesrv, **earlier, commitOffsets="true")) == 3
    assert pull_rows(broker.namesrv, **given) == []


def test_a_broker_that_checks_signatures_is_read_with_the_keys(tmp_path: Path) -> None:
    rules = tmp_path / "plain_acl.yml"
    rules.write_text(PLAIN_ACL)
    settings = {"aclEnable": "true", "aclConfigPath": str(rules)}
    keys = {"accessKey": KEY, "secretKey": SECRET}
    with EmbeddedBroker(topics={"Both": 1}, settings=settings) as broker:
        with Producer(
            group="orders", namesrv=broker.namesrv, credentials=Credentials(KEY, SECRET)
        ) as producer:
            producer.send(Message("Both", b"message 0"))

        assert numbers(pull_rows(broker.namesrv, subscribe="Both", **keys)) == [0]
        with pytest.raises(NoPermission):
            pull_rows(broker.namesrv, subscribe="Both")


def test_servers_that_speak_only_tls_are_read_over_it() -> None:
    trusted = {"tlsClientTrustCertPath": certificate("ca"), "tlsEnable": "true"}
    settings = {
        **trusted,
        "tlsClientAuthServer": "true",
        "tlsMode": "enforcing",
        "tlsServerCertPath": certificate("server"),
        "tlsServerKeyPath": key("server"),
    }
    tls = TlsSettings(
        tls_enable=True, tls_client_auth_server=True, tls_client_trust_cert_path=certificate("ca")
    )
    with EmbeddedBroker(topics={"Orders": 1}, settings=settings) as broker:
        with Producer(group="orders", namesrv=broker.namesrv, tls=tls, timeout_s=20) as producer:
            producer.send(Message("Orders", b"message 0"))

        assert numbers(pull_rows(broker.namesrv, subscribe="Orders", **trusted)) == [0]
        with pytest.raises(MQError, match="no name server answers"):
            pull_rows(broker.namesrv, subscribe="Orders")


def test_a_store_is_compared_with_the_broker_that_runs_on_another(tmp_path: Path) -> None:
    store, backup = tmp_path / "store", tmp_path / "backup"
    topics = {"Orders": 2}
    with (
        EmbeddedBroker(topics=topics, store=store) as broker,
        Producer(group="test", namesrv=broker.namesrv) as producer,
    ):
        for number in range(10):
            producer.send(Message("Orders", b"message %d" % number))
    shutil.copytree(store, backup)
    with EmbeddedBroker(topics=topics, store=store) as broker:
        with Producer(group="test", namesrv=broker.namesrv) as producer:
            producer.send(Message("Orders", b"message 10"))
        options = for_batch(read_options({"namesrv": broker.namesrv, "subscribePattern": "Ord.*"}))

        equal = audit_live(str(backup), options)
        log = next((backup / "commitlog").iterdir())
        with log.open("r+b") as file:
            file.seek(95)
            byte = file.read(1)[0]
            file.seek(95)
            file.write(bytes([byte ^ 1]))
        different = audit_live(str(backup), options, broker_name=broker.broker_name)

        assert (equal.is_equal, equal.compared_messages, equal.newer_messages) == (True, 10, 1)
        assert different.first_difference == 95
        assert different.record is not None
        assert different.record.startswith("Orders/")
        with pytest.raises(SparkError, match="there is no broker nobody"):
            audit_live(str(backup), options, broker_name="nobody")


def test_a_stream_and_an_archive_of_a_topic_that_was_deleted_end_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tanist.spark.rocketmq.deleted.WAITS_S", (0.0,))
    with EmbeddedBroker(topics={"Orders": 1, "Bills": 1}) as broker:
        given = {"namesrv": broker.namesrv, "startingOffsets": "earliest"}
        queues = {topic: {broker.broker_name: {"0": 0}} for topic in ("Orders", "Bills")}
        archived = ClusterSource(namesrv=broker.namesrv, topics=["Orders", "Bills"])
        matching = for_stream(read_options(given | {"subscribePattern": "Orders|Bills"}))
        batch = NewBatch(0, tmp_path, 1)
        assert archived.next_batch(queues, batch) is None

        delete_topic(broker.address, broker.namesrv, "Orders")

        with pytest.raises(TopicDeleted, match="topic Orders was deleted"):
            archived.next_batch(queues, batch)
        # Of a pattern another topic is left, and a topic that is not asked for is missed by nobody.
        check_not_deleted(from_table(queues), matching)
        check_not_deleted(from_table(queues), for_stream(read_options(given | {"subscribe": "Bills"})))
        delete_topic(broker.address, broker.namesrv, "Bills")
        with pytest.raises(TopicDeleted, match="topic Bills was deleted"):
            check_not_deleted(from_table(queues), matching)


def test_a_topic_whose_broker_is_away_is_waited_for(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tanist.spark.rocketmq.deleted.WAITS_S", (0.0,))
    away = MessageQueue(topic="Away", broker_name="another", queue_id=0)
    for namesrv in (broker.namesrv, "127.0.0.1:1"):
        check_not_deleted({away}, read_options({"namesrv": namesrv, "subscribe": "Away"}))
