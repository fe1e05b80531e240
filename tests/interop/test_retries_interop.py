"""What stock clients of both lines could not consume comes again, and ends as a dead letter."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tanist.model.groups import SubscriptionGroupConfig
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Delivery, Outgoing, PullConsumer, StockClients
from tests.support.site import BROKER, Site, bodies, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

# A client sends back with levels 3 to 18; the steps are short, so that all retries fit into a test.
LEVELS_S = (1, 1, 1, 2, 3, *(1 for _ in range(13)))
DELAYS = " ".join(f"{level_s}s" for level_s in LEVELS_S)
DEFAULT_RETRIES = 16
# Of a retry topic, which begins with its group, a client learns when it looks at its routes.
REBALANCE_MS = 500
# What a consumer adds when it gets a message.
OF_THE_MOMENT = ("CONSUME_START_TIME", "MIN_OFFSET", "MAX_OFFSET")


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A name server, and a broker whose delays are short."""
    home = tmp_path_factory.mktemp("impatient")
    with (
        NameServerProcess(home / "ns") as names,
        BrokerProcess(home / "broker", names.address, name=BROKER, messageDelayLevel=DELAYS) as broker,
    ):
        yield names.address
        assert "Traceback" not in broker.process.output()


def dead_letters(looks: PullConsumer, group: str) -> list[Delivery]:
    """What the group gave up on so far."""
    try:
        return looks.pull(f"%DLQ%{group}", BROKER, 0, 0).messages
    except StepFailed:
        return []


def in_rounds(deliveries: Sequence[Delivery]) -> list[set[bytes]]:
    """The bodies that came for the first time, those that came for the second time, and so on."""
    ordered = sorted(deliveries, key=lambda one: one.reconsume_times)
    return [bodies(round_) for _, round_ in itertools.groupby(ordered, key=lambda one: one.reconsume_times)]


@pytest.mark.takes(20)
def test_what_a_listener_fails_on_comes_again_later_each_time(site: Site) -> None:
    topic = group = site.topic("t")
    messages = numbered(6, tags=("A", "B"))
    with (
        site.clients.producer(site.name_server) as producer,
        site.clients.push_consumer(
            site.name_server, group, topic, failures=3, rebalanceMs=REBALANCE_MS
        ) as consumer,
    ):
        sent = producer.send(topic, messages)
        received = consumer.received(4 * len(messages))

    assert in_rounds(received) == [bodies(messages)] * 4
    first_ids = {message.body: one.offset_message_id for message, one in zip(messages, sent, strict=True)}
    unique_ids = {message.body: one.message_id for message, one in zip(messages, sent, strict=True)}
    for body in bodies(messages):
        tries = [one for one in received if one.body == body]
        assert [one.reconsume_times for one in tries] == [0, 1, 2, 3]
        assert {one.topic for one in tries} == {topic}
        assert {one.message_id for one in tries} == {unique_ids[body]}
        assert len({one.tags for one in tries}) == 1
        assert [one.properties["DELAY"] for one in tries[1:]] == ["3", "4", "5"]
        assert {one.properties["ORIGIN_MESSAGE_ID"] for one in tries[1:]} == {first_ids[body]}
        waited_ms = [after.received_ms - before.received_ms for before, after in itertools.pairwise(tries)]
        assert all(
            waited >= 1000 * LEVELS_S[level - 1] for waited, level in zip(waited_ms, (3, 4, 5), strict=True)
        )


@pytest.mark.takes(35)
def test_a_message_that_is_never_consumed_is_a_dead_letter_after_16_retries(site: Site) -> None:
    topic = group = site.topic("t")
    (message,) = numbered(1, tags=("A",))
    with (
        site.clients.producer(site.name_server) as producer,
        site.clients.push_consumer(
            site.name_server, group, topic, failures=99, rebalanceMs=REBALANCE_MS
        ) as consumer,
        site.clients.pull_consumer(site.name_server, site.topic("looks")) as looks,
    ):
        (sent,) = producer.send(topic, [message])
        received = consumer.received(1 + DEFAULT_RETRIES, timeout_ms=80_000)
        wait_until(lambda: len(dead_letters(looks, group)) == 1)
        (letter,) = dead_letters(looks, group)
        assert len(consumer.received(0)) == 1 + DEFAULT_RETRIES

    assert [one.reconsume_times for one in received] == list(range(1 + DEFAULT_RETRIES))
    levels = [int(one.properties["DELAY"]) for one in received[1:]]
    assert levels == list(range(3, 3 + DEFAULT_RETRIES))
    assert (letter.body, letter.tags, letter.message_id) == (message.body, "A", sent.message_id)
    assert letter.reconsume_times == 1 + DEFAULT_RETRIES
    assert letter.properties["RETRY_TOPIC"] == topic
    assert letter.properties["ORIGIN_MESSAGE_ID"] == sent.offset_message_id


def test_a_consumer_says_how_often_it_tries(site: Site) -> None:
    topic = group = site.topic("t")
    with (
        site.clients.producer(site.name_server) as producer,
        site.clients.push_consumer(
            site.name_server, group, topic, failures=99, rebalanceMs=REBALANCE_MS, maxReconsumeTimes=1
        ) as consumer,
        site.clients.pull_consumer(site.name_server, site.topic("looks")) as looks,
    ):
        producer.send(topic, numbered(4))
        wait_until(lambda: len(dead_letters(looks, group)) == 4)
        received = consumer.received(8)
    assert in_rounds(received) == [bodies(numbered(4))] * 2


