"""RocketMQ's operator command against a Tanist broker, and what stock clients see of an operator's work."""

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tanist.model.route import TopicRouteData
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.stats import BrokerStats
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.headers.messages import ViewBrokerStatsRequest
from tanist.protocol.headers.nameserver import GetRouteRequest
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.cluster import CONSUMER_GROUP, mqadmin_each
from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import FROM_LAST, Outgoing, StockClients
from tests.support.site import BROKER, are_shared, bodies, is_sent, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

CLUSTER = "tanist-tests"
TOPIC = "Orders"
COUNT = 8

# Addresses, rates and ages, and the topic of timers, which only a broker with a timer wheel has.
_NAMED = (
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(?<=V5_3_3).*"), "FIGURES"),
    (re.compile(r"OK, \d+"), "OK, COUNT"),
    (re.compile(r"^.*rmq_sys_wheel_timer.*\n", re.MULTILINE), ""),
    (re.compile(r" +"), " "),
)


class Around:
    """One broker with its name server, and RocketMQ's tools around it."""

    def __init__(self, tools: RocketMQ, broker: str, home: Path, line: str) -> None:
        self.tools = tools
        self.broker = broker
        self._home = home
        self._line = line

    def play(self) -> None:
        """Eight messages, sent, consumed, and counted."""
        self.tools.produce(TOPIC, count=COUNT, queues=(0, 1, 2, 3))
        assert len(self.tools.consume_all(TOPIC, is_committed=True)) == COUNT
        wait_until(lambda: self.sums("TOPIC_PUT_NUMS", TOPIC) == COUNT)
        wait_until(lambda: self.sums("GROUP_GET_NUMS", f"{TOPIC}@{CONSUMER_GROUP}") == COUNT)

    def sums(self, name: str, key: str) -> int:
        header = ViewBrokerStatsRequest(stats_name=name, stats_key=key)
        answer = ask(self.broker, Command.request(RequestCode.VIEW_BROKER_STATS_DATA, header))
        return decode_java_json(answer.body, BrokerStats).minute.sum if answer.code == 0 else -answer.code

    def runtime(self) -> dict[str, str]:
        answer = ask(self.broker, Command.request(RequestCode.GET_BROKER_RUNTIME_INFO))
        return decode_java_json(answer.body, KVTable).table

    def run(self, *commands: Sequence[str]) -> list[str]:
        """What the operator command prints for each, without what no two brokers have in common."""
        return [_steady(text) for text in self.mqadmin(*commands)]

    def mqadmin(self, *commands: Sequence[str]) -> list[str]:
        return mqadmin_each(self.tools.name_server, *commands, home=self._home, line=self._line)


def ask(address: str, request: Command) -> Command:
    with Wire(address) as wire:
        return wire.ask(request)


def change(broker: BrokerProcess, **settings: object) -> Command:
    body = "".join(f"{key}={value}\n" for key, value in settings.items()).encode()
    return ask(broker.address, Command.request(RequestCode.UPDATE_BROKER_CONFIG, body=body))


def delete_topic(broker: BrokerProcess, topic: str) -> None:
    request = Command.request(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=topic))
    assert ask(broker.address, request).code == ResponseCode.SUCCESS


def permission(name_server: str, topic: str) -> int | None:
    """What the route says may be done with a topic."""
    request = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic))
    answer = ask(name_server, request)
    is_there = answer.code == ResponseCode.SUCCESS
    return decode_java_json(answer.body, TopicRouteData).queue_datas[0].perm if is_there else None


def _steady(printed: str) -> str:
    for pattern, name in _NAMED:
        printed = pattern.sub(name, printed)
    # The order of a set is nobody's.
    return "\n".join(sorted(line.strip() for line in printed.splitlines()))


