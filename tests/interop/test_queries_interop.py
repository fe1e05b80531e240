"""RocketMQ's operator command prints the same about a Tanist broker as about a RocketMQ broker."""

import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.model.integers import INT64_MAX
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.bodies.stats import ConsumeQueueView, ConsumeStats, ConsumeTimeSpans, CorrectionOffsets
from tanist.protocol.bodies.tables import GroupSubscription, TopicList
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.common import GroupRequest, TopicGroupRequest
from tanist.protocol.headers.groups import GetConsumeStatsRequest, QuerySubscriptionRequest
from tanist.protocol.headers.messages import QueryConsumeQueueRequest, QueryMessageRequest, ViewMessageRequest
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    QueryConsumerOffsetRequest,
    QueryCorrectionOffsetRequest,
)
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.client import Sent
from tests.support.rocketmq.cluster import mqadmin_each
from tests.support.rocketmq.stock_client import Outgoing, Producer, StockClients
from tests.support.site import BROKER, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

TOPIC = "Orders"
QUEUES = 4
ALL, TAGGED, SLOW, LITE, CAST, CLONE = "G-all", "G-tag", "G-slow", "G-lite", "G-cast", "G-clone"

# When a group was given its last message, and what of it is counted yet, is a matter of time for these. A
# broker of 5.3 takes a topic for one of its groups, and forgets groups that commit no offsets.
_UNSTEADY = re.compile(
    rf"%RETRY%|{SLOW}|{LITE}|{CAST}|MessageTrack|See https|For more info|Consume TPS|^Diff Total"
    rf"|{TOPIC} +{TOPIC}"
)
_NAMED = (
    (re.compile(r"\b[0-9A-F]{32}\b"), "ID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b20\d\d-\d\d-\d\d [\d:]{8}(,\d+)?"), "TIME"),
    (re.compile(r"\b1[78]\d{11}\b"), "TIME"),
    (re.compile(r'"consumeTps":[\d.]+'), "TPS"),
    (re.compile(r'"delayTime":\d+'), "DELAY"),
    (re.compile(r"spentTimeMills=\d+"), "SPENT"),
    (re.compile(r"@(producer|push-consumer|lite-consumer)-\d+"), "@CLIENT"),
    (re.compile(r" +"), " "),
)
_PROPERTIES = re.compile(r"\{([^{}]*)\}")
_TRACK = re.compile(r"consumerGroup=([\w-]+), trackType=(\w+)")


@dataclass(frozen=True)
class Stage:
    """A broker with its name server, and the stock clients and tools of one line."""

    clients: StockClients
    name_server: str
    broker: str
    home: Path

    @property
    def is_new(self) -> bool:
        """Whether the tools are of 5.x: those of 4.9 have fewer options."""
        return self.clients.line.startswith("5.")

    @property
    def query_by_id(self) -> tuple[str, ...]:
        return ("queryMsgById", "-t", TOPIC, "-i") if self.is_new else ("queryMsgById", "-i")

    def run(self, *commands: Sequence[str]) -> list[str]:
        """What the operator command prints for each of these."""
        return mqadmin_each(self.name_server, *commands, home=self.home, line=self.clients.line)

    def ask(self, code: RequestCode, header: Header | None = None) -> Command:
        with Wire(self.broker) as wire:
            return wire.ask(Command.request(code, header))

    def committed(self, group: str) -> list[int]:
        """Where a group stands in each queue; -1 where it has not said."""

        def offset(queue_id: int) -> int:
            header = QueryConsumerOffsetRequest(
                consumer_group=group, topic=TOPIC, queue_id=queue_id, set_zero_if_not_found=False
            )
            answer = self.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
            is_there = answer.code == ResponseCode.SUCCESS
            return answer.header(ConsumerOffsetResponse).consumer_offset if is_there else -1

        return [offset(queue_id) for queue_id in range(QUEUES)]


