"""Stock Java clients of both lines with access keys, right and wrong ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import partners
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import BROKER, bodies, is_sent, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

NO_PERMISSION = 16
SECRET = "a-secret-of-12345678"
APP = {"accessKey": "app-key", "secretKey": SECRET}
OPERATOR = {"accessKey": "operator-key", "secretKey": SECRET}
WRONG_SECRET = {"accessKey": "app-key", "secretKey": "not-the-secret"}
UNKNOWN_KEY = {"accessKey": "nobodys-key", "secretKey": SECRET}

RULES = f"""\
accounts:
  - accessKey: app-key
    secretKey: {SECRET}
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: PUB|SUB
    defaultGroupPerm: SUB
    topicPerms:
      - NotWritten=SUB
      - NotRead=PUB
    groupPerms:
      - NoMember=DENY
  - accessKey: operator-key
    secretKey: {SECRET}
    admin: true
"""


class GuardedBroker(BrokerProcess):
    """A broker with access rules in RocketMQ's place for them."""

    def __init__(self, directory: Path, name_server: str, rules: str = RULES) -> None:
        self._rules = directory / "home" / "conf" / "plain_acl.yml"
        self._rules.parent.mkdir(parents=True)
        self.write(rules)
        super().__init__(directory, name_server, aclEnable="true", rocketmqHome=directory / "home")

    def write(self, rules: str) -> None:
        """Put other rules in place at once, as an operator with care does."""
        new = self._rules.with_suffix(".new")
        new.write_text(rules)
        new.replace(self._rules)

    def refusals(self, text: str) -> list[str]:
        lines = self.process.output().splitlines()
        return [line for line in lines if "request refused" in line and text in line]


@pytest.fixture
def broker(own_names: NameServerProcess, tmp_path: Path) -> Iterator[GuardedBroker]:
    with GuardedBroker(tmp_path / "broker", own_names.address) as guarded:
        yield guarded
        log = guarded.process.output()
        assert "Traceback" not in log
        assert SECRET not in log


def test_a_right_key_opens_every_way_to_send_and_to_consume(
    clients: StockClients, own_names: NameServerProcess, broker: GuardedBroker
) -> None:
    address = own_names.address
    awkward = [
        Outgoing("Größe".encode(), tags="Tag", keys="schlüssel 键", properties={"ключ": "значение 🚀"})
    ]
    with clients.producer(address, **APP) as producer:
        producer.send("T", awkward)
        producer.send("T", numbered(10), mode="async")
        producer.send("T", numbered(10, start=10), mode="batch")
        producer.send_one_way("T", numbered(10, start=20))
        with (
            clients.push_consumer(address, "Pushed", "T", **APP) as pushed,
            clients.push_consumer(address, "Orderly", "T", isOrderly=True, **APP) as orderly,
            clients.lite_consumer(address, "Lite", "T", **APP) as lite,
        ):
            expected = bodies(awkward) | bodies(numbered(30))
            assert bodies(pushed.received(31)) == expected
            assert bodies(orderly.received(31)) == expected
            assert bodies(lite.poll(31)) == expected
    assert broker.refusals("") == []


def test_a_right_key_opens_transactions_requests_and_pulls_by_hand(
    clients: StockClients, own_names: NameServerProcess, broker: GuardedBroker
) -> None:
    address = own_names.address
    with (
        clients.producer(address, **APP) as producer,
        clients.transaction_producer(address, "Transacting", **APP) as transacting,
        clients.pull_consumer(address, "ByHand", **APP) as by_hand,
    ):
        producer.send("T", numbered(1), mode="queue", brokerName=BROKER, queueId=0)
        transacting.send("T", [Outgoing(b"kept")], state="COMMIT")
        transacting.send("T", [Outgoing(b"given up")], state="ROLLBACK")

        def found() -> set[bytes]:
            return {
                body
                for queue_id in range(4)
                for body in bodies(by_hand.pull("T", BROKER, queue_id, 0).messages)
            }

        wait_until(lambda: found() == {b"kept", *bodies(numbered(1))})
        # Not by the one who asks: it tells the broker of itself when it does not know a topic's route.
        transacting.send("Requests", [Outgoing(b"made")], state="COMMIT")
        with clients.replier(address, "Replying", "Requests", is_prompt=True, **APP):
            assert producer.request("Requests", b"signed").body == b"re: signed"
        with (
            clients.pull_consumer(address, "ByHand", **WRONG_SECRET) as stranger,
            pytest.raises(StepFailed) as refused,
        ):
            stranger.pull("T", BROKER, 0, 0)
        assert refused.value.code == NO_PERMISSION
    assert {"wrong signature" in line for line in broker.refusals("")} == {True}


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (WRONG_SECRET, "accessKey=app-key: wrong signature"),
        (UNKNOWN_KEY, "accessKey=nobodys-key: unknown access key"),
        ({}, "accessKey=-: no access key"),
    ],
    ids=["wrong secret", "unknown key", "no key"],
)
def test_a_client_without_a_right_key_is_told_so_and_leaves_nothing(
    clients: StockClients,
    own_names: NameServerProcess,
    broker: GuardedBroker,
    keys: dict[str, str],
    reason: str,
) -> None:
    address = own_names.address
    with clients.producer(address, **APP) as producer:
        producer.send("T", numbered(4))
    with clients.producer(address, **keys) as stranger:
        with pytest.raises(StepFailed) as refused:
            stranger.send("T", [Outgoing(b"intruder")], mode="queue", brokerName=BROKER, queueId=0)
        assert (refused.value.error, refused.value.code) == ("MQBrokerException", NO_PERMISSION)
        assert reason in refused.value.message
        # This way the client tries three times before it gives up.
        with pytest.raises(StepFailed) as given_up:
            stranger.send("T", [Outgoing(b"intruder")])
        assert given_up.value.code == NO_PERMISSION
        stranger.send_one_way("T", [Outgoing(b"intruder")])
        with clients.push_consumer(address, "Strangers", "T", **keys) as consumer:
            consumer.rebalance()
            with clients.push_consumer(address, "G", "T", **APP) as right:
                assert bodies(right.received(4)) == bodies(numbered(4))
            assert consumer.received(0) == []
    # One line for each reason, however often the client came back.
    assert len(broker.refusals(reason.partition(": ")[2])) == 1


