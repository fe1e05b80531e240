"""Stock clients of both lines filter by SQL at Tanist as they do at the broker they were made for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Outgoing
from tests.support.site import BROKER, Site, bodies, is_sent, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

SYSTEM_ERROR = 1
SUBSCRIPTION_PARSE_FAILED = 23

ORDERS = [
    Outgoing(
        b"order-%d" % number,
        tags=("new", "paid")[number % 2],
        properties={
            "region": ("hangzhou", "shanghai", "paris")[number % 3],
            "amount": str(number * 10),
            **({"note": f"50% off_{number}"} if number % 5 == 0 else {}),
        },
    )
    for number in range(40)
]
WANTED: dict[str, Callable[[int], bool]] = {
    "region = 'paris' AND TAGS = 'paid'": lambda n: n % 3 == 2 and n % 2 == 1,
    "region IN ('paris', 'hangzhou') AND amount BETWEEN 100 AND 200": lambda n: n % 3 != 1 and 10 <= n <= 20,
    "region LIKE '%ng%' AND NOT (amount > 50)": lambda n: n % 3 != 2 and n <= 5,
    "note LIKE '50!% off!__' ESCAPE '!'": lambda n: n in (0, 5),
    "note IS NULL AND amount / 2 + 5 > 150": lambda n: n % 5 != 0 and n * 5 + 5 > 150,
    # Unknown is neither true nor false: of orders without a note only the last term can say anything.
    "note CONTAINS 'off' OR NOT (note = 'x') OR amount = 10": lambda n: n % 5 == 0 or n == 1,
}


@pytest.mark.parametrize("sql", WANTED)
def test_a_push_consumer_gets_what_its_expression_lets_through(site: Site, sql: str) -> None:
    topic = site.topic(f"t{list(WANTED).index(sql)}")
    wanted = {b"order-%d" % number for number in range(40) if WANTED[sql](number)}
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, ORDERS[:10])
        with site.clients.push_consumer(site.name_server, topic, topic, sql=sql) as consumer:
            # The first are there when it comes, the others find its pulls waiting.
            producer.send(topic, ORDERS[10:])
            received = consumer.received(len(wanted))
            producer.send(topic, ORDERS)
            received = consumer.received(2 * len(wanted))
    assert bodies(received) == wanted
    assert len(received) == 2 * len(wanted)


def test_a_message_is_found_behind_thousands_that_are_not_wanted(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server, topicQueues=1) as producer:
        for start in range(0, 4000, 500):
            producer.send(topic, numbered(500, start=start), mode="batch")
        producer.send(topic, [Outgoing(b"found", properties={"wanted": "yes"})])
    with site.clients.push_consumer(site.name_server, topic, topic, sql="wanted = 'yes'") as consumer:
        assert bodies(consumer.received(1)) == {b"found"}


def test_a_lite_consumer_gets_what_its_expression_lets_through(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, ORDERS)
    with site.clients.lite_consumer(site.name_server, topic, topic, sql="amount >= 370") as consumer:
        received = consumer.poll(3)
    assert bodies(received) == {b"order-37", b"order-38", b"order-39"}


def test_a_pull_by_hand_brings_its_expression_along(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, ORDERS, mode="queue", brokerName=BROKER, queueId=1)
    with site.clients.pull_consumer(site.name_server, topic, heartbeatMs=200) as consumer:
        # A client filters by SQL only at a broker whose version a heartbeat has told it.
        wait_until(lambda: is_sent(lambda: consumer.pull(topic, BROKER, 1, 0, sql="TRUE")))
        found = consumer.pull(topic, BROKER, 1, 0, sql="region = 'paris' AND amount > 300")
        assert (found.status, bodies(found.messages)) == ("FOUND", {b"order-32", b"order-35", b"order-38"})
        found = consumer.pull(topic, BROKER, 1, 0, sql="region = 'london'")
        assert (found.status, found.next) == ("NO_MATCHED_MSG", 40)
        with pytest.raises(StepFailed) as refused:
            consumer.pull(topic, BROKER, 1, 0, sql="region = ")
        assert refused.value.code == SUBSCRIPTION_PARSE_FAILED
        assert "character 10: expected a property or a value" in str(refused.value)


@pytest.mark.parametrize("sql", ["amount >", "amount > 'x'", "a LIKE b", "(" * 10_000])
def test_a_consumer_with_a_bad_expression_does_not_start(site: Site, sql: str) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, ORDERS[:1])
    for start in (site.clients.push_consumer, site.clients.lite_consumer):
        with pytest.raises(StepFailed) as refused:
            start(site.name_server, topic, topic, sql=sql)
        assert refused.value.code == SUBSCRIPTION_PARSE_FAILED
        assert "expected" in str(refused.value)


def test_a_broker_with_its_filter_off_takes_no_consumer_by_sql(
    site: Site, own_names: NameServerProcess, tmp_path: Path
) -> None:
    topic = site.topic("t")
    with BrokerProcess(tmp_path / "broker", own_names.address, enablePropertyFilter="false"):
        with site.clients.producer(own_names.address) as producer:
            producer.send(topic, ORDERS[:1])
        with pytest.raises(StepFailed) as refused:
            site.clients.push_consumer(own_names.address, topic, topic, sql="amount > 1")
    assert refused.value.code == SYSTEM_ERROR