def test_retries_come_from_as_many_queues_as_the_group_was_given(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    messages = numbered(9)
    group = SubscriptionGroupConfig(group_name="G", retry_queue_count=3)
    with BrokerProcess(tmp_path / "broker", own_names.address, messageDelayLevel="1s") as broker:
        with Wire(broker.address) as wire:
            update = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
            assert wire.ask(Command.request(update, body=encode_body(group))).code == ResponseCode.SUCCESS
        with (
            clients.producer(own_names.address) as producer,
            clients.push_consumer(
                own_names.address, "G", "T", failures=1, rebalanceMs=REBALANCE_MS
            ) as consumer,
        ):
            producer.send("T", messages)
            received = consumer.received(18)
    assert in_rounds(received) == [bodies(messages)] * 2
    assert {one.queue_id for one in received if one.reconsume_times} == {0, 1, 2}


def test_a_listener_chooses_the_delay_or_gives_up_at_once(site: Site) -> None:
    topic = site.topic("t")
    chosen, given_up = site.topic("chosen"), site.topic("given-up")
    with (
        site.clients.producer(site.name_server) as producer,
        site.clients.push_consumer(
            site.name_server, chosen, topic, failures=1, rebalanceMs=REBALANCE_MS, delayLevel=1
        ) as one,
        site.clients.push_consumer(
            site.name_server, given_up, topic, failures=99, rebalanceMs=REBALANCE_MS, delayLevel=-1
        ) as other,
        site.clients.pull_consumer(site.name_server, site.topic("looks")) as looks,
    ):
        producer.send(topic, numbered(3))
        received = one.received(6)
        wait_until(lambda: len(dead_letters(looks, given_up)) == 3)
        assert bodies(dead_letters(looks, given_up)) == bodies(numbered(3))
        assert len(other.received(3)) == 3
    assert in_rounds(received) == [bodies(numbered(3))] * 2
    assert {one.properties["DELAY"] for one in received if one.reconsume_times} == {"1"}


def test_an_orderly_group_tries_in_place_and_then_gives_up(site: Site) -> None:
    topic = group = site.topic("t")
    with (
        site.clients.producer(site.name_server, topicQueues=1) as producer,
        site.clients.push_consumer(
            site.name_server,
            group,
            topic,
            isOrderly=True,
            failures=99,
            rebalanceMs=REBALANCE_MS,
            maxReconsumeTimes=2,
        ) as consumer,
        site.clients.pull_consumer(site.name_server, site.topic("looks")) as looks,
    ):
        producer.send(topic, numbered(3))
        wait_until(lambda: len(dead_letters(looks, group)) == 3)
        letters = dead_letters(looks, group)
        received = consumer.received(0)
    # Each message is tried until its end before the next one: that is what order means.
    assert [(one.body, one.reconsume_times) for one in received] == [
        (message.body, tries) for message in numbered(3) for tries in range(3)
    ]
    assert [one.body for one in letters] == [message.body for message in numbered(3)]
    assert {one.properties["RETRY_TOPIC"] for one in letters} == {topic}


def test_what_comes_again_says_what_it_says_at_rocketmq(rocketmq: RocketMQ, site: Site) -> None:
    rocketmq.start_broker(name=BROKER, properties={"messageDelayLevel": DELAYS})
    theirs = story(Site(site.clients, rocketmq.name_server, site.prefix))
    assert story(site) == theirs


def story(site: Site) -> dict[str, dict[str, str]]:
    """What a retry and the dead letters of three kinds say, but for what differs each time."""
    topic = site.topic("t")
    failing = {"failures": 99, "maxReconsumeTimes": 1, "rebalanceMs": REBALANCE_MS}
    kinds: dict[str, dict[str, object]] = {
        "tried-often": {**failing},
        "given-up": {**failing, "delayLevel": -1},
        "in-order": {**failing, "isOrderly": True},
    }
    groups = {kind: site.topic(kind) for kind in kinds}
    with contextlib.ExitStack() as stack:
        producer = stack.enter_context(site.clients.producer(site.name_server, topicQueues=1))
        producer.send(topic, [Outgoing(b"x", tags="A", keys="k", properties={"colour": "blue"})])
        looks = stack.enter_context(site.clients.pull_consumer(site.name_server, site.topic("looks")))
        consumers = {
            kind: stack.enter_context(
                site.clients.push_consumer(site.name_server, groups[kind], topic, **options)  # pyright: ignore[reportArgumentType]
            )
            for kind, options in kinds.items()
        }
        wait_until(lambda: all(dead_letters(looks, group) for group in groups.values()))
        said = {kind: dead_letters(looks, group)[0] for kind, group in groups.items()}
        said["retry"] = consumers["tried-often"].received(2)[1]
    return {kind: lasting_properties(one) for kind, one in said.items()}


def lasting_properties(delivery: Delivery) -> dict[str, str]:
    """The properties of a message; of an id only how long it is."""
    ids = {name: str(len(delivery.properties[name])) for name in ("UNIQ_KEY", "ORIGIN_MESSAGE_ID")}
    kept = {name: value for name, value in delivery.properties.items() if name not in OF_THE_MOMENT}
    return kept | ids | {"reconsumeTimes": str(delivery.reconsume_times), "topic": delivery.topic}