@pytest.mark.takes(40)
@pytest.mark.parametrize("line", CLIENT_LINES)
def test_mqadmin_prints_what_it_prints_about_the_real_broker(
    rocketmq: RocketMQ, own_names: NameServerProcess, tmp_path: Path, line: str
) -> None:
    # Without its timer the real broker fails to delete a topic.
    real = rocketmq.start_broker(properties={"timerWheelEnable": "true"})
    theirs = Around(rocketmq, real.address, tmp_path / "theirs", line)
    commands = (
        ("clusterList",),
        ("clusterList", "-m"),
        ("updateTopic", "-c", CLUSTER, "-t", "Made", "-r", "4", "-w", "3", "-p", "6"),
        ("updateTopicPerm", "-c", CLUSTER, "-t", "Made", "-p", "4"),
        ("topicRoute", "-t", "Made"),
        ("topicClusterList", "-t", "Made"),
        ("allocateMQ", "-t", "Made", "-i", "10.0.0.1,10.0.0.2"),
        ("updateSubGroup", "-c", CLUSTER, "-g", "Billing"),
        ("updateBrokerConfig", "-c", CLUSTER, "-k", "fileReservedTime", "-v", "48"),
        ("wipeWritePerm", "-b", BROKER),
        ("topicRoute", "-t", TOPIC),
        ("addWritePerm", "-b", BROKER),
        ("topicRoute", "-t", TOPIC),
        ("cleanExpiredCQ", "-c", CLUSTER),
        ("cleanUnusedTopic", "-c", CLUSTER),
        ("deleteExpiredCommitLog", "-c", CLUSTER),
        ("deleteSubGroup", "-c", CLUSTER, "-g", "Billing", "-r", "true"),
        ("deleteTopic", "-c", CLUSTER, "-t", "Made"),
        ("topicList", "-c"),
    )
    with (
        BrokerProcess(tmp_path / "tanist", own_names.address) as broker,
        RocketMQ(tmp_path / "tools", name_server=own_names.address) as tools,
    ):
        ours = Around(tools, broker.address, tmp_path / "ours", line)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Around.play, (theirs, ours)))
            # Within a minute: for the next nine neither broker counts what came before that.
            list(pool.map(_check_stats_all, (theirs, ours)))
            running = [pool.submit(around.run, *commands) for around in (theirs, ours)]
        their_text, our_text = (run.result() for run in running)
        for command, real_text, text in zip(commands, their_text, our_text, strict=True):
            assert text == real_text, command
        assert f"{BROKER} 0 0 {COUNT} {COUNT}" in our_text[1]
        assert "48" in (tmp_path / "tanist" / "broker.conf").read_text()
        _check_runtime(ours.runtime(), theirs.runtime())
        _check_settings(ours, theirs)