@dataclass(frozen=True)
class Scene:
    """What was sent, and who is there. ``unseen`` was consumed by all but the slow group."""

    stage: Stage
    first: Sent
    second: Sent
    unseen: Sent
    client_id: str


def _send(producer: Producer, queue_id: int, tag: str, keys: str) -> Sent:
    message = Outgoing(f"body-{keys}".encode(), tags=tag, keys=keys)
    (sent,) = producer.send(TOPIC, [message], mode="queue", brokerName=BROKER, queueId=queue_id)
    return sent


@contextmanager
def playing(stage: Stage) -> Generator[Scene]:
    """Six messages, and groups of all kinds that have consumed them and are online."""
    start = stage.clients.push_consumer
    with ExitStack() as online:
        producer = online.enter_context(stage.clients.producer(stage.name_server, topicQueues=QUEUES))
        sent = [
            _send(producer, queue_id, "AB"[queue_id % 2], f"k{queue_id} all") for queue_id in range(QUEUES)
        ]
        everything, slow = (
            online.enter_context(start(stage.name_server, group, TOPIC)) for group in (ALL, SLOW)
        )
        tagged = online.enter_context(start(stage.name_server, TAGGED, TOPIC, expression="A"))
        cast = online.enter_context(start(stage.name_server, CAST, TOPIC, isBroadcasting=True))
        lite = online.enter_context(stage.clients.lite_consumer(stage.name_server, LITE, TOPIC))
        for consumer, count in ((everything, 4), (slow, 4), (tagged, 2), (cast, 4)):
            assert len(consumer.received(count)) >= count
        assert len(lite.poll(4)) == 4
        wait_until(lambda: stage.committed(SLOW) == [1, 1, 1, 1])
        # The pull of the slow group that waits already takes one more message along.
        slow.suspend()
        for number, key in ((5, "late"), (6, "unseen")):
            sent.append(_send(producer, 3, "A", key))
            assert len(everything.received(number)) == number
        for group in (ALL, TAGGED):
            wait_until(lambda group=group: stage.committed(group) == [1, 1, 1, 3])
        (listed,) = stage.run(("consumerConnection", "-g", ALL))
        found = re.search(r"\S+@\S+", listed)
        assert found, listed
        yield Scene(stage, sent[0], sent[1], sent[-1], found[0])


def _steady(printed: str) -> list[str]:
    """What was printed, without what time and chance bring in; rows and properties come in any order."""
    lines = [line for line in printed.splitlines() if not _UNSTEADY.search(line)]
    lines = [_PROPERTIES.sub(lambda found: str(sorted(found[1].split(", "))), line) for line in lines]
    for pattern, name in _NAMED:
        lines = [pattern.sub(name, line) for line in lines]
    return sorted(lines)


def _tracks(printed: str) -> dict[str, str]:
    """Who has consumed a message, as far as both kinds of broker know."""
    tracks = dict(_TRACK.findall(printed))
    tracks.pop(TOPIC, None)
    return tracks


