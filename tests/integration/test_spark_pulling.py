"""What the format ``rocketmq`` reads from a broker, without Spark around it."""

import json
from collections.abc import Iterator

import pytest

from tanist.errors import MQError
from tanist.spark.errors import SparkError
from tanist.sync import Message, Producer
from tanist.testing import EmbeddedBroker
from tests.support.spark_pulls import pull_rows

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