def test_a_topic_that_may_only_be_read_takes_no_message(
    clients: StockClients, own_names: NameServerProcess, broker: GuardedBroker
) -> None:
    address = own_names.address
    with clients.producer(address, **OPERATOR) as operator, clients.producer(address, **APP) as producer:
        operator.send("NotWritten", numbered(4))
        for mode in ("queue", "batch"):
            with pytest.raises(StepFailed) as refused:
                producer.send("NotWritten", numbered(1), mode=mode, brokerName=BROKER, queueId=0)
            assert refused.value.code == NO_PERMISSION
        with clients.push_consumer(address, "G", "NotWritten", **APP) as consumer:
            assert bodies(consumer.received(4)) == bodies(numbered(4))
    assert len(broker.refusals("it lacks PUB on topic NotWritten")) == 1


@pytest.mark.parametrize(
    ("group", "topic", "reason"),
    [
        ("NoMember", "T", "it lacks SUB on group NoMember"),
        ("G", "NotRead", "it lacks SUB on topic NotRead"),
    ],
)
def test_a_consumer_gets_nothing_until_the_rules_let_it(
    clients: StockClients,
    own_names: NameServerProcess,
    broker: GuardedBroker,
    *,
    group: str,
    topic: str,
    reason: str,
) -> None:
    address = own_names.address
    with clients.producer(address, **APP) as producer:
        producer.send(topic, numbered(8))
    with clients.push_consumer(address, group, topic, heartbeatMs=500, **APP) as consumer:
        wait_until(lambda: len(broker.refusals(reason)) == 1)
        consumer.rebalance()
        assert consumer.received(0) == []

        broker.write(RULES.replace("NoMember=DENY", "NoMember=SUB").replace("NotRead=PUB", "NotRead=PUB|SUB"))

        def has_all() -> bool:
            consumer.rebalance()
            return bodies(consumer.received(8, timeout_ms=500)) == bodies(numbered(8))

        wait_until(has_all)


def test_rules_that_change_count_for_clients_that_are_connected(
    clients: StockClients, own_names: NameServerProcess, broker: GuardedBroker
) -> None:
    with clients.producer(own_names.address, **APP) as producer:
        producer.send("T", numbered(1))
        broker.write(RULES + "accounts: [")
        wait_until(lambda: "access rules stay as they were" in broker.process.output())
        producer.send("T", numbered(1))

        broker.write(
            RULES.replace(f"app-key\n    secretKey: {SECRET}", "app-key\n    secretKey: another-secret")
        )
        wait_until(lambda: not is_sent(lambda: producer.send("T", numbered(1))))
        with clients.producer(own_names.address, accessKey="app-key", secretKey="another-secret") as renewed:
            renewed.send("T", numbered(1))


@pytest.mark.parametrize(
    ("rules", "keys"),
    [
        (f"globalWhiteRemoteAddresses: [10.0.0.1, 127.0.0.*]\n{RULES}", {}),
        (RULES.replace("whiteRemoteAddress:", "whiteRemoteAddress: 127.0.0.{1,2}"), WRONG_SECRET),
    ],
    ids=["everybody there", "an account there"],
)
def test_an_address_on_the_list_needs_no_signature(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path, rules: str, keys: dict[str, str]
) -> None:
    address = own_names.address
    with (
        GuardedBroker(tmp_path / "broker", address, rules) as broker,
        clients.producer(address, **keys) as producer,
    ):
        producer.send("NotWritten", numbered(4))
        with clients.push_consumer(address, "NoMember", "NotWritten", **keys) as consumer:
            assert bodies(consumer.received(4)) == bodies(numbered(4))
        assert broker.refusals("") == []


def test_mqadmin_creates_topics_with_the_key_of_an_admin_only(
    own_names: NameServerProcess, broker: GuardedBroker, tmp_path: Path
) -> None:
    create = ("updateTopic", "-b", broker.address, "-t", "Created")
    for keys, is_admin in ((APP, False), (OPERATOR, True)):
        try:
            tools = RocketMQ(tmp_path / keys["accessKey"], name_server=own_names.address)
        except partners.PartnerMissing as lack:
            partners.do_without(lack)
        with tools:
            tools.use_access_key(keys["accessKey"], keys["secretKey"])
            [printed] = tools.mqadmin_each(create)
        assert ("create topic to" in printed) == is_admin
    assert len(broker.refusals("request code 17 needs an admin's account")) == 1