def _commands(scene: Scene) -> dict[str, tuple[str, ...]]:
    """What to ask while everybody is online."""
    address, by_id = scene.stage.broker, scene.stage.query_by_id
    nowhere = scene.first.offset_message_id[:-1] + "1"
    queue = ("queryCq", "-t", TOPIC, "-q", "3", "-i", "0", "-c", "10", "-b", address)
    commands: dict[str, tuple[str, ...]] = {
        "members": ("consumerConnection", "-g", ALL),
        "lite members": ("consumerConnection", "-g", LITE),
        "no members": ("consumerConnection", "-g", "nobody"),
        "producers": ("producerConnection", "-g", "tanist-producer", "-t", TOPIC),
        "groups": ("consumerProgress",),
        "progress": ("consumerProgress", "-g", ALL),
        "progress by client": ("consumerProgress", "-g", ALL, "-s", "true"),
        "running": ("consumerStatus", "-g", ALL),
        "topic": ("topicStatus", "-t", TOPIC),
        "first": (*by_id, scene.first.offset_message_id),
        "second": (*by_id, scene.second.offset_message_id),
        "unseen": (*by_id, scene.unseen.offset_message_id),
        "nowhere": (*by_id, nowhere),
        "consumed": (*by_id, scene.first.offset_message_id, "-g", ALL, "-d", scene.client_id),
        "consumed by nobody": (*by_id, scene.first.offset_message_id, "-g", ALL, "-d", "nobody@1"),
        "by key": ("queryMsgByKey", "-t", TOPIC, "-k", "all"),
        "by no key": ("queryMsgByKey", "-t", TOPIC, "-k", "none"),
        "by unique id": ("queryMsgByUniqueKey", "-t", TOPIC, "-i", scene.second.message_id),
        "by offset": ("queryMsgByOffset", "-t", TOPIC, "-b", BROKER, "-i", "3", "-o", "0"),
        "queue": queue,
        "queue of a group": (*queue, "-g", "nobody"),
        "no queue": ("queryCq", "-t", TOPIC, "-q", "9", "-i", "0", "-c", "10", "-b", address),
        "all": ("printMsg", "-t", TOPIC),
        "of a queue": ("printMsgByQueue", "-t", TOPIC, "-a", BROKER, "-i", "3", "-p", "true", "-f", "true"),
        "consume": ("consumeMessage", "-t", TOPIC, "-c", "6"),
        "backlog": ("brokerConsumeStats", "-b", address),
        "ordered backlog": ("brokerConsumeStats", "-b", address, "-o", "true"),
        "group": ("getConsumerConfig", "-g", ALL),
        "topics": ("topicList", "-c"),
    }
    if scene.stage.is_new:
        commands |= {
            "progress in a topic": ("consumerProgress", "-g", ALL, "-t", TOPIC),
            "slaves": ("haStatus", "-b", address),
            "first by its other id": (*by_id, scene.first.message_id, "-f", "UTF-8"),
        }
    return commands


def _raw_answers(scene: Scene) -> list[list[str]]:
    """Bodies that the tools read only a part of, or that only other tools ask for."""
    questions = (
        (
            RequestCode.GET_CONSUME_STATS,
            GetConsumeStatsRequest(consumer_group=ALL, topic=TOPIC),
            ConsumeStats,
        ),
        (
            RequestCode.GET_CONSUME_STATS,
            GetConsumeStatsRequest(consumer_group="nobody", topic_list=f"{TOPIC};nowhere;"),
            ConsumeStats,
        ),
        (RequestCode.QUERY_CONSUME_TIME_SPAN, TopicGroupRequest(topic=TOPIC, group=ALL), ConsumeTimeSpans),
        (
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER,
            QuerySubscriptionRequest(group=TAGGED, topic=TOPIC),
            GroupSubscription,
        ),
        (RequestCode.QUERY_TOPICS_BY_CONSUMER, GroupRequest(group="nobody"), TopicList),
        (
            RequestCode.QUERY_CORRECTION_OFFSET,
            QueryCorrectionOffsetRequest(topic=TOPIC, compare_group=ALL),
            CorrectionOffsets,
        ),
        (
            RequestCode.QUERY_CONSUME_QUEUE,
            QueryConsumeQueueRequest(
                topic=TOPIC, queue_id=3, queue_offset=QueueOffset(1), count=1, consumer_group=TAGGED
            ),
            ConsumeQueueView,
        ),
        (RequestCode.GET_BROKER_HA_STATUS, None, HARuntimeInfo),
    )
    told: list[list[str]] = []
    for code, header, body_type in questions:
        answer = scene.stage.ask(code, header)
        assert answer.code == ResponseCode.SUCCESS, (code, answer.remark)
        body = decode_java_json(answer.body, body_type)
        if isinstance(body, HARuntimeInfo):
            body = _told_by_rocketmq(body)
        told.append(_steady(encode_body(body).decode()))
    return told