def _check_runtime(ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Every figure has a name that RocketMQ has, and those that count the same traffic are the same."""
    assert {key for key in ours if "commitLogDiskRatio_" not in key} <= theirs.keys()
    same = ("msgPutTotalTodayNow", "msgGetTotalTodayNow", "putMessageTimesTotal", "brokerVersionDesc")
    assert [ours[key] for key in same] == [theirs[key] for key in same]
    assert ours["putMessageSizeTotal"] == theirs["putMessageSizeTotal"] == ours["commitLogMaxOffset"]


def _check_settings(ours: Around, theirs: Around) -> None:
    """What both have and neither a test nor a decision of ours sets apart is the same."""
    printed = [around.mqadmin(("getBrokerConfig", "-b", around.broker))[0] for around in (ours, theirs)]
    own, real = (_settings(text) for text in printed)
    apart = {"listenPort", "namesrvAddr", "storePathRootDir", "mappedFileSizeCommitLog", "rocketmqHome"}
    apart |= {"enablePropertyFilter", "timerWheelEnable", "haListenPort", "brokerIP2", "inSyncReplicas"}
    apart |= {"useServerSideResetOffset", "metricsPromExporterHost", "storePathCommitLog"}
    apart |= {"allAckInSyncStateSet", "controllerHeartBeatTimeoutMills", "brokerHeartbeatInterval"}
    same = own.keys() & real.keys() - apart
    assert {"fileReservedTime", "brokerPermission", "brokerName", "deleteWhen", "slaveReadEnable"} <= same
    assert {key: own[key] for key in same} == {key: real[key] for key in same}
    assert own["fileReservedTime"] == "48"


def _settings(printed: str) -> dict[str, str]:
    lines = (line.partition("=") for line in printed.splitlines() if not line.startswith("=="))
    return {key.strip(): value.strip() for key, separator, value in lines if separator}


def _check_stats_all(around: Around) -> None:
    """What came and went; the rates of the last minute depend on when the question came."""
    (printed,) = around.mqadmin(("statsAll", "-t", TOPIC))
    topic, group, behind, _in_tps, _out_tps, came, went = printed.splitlines()[1].split()
    assert (topic, group, behind, came, went) == (TOPIC, CONSUMER_GROUP, "0", str(COUNT), str(COUNT))


def test_mqadmin_is_told_which_setting_can_not_be_changed(
    own_names: NameServerProcess, tmp_path: Path
) -> None:
    with BrokerProcess(tmp_path / "broker", own_names.address) as broker:
        config = (tmp_path / "broker" / "broker.conf").read_text()
        for key, code in (("brokerConfigPath", 16), ("listenPort", 16), ("noSuchKey", 1)):
            refused = change(broker, fileReservedTime=48, **{key: "1"})
            assert refused.code == code
            assert key in (refused.remark or "")
        assert (tmp_path / "broker" / "broker.conf").read_text() == config


def test_a_topic_that_is_made_again_begins_anew_for_every_group(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address) as broker,
        clients.producer(address) as producer,
        clients.pull_consumer(address, "looks") as looks,
    ):
        producer.send(TOPIC, [Outgoing(b"old-%d" % number) for number in range(16)])
        with clients.push_consumer(address, "before", TOPIC) as before:
            assert len(before.received(16)) == 16
        delete_topic(broker, TOPIC)
        broker.kill()
        broker.restart()
        fresh = numbered(16)
        wait_until(lambda: is_sent(lambda: producer.send(TOPIC, fresh[:1])))
        producer.send(TOPIC, fresh[1:])
        # One group was there before; one is new; one would begin at the end of a topic that is not young.
        for group, start in (("before", FROM_LAST), ("first", None), ("last", FROM_LAST)):
            options = {} if start is None else {"start": start}
            with clients.push_consumer(address, group, TOPIC, **options) as consumer:
                assert bodies(consumer.received(16)) == bodies(fresh)
        bounds = [looks.bounds(TOPIC, BROKER, queue_id, time_ms=0) for queue_id in range(4)]
        assert sum(bound["max"] - bound["min"] for bound in bounds) == 16
        assert all(bound["min"] > 0 for bound in bounds)


def test_clients_obey_a_permission_that_an_operator_changes(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address) as broker,
        clients.producer(address) as producer,
        clients.push_consumer(address, "group", TOPIC) as consumer,
    ):
        producer.send(TOPIC, numbered(8))
        wait_until(lambda: permission(address, TOPIC) == 6)
        assert change(broker, brokerPermission=4).code == ResponseCode.SUCCESS
        wait_until(lambda: permission(address, TOPIC) == 4)
        # Who learns the route now finds no queue to write to, and reads on.
        with (
            clients.producer(address) as late,
            pytest.raises(StepFailed, match=r"No route info|Can not find"),
        ):
            late.send(TOPIC, numbered(1))
        consumer.rebalance()
        assert bodies(consumer.received(8)) == bodies(numbered(8))
        assert change(broker, brokerPermission=6).code == ResponseCode.SUCCESS
        wait_until(lambda: permission(address, TOPIC) == 6)
        with clients.producer(address) as again:
            again.send(TOPIC, numbered(8, start=8))
        assert bodies(consumer.received(16)) == bodies(numbered(16))


def test_where_only_writing_is_permitted_a_consumer_gets_nothing_until_reading_is(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address, brokerPermission=2) as broker,
        clients.producer(address) as producer,
    ):
        producer.send(TOPIC, numbered(8))
        assert permission(address, TOPIC) == 2
        with clients.push_consumer(address, "group", TOPIC) as consumer:
            consumer.rebalance()
            assert consumer.assigned() == {}
            permitted_ms = time.time() * 1000
            assert change(broker, brokerPermission=6).code == ResponseCode.SUCCESS
            wait_until(lambda: permission(address, TOPIC) == 6)
            consumer.rebalance()
            received = consumer.received(8)
        assert bodies(received) == bodies(numbered(8))
        assert min(delivery.received_ms for delivery in received) >= permitted_ms


def test_consumers_that_are_sent_to_a_slave_that_is_not_there_go_on_at_the_master(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    address = own_names.address
    with (
        BrokerProcess(tmp_path / "broker", address, slaveReadEnable="true", accessMessageInMemoryMaxRatio=0),
        clients.producer(address) as producer,
    ):
        producer.send(TOPIC, numbered(200))
        with clients.push_consumer(address, "group", TOPIC) as consumer:
            assert bodies(consumer.received(200)) == bodies(numbered(200))
            wait_until(lambda: are_shared([consumer], 4))
            producer.send(TOPIC, numbered(1, start=200))
            assert len(consumer.received(201)) == 201


def test_a_topic_too_many_is_refused_and_the_others_are_served(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    with (
        BrokerProcess(tmp_path / "broker", own_names.address, maxTopicCount=1),
        clients.producer(own_names.address) as producer,
    ):
        with pytest.raises(StepFailed) as refusal:
            producer.send(TOPIC, numbered(1))
        assert refusal.value.code == ResponseCode.TOPIC_NOT_EXIST
        assert producer.send("BenchmarkTest", numbered(1))[0].status == "SEND_OK"