def _told_by_rocketmq(status: HARuntimeInfo) -> HARuntimeInfo:
    """Without what Tanist tells besides."""
    return HARuntimeInfo(
        is_master=status.is_master,
        log_end=status.log_end,
        in_sync_slave_count=status.in_sync_slave_count,
        slaves=status.slaves,
        client=status.client,
    )


def _refusals(scene: Scene) -> list[int]:
    """How questions are refused to which there is no answer."""
    query = QueryMessageRequest(
        topic=TOPIC, key="none", max_count=9, begin_timestamp_ms=0, end_timestamp_ms=9
    )
    questions: tuple[tuple[RequestCode, Header], ...] = (
        (RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest(log_offset=LogOffset(1 << 40))),
        (RequestCode.QUERY_MESSAGE, query),
        (RequestCode.QUERY_CONSUME_TIME_SPAN, TopicGroupRequest(topic="nowhere", group=ALL)),
        (RequestCode.QUERY_CONSUME_QUEUE, QueryConsumeQueueRequest(topic=TOPIC, queue_id=9, count=1)),
    )
    return [scene.stage.ask(code, header).code for code, header in questions]


def _after_all_left(stage: Stage, scene: Scene) -> dict[str, str]:
    commands = {
        "members": ("consumerConnection", "-g", ALL),
        "progress": ("consumerProgress", "-g", ALL),
        "running": ("consumerStatus", "-g", ALL),
        "first": (*stage.query_by_id, scene.first.offset_message_id),
        "new group": ("updateSubGroup", "-b", stage.broker, "-g", CLONE),
        "clone": ("cloneGroupOffset", "-s", ALL, "-d", CLONE, "-t", TOPIC),
        "backlog": ("brokerConsumeStats", "-b", stage.broker),
    }
    return dict(zip(commands, stage.run(*commands.values()), strict=True))


@pytest.fixture
def tanist(clients: StockClients, own_names: NameServerProcess, tmp_path: Path) -> Iterator[Stage]:
    with BrokerProcess(tmp_path / "tanist", own_names.address, timerWheelEnable="false") as broker:
        yield Stage(clients, own_names.address, broker.address, tmp_path / "tanist-operator")
        assert "Traceback" not in broker.process.output()


@pytest.mark.takes(80)
def test_mqadmin_prints_the_same_about_messages_and_consumers(
    tanist: Stage, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    broker = rocketmq.start_broker()
    real = Stage(tanist.clients, rocketmq.name_server, broker.address, tmp_path / "real-operator")

    with playing(real) as theirs, playing(tanist) as ours, ThreadPoolExecutor(2) as pool:
        commands = [_commands(scene) for scene in (theirs, ours)]
        running = [
            pool.submit(stage.run, *asked.values())
            for stage, asked in zip((real, tanist), commands, strict=True)
        ]
        printed = [dict(zip(commands[0], run.result(), strict=True)) for run in running]
        raw = [_raw_answers(scene) for scene in (theirs, ours)]
        refusals = [_refusals(scene) for scene in (theirs, ours)]
    with ThreadPoolExecutor(2) as pool:
        left = list(pool.map(_after_all_left, (real, tanist), (theirs, ours)))

    for their_answers, our_answers in (printed, left):
        for name, text in their_answers.items():
            assert _steady(our_answers[name]) == _steady(text), name
            assert _tracks(text).items() <= _tracks(our_answers[name]).items(), name
    assert raw[1] == raw[0]
    assert refusals[1] == refusals[0] == [1, 22, 17, 1]
    _check_cells(printed[1], left[1], ours)


def _check_cells(online: dict[str, str], left: dict[str, str], scene: Scene) -> None:
    """Cells that must not be empty on both sides."""
    assert scene.client_id in online["members"]
    assert "CONSUME_ACTIVELY" in online["lite members"]
    assert "@producer-" in online["producers"]
    rows = re.findall(rf"^{TOPIC} +{BROKER} +(\d) +(\d) +(\d) +(\d)\b", online["progress"], re.MULTILINE)
    assert rows == [(str(n), str(end), str(end), "0") for n, end in enumerate((1, 1, 1, 3))]
    assert re.search(rf"^{ALL} +1 +V\w+ +PUSH +CLUSTERING +\d+ +0$", online["groups"], re.MULTILINE)
    assert "Rebalance OK" in online["running"]
    assert scene.client_id in online["running"]
    assert re.search(rf"^{BROKER} +3 +0 +3 ", online["topic"], re.MULTILINE)
    assert "Keys: [k0 all]" in re.sub(" +", " ", online["first"])
    assert _tracks(online["first"]) == {
        ALL: "CONSUMED",
        TAGGED: "CONSUMED",
        SLOW: "CONSUMED",
        LITE: "PULL",
        # The older line looks for offsets, which nobody who broadcasts commits.
        CAST: "CONSUME_BROADCASTING" if scene.stage.is_new else "NOT_ONLINE",
    }
    assert _tracks(online["second"])[TAGGED] == "CONSUMED_BUT_FILTERED"
    assert (_tracks(online["unseen"])[SLOW], _tracks(online["unseen"])[ALL]) == (
        "NOT_CONSUME_YET",
        "CONSUMED",
    )
    assert "consumeResult=CR_SUCCESS" in online["consumed"]
    assert len(re.findall(r"^[0-9A-F]{32} +\d +0$", online["by key"], re.MULTILINE)) == QUEUES
    assert "Keys: [k1 all]" in re.sub(" +", " ", online["by unique id"])
    assert online["all"].count("MSGID: ") == 6
    assert "max: 3, min: 0" in online["queue"]
    assert _tracks(left["first"])[ALL] == "NOT_ONLINE"
    cloned = re.findall(rf"^{TOPIC} +{CLONE} +{BROKER} +\d +(\d) +(\d) +0", left["backlog"], re.MULTILINE)
    assert cloned == [("1", "1")] * 3 + [("3", "3")]


def test_mqadmin_sends_and_measures(tanist: Stage) -> None:
    _, sent, measured = tanist.run(
        ("updateTopic", "-b", tanist.broker, "-t", TOPIC),
        ("sendMessage", "-t", TOPIC, "-p", "hello", "-k", "key", "-c", "tag"),
        ("checkMsgSendRT", "-t", TOPIC, "-a", "3", "-s", "10"),
    )
    assert "SEND_OK" in sent
    assert len(re.findall(rf"^{BROKER} +\d +true +\d+", measured, re.MULTILINE)) == 3
    (message_id,) = re.findall(r"\b[0-9A-F]{32}\b", sent)
    (found,) = tanist.run(("queryMsgByUniqueKey", "-t", TOPIC, "-i", message_id))
    assert "Keys: [key]" in re.sub(" +", " ", found)


def test_mqadmin_finds_the_trace_of_a_message(tanist: Stage) -> None:
    with tanist.clients.producer(tanist.name_server, isTraced=True) as producer:
        (sent,) = producer.send(TOPIC, [Outgoing(b"traced", keys="key")])
        query = QueryMessageRequest(
            topic="RMQ_SYS_TRACE_TOPIC",
            key=sent.message_id,
            max_count=1,
            begin_timestamp_ms=0,
            end_timestamp_ms=INT64_MAX,
        )
        wait_until(lambda: tanist.ask(RequestCode.QUERY_MESSAGE, query).code == ResponseCode.SUCCESS)
    (traced,) = tanist.run(("queryMsgTraceById", "-i", sent.message_id))
    assert re.search(r"^Pub .* success", traced, re.MULTILINE), traced
