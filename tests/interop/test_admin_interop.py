"""``tanist admin`` beside RocketMQ's ``mqadmin``: about the same cluster both say the same."""

import asyncio
import json
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist import sync
from tanist.cli.admin import admin
from tanist.cli.main import tanist
from tanist.client import Consumer, Message, Start
from tanist.protocol.java_json import standard_json
from tests.support.rocketmq.cluster import Broker, RocketMQ, mqadmin_each
from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.site import wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.tanist_group import NAME, GroupProcess

pytestmark = [pytest.mark.partner("java", "maven"), pytest.mark.takes(60)]

CLUSTER = "tanist-tests"
TOPIC = "AdminOrders"
GROUP = "AdminBilling"
SHOP = "AdminShop"
COPIES = ("CopiedByOurs", "CopiedByTheirs")
COUNT = 6
ELSEWHERE = {"resetOffsetByTime": {"--cplus"}, "clusterRT": {"--print", "--machine"}}
"""A flag that is not here on purpose, and the beginnings of names that have a blank in them."""


class Operator:
    """Asks one cluster with both tools."""

    def __init__(self, name_server: str, broker: str, home: Path) -> None:
        self.name_server = name_server
        self.broker = broker
        self._home = home

    def ours(self, *words: str) -> Any:
        """What ours says, as JSON."""
        result = CliRunner().invoke(tanist, ["admin", *words, "-n", self.name_server, "--json"])
        assert result.exit_code == 0, f"{words}: {result.output} {result.exception!r}"
        return json.loads(result.stdout)

    def theirs(self, *commands: Sequence[str]) -> list[str]:
        """What ``mqadmin`` prints for each of these."""
        return mqadmin_each(self.name_server, *commands, home=self._home)

    def in_total_today(self) -> int:
        """How many messages the broker says that it has got."""
        return self.ours("clusterList", "-m")[0]["inTotalToday"]

    def consume(self) -> None:
        """All messages of the topic, by a group that is not online afterwards."""

        async def read() -> None:
            async with Consumer(
                group=GROUP, topics={TOPIC: "*"}, namesrv=self.name_server, start=Start.FIRST
            ) as consumer:
                count = 0
                async for _ in consumer:
                    count += 1
                    if count == COUNT:
                        break

        asyncio.run(asyncio.wait_for(read(), 60))


@pytest.fixture(params=["tanist", "rocketmq"])
def operator(
    request: pytest.FixtureRequest, tmp_path: Path, own_names: NameServerProcess
) -> Iterator[Operator]:
    if request.param == "tanist":
        with BrokerProcess(tmp_path / "broker", own_names.address) as broker:
            yield Operator(own_names.address, broker.address, tmp_path / "home")
    else:
        rocketmq: RocketMQ
        real: Broker
        rocketmq, real = request.getfixturevalue("rocketmq_broker")
        yield Operator(rocketmq.name_server, real.address, tmp_path / "home")


def test_both_tools_say_the_same_about_the_same_cluster(operator: Operator, tmp_path: Path) -> None:
    broker_name, message_id = _prepare(operator)
    topics, groups = tmp_path / "topics.json", tmp_path / "groups.json"
    topics.write_text('[{"topicName":"AdminListed","readQueueNums":3,"writeQueueNums":3}]')
    groups.write_text('[{"groupName":"AdminListedGroup","retryMaxTimes":5}]')
    commands = {
        "clusterList": (),
        "topicRoute": ("-t", TOPIC),
        "topicStatus": ("-t", TOPIC),
        "topicClusterList": ("-t", TOPIC),
        "topicList": (),
        "allocateMQ": ("-t", TOPIC, "-i", "10.0.0.1,10.0.0.2"),
        "queryMsgByKey": ("-t", TOPIC, "-k", "k1"),
        "queryMsgByUniqueKey": ("-t", TOPIC, "-i", message_id),
        "queryMsgByOffset": ("-t", TOPIC, "-b", broker_name, "-i", "0", "-o", "0"),
        "consumerProgress": ("-g", GROUP),
        "getConsumerConfig": ("-g", GROUP),
        "getBrokerConfig": ("-b", operator.broker),
        "brokerStatus": ("-b", operator.broker),
        "getNamesrvConfig": (),
        "updateTopicList": ("-b", operator.broker, "-f", str(topics)),
        "updateSubGroupList": ("-b", operator.broker, "-f", str(groups)),
    }
    printed = dict(zip(commands, operator.theirs(*((n, *o) for n, o in commands.items())), strict=True))
    found = {name: operator.ours(name, *options) for name, options in commands.items()}
    _check_places(printed, found)
    _check_messages(printed, found, message_id)
    _check_settings(printed, found)
    assert "AdminListed" in operator.ours("topicList")
    assert operator.ours("getConsumerConfig", "-g", "AdminListedGroup")[0]["config"]["retryMaxTimes"] == 5


def test_both_tools_say_the_same_about_a_controlled_group_whose_clients_are_online(tmp_path: Path) -> None:
    with GroupProcess(tmp_path / "group") as group:
        master = group.master().address
        operator = Operator(group.names.address, master, tmp_path / "home")
        with _online(operator):
            _compare_a_controlled_group(operator, group.controller.address)
            _compare_clients(operator)


@pytest.mark.parametrize("line", CLIENT_LINES)
def test_every_command_and_flag_of_mqadmin_is_there(tmp_path: Path, line: str) -> None:
    names = re.findall(r"^ {3}(\w+) ", mqadmin_each(None, [], home=tmp_path, line=line)[0], re.MULTILINE)
    assert len(names) > 50
    helps = mqadmin_each(None, *(["help", name] for name in names), home=tmp_path, line=line)
    for name, printed in zip(names, helps, strict=True):
        command = admin.commands[name]
        if command.hidden:
            continue
        ours = {option for parameter in command.params for option in parameter.opts} | {"-h", "--help"}
        theirs = re.findall(r"^ +(?:(-\w+),)?(--\w+)", printed, re.MULTILINE)
        missing = {flag for pair in theirs for flag in pair if flag} - ours - ELSEWHERE.get(name, set())
        assert not missing, (name, missing)


@contextmanager
def _online(operator: Operator) -> Generator[None]:
    """A producer and a consumer that are connected, after that one has read what the other sent."""
    names = operator.name_server
    operator.ours("updateTopic", "-c", CLUSTER, "-t", TOPIC, "-r", "1", "-w", "1")
    for group in COPIES:
        operator.ours("updateSubGroup", "-c", CLUSTER, "-g", group)

    def consumer() -> sync.Consumer:
        return sync.Consumer(group=GROUP, topics={TOPIC: "paid"}, namesrv=names, start=Start.FIRST)

    with sync.Producer(group=SHOP, namesrv=names) as producer:
        for _ in range(COUNT):
            producer.send(Message(TOPIC, b"...", tags="paid"))
        with consumer() as first:
            messages = iter(first)
            for _ in range(COUNT):
                next(messages)
        with consumer():
            yield


def _compare_a_controlled_group(operator: Operator, controller: str) -> None:
    """How it stands, with what one tool changed and the other shows."""
    broker, ours, theirs = ("-b", operator.broker), "OfOurs", "OfTheirs"
    change = ("updateBrokerConfig", *broker, "-k")
    put = ("updateKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k")
    order = ("updateOrderConf", "-m", "get", "-t")
    operator.ours(*change, "deleteWhen", "-v", "05")
    operator.ours(*put, ours, "-v", "broker-a:1")
    looks = {
        "haStatus": broker,
        "getSyncStateSet": ("-a", controller, "-b", NAME),
        "getBrokerEpoch": ("-b", NAME),
        "getControllerMetaData": ("-a", controller),
    }
    changes = ((*change, "fileReservedTime", "-v", "71"), (*put, theirs, "-v", "broker-a:2"))
    printed = operator.theirs(
        *((name, *options) for name, options in looks.items()),
        *changes,
        ("getBrokerConfig", *broker),
        (*order, ours),
    )
    assert "success" in printed[4]
    assert "success" in printed[5]
    assert _pairs(printed[6])["deleteWhen"] == "05"
    assert "orderConf=[broker-a:1]" in printed[7]
    (settings,) = operator.ours("getBrokerConfig", *broker).values()
    assert settings["fileReservedTime"] == "71"
    assert operator.ours(*order, theirs)["orderConf"] == "broker-a:2"

    status, in_step, epochs, leader = (operator.ours(name, *options) for name, options in looks.items())
    told = status["haStatus"]
    (slave,) = told["haConnectionInfo"]
    facts = _facts(printed[0])
    assert facts["MasterCommitLogMaxOffset"] == str(told["masterCommitLogMaxOffset"])
    assert facts["InSyncSlaveNum"] == str(told["inSyncSlaveNums"]) == "1"
    (row,) = _rows(printed[0])
    assert (row[:3], row[4]) == ([slave["addr"], str(slave["slaveAckOffset"]), str(slave["diff"])], "OK")

    members, facts = in_step[NAME], _facts(printed[1])
    for name, value in (
        ("MasterBrokerId", members["masterBrokerId"]),
        ("MasterAddr", members["masterAddress"]),
        ("MasterEpoch", members["masterEpoch"]),
        ("SyncStateSetEpoch", members["syncStateSetEpoch"]),
        ("SyncStateSetNums", len(members["inSyncReplicas"])),
    ):
        assert facts[name] == str(value)
    found = re.findall(r"InSyncReplica:.*brokerId=(\d+), brokerAddress='([^']+)', alive=true", printed[1])
    assert sorted(found) == sorted(
        (str(each["brokerId"]), each["brokerAddress"]) for each in members["inSyncReplicas"]
    )

    logs = re.findall(
        r"#brokerAddr\s+(\S+)\s+#brokerId\s+(\d+)\s+#Epoch: EpochEntry{epoch=(\d+), startOffset=(\d+),",
        printed[2],
    )
    figures = ("addr", "brokerId", "epoch", "startOffset")
    assert sorted(logs) == sorted(tuple(str(each[name]) for name in figures) for each in epochs)
    assert len(logs) == 2

    facts = _facts(printed[3])
    assert (facts["ControllerGroup"], facts["ControllerLeaderId"]) == (
        leader["group"],
        leader["controllerLeaderId"],
    )
    assert facts["ControllerLeaderAddress"] == leader["controllerLeaderAddress"] == controller
    assert facts["Peer"] == leader["peers"].rstrip(";")


def _compare_clients(operator: Operator) -> None:
    """Who is connected, what they read, and groups that one tool puts elsewhere and the other finds there."""
    clone = ("cloneGroupOffset", "-s", GROUP, "-t", TOPIC, "-o", "true", "-d")
    operator.ours(*clone, COPIES[0])
    looks = {
        "consumerConnection": ("-g", GROUP),
        "producerConnection": ("-g", SHOP, "-t", TOPIC),
        "queryCq": ("-t", TOPIC, "-q", "0", "-i", "1", "-c", "2", "-b", operator.broker),
        "statsAll": ("-t", TOPIC),
    }

    def figures() -> list[list[str]]:
        names = ("topic", "consumerGroup", "accumulation", "in24Hours", "out24Hours")
        return sorted([str(row[name]) for name in names] for row in operator.ours("statsAll", "-t", TOPIC))

    # Brokers count what came every ten seconds.
    wait_until(lambda: [TOPIC, GROUP, "0", str(COUNT), str(COUNT)] in figures())
    counted = figures()
    printed = operator.theirs(
        *((name, *options) for name, options in looks.items()),
        ("brokerConsumeStats", "-b", operator.broker),
        (*clone, COPIES[1]),
    )
    consumers, producers, entries = (operator.ours(name, *looks[name]) for name in list(looks)[:3])
    (member,) = consumers["connectionSet"]
    assert [member["clientId"], member["clientAddr"], member["language"]] in [
        line[:3] for line in _rows(printed[0])
    ]
    wanted = {topic: each["subString"] for topic, each in consumers["subscriptionTable"].items()}
    assert wanted.items() <= {line[0]: line[1] for line in _rows(printed[0]) if len(line) == 2}.items()
    assert _pairs(printed[0], ":") == {
        "ConsumeType": consumers["consumeType"],
        "MessageModel": consumers["messageModel"],
        "ConsumeFromWhere": consumers["consumeFromWhere"],
    }
    (shop,) = producers
    assert [shop["clientId"], shop["clientAddr"], shop["language"]] in [
        line[1:4] for line in _rows(printed[1])
    ]
    places = re.findall(r"physicOffset=(\d+), physicSize=(\d+), tagsCode=(-?\d+)", printed[2])
    names = ("physicOffset", "physicSize", "tagsCode")
    assert places == [tuple(str(each[name]) for name in names) for each in entries["queueData"]]
    assert f"max: {entries['maxQueueIndex']}, min: {entries['minQueueIndex']}" in printed[2]
    assert sorted([*line[:3], *line[5:7]] for line in _rows(printed[3])) == counted
    assert any({TOPIC, COPIES[0], str(COUNT)} <= set(line) for line in _rows(printed[4])), printed[4]
    assert "success" in printed[5]
    stands = operator.ours("brokerConsumeStats", "-b", operator.broker)["queues"]
    assert {
        each["group"]: each["consumerOffset"] for each in stands if each["topic"] == TOPIC
    } == dict.fromkeys((GROUP, *COPIES), COUNT)


def _facts(printed: str) -> dict[str, str]:
    """``#name  value`` of each line that is so."""
    return dict(re.findall(r"^#(\w+):?\t(\S+)$", printed, re.MULTILINE))


def _prepare(operator: Operator) -> tuple[str, str]:
    """A topic with messages, a group that has read them; the broker's name and an id of a message."""
    operator.ours("updateTopic", "-c", CLUSTER, "-t", TOPIC, "-r", "2", "-w", "2")
    wait_until(lambda: TOPIC in operator.ours("topicList"))
    operator.ours("updateSubGroup", "-c", CLUSTER, "-g", GROUP, "-r", "7")
    name = operator.ours("clusterList")[0]["brokerName"]
    sent = [
        operator.ours("sendMessage", "-t", TOPIC, "-p", f"body {n}", "-k", "k1", "-b", name, "-i", str(n % 2))
        for n in range(COUNT)
    ]
    operator.consume()
    wait_until(lambda: operator.ours("consumerProgress", "-g", GROUP)["diffTotal"] == 0)
    # Brokers count a second later what has come.
    wait_until(lambda: operator.in_total_today() >= COUNT)
    return name, sent[0]["sent"][0]["messageId"]


def _check_places(printed: dict[str, str], found: dict[str, Any]) -> None:
    cluster_rows = _rows(printed["clusterList"])
    for row in found["clusterList"]:
        words = (row["clusterName"], row["brokerName"], str(row["brokerId"]), row["addr"], row["version"])
        assert any(tuple(line[:5]) == words for line in cluster_rows), (words, cluster_rows)
    route = json.loads(standard_json(printed["topicRoute"].encode()))
    for key, name in (
        ("queueDatas", "readQueueNums"),
        ("queueDatas", "perm"),
        ("brokerDatas", "brokerAddrs"),
    ):
        assert [each[name] for each in found["topicRoute"][key]] == [each[name] for each in route[key]]
    status = [line[:4] for line in _rows(printed["topicStatus"]) if line[0] != "Topic"]
    ours = [
        [row["brokerName"], str(row["queueId"]), str(row["minOffset"]), str(row["maxOffset"])]
        for row in found["topicStatus"]
    ]
    assert [line for line in status if line in ours] == ours
    assert found["topicClusterList"] == printed["topicClusterList"].split()
    # Commands that follow make topics: one by hand, one of retries because the tool itself pulls.
    made = {"AdminListed", "%RETRY%TOOLS_CONSUMER"}
    assert set(printed["topicList"].split()) | made == set(found["topicList"]) | made
    # Theirs shares the queues in the order of a set, which is nobody's.
    shares = [json.loads(printed["allocateMQ"])["result"], found["allocateMQ"]["result"]]
    sizes, queues = zip(*(_shared(share) for share in shares), strict=True)
    assert sizes[0] == sizes[1]
    assert queues[0] == queues[1]


def _check_messages(printed: dict[str, str], found: dict[str, Any], message_id: str) -> None:
    theirs = sorted(line[:3] for line in _rows(printed["queryMsgByKey"]))
    ours = sorted(
        [row["messageId"], str(row["queueId"]), str(row["queueOffset"])] for row in found["queryMsgByKey"]
    )
    assert ours == theirs
    assert len(ours) == COUNT
    for name in ("queryMsgByUniqueKey", "queryMsgByOffset"):
        message = found[name][0]["message"]
        text = printed[name]
        assert message["messageId"] == message_id
        told = dict(re.findall(r"^(\w[\w ]*?):\s+(.*)$", text, re.MULTILINE))
        assert told["Queue ID"].strip() == str(message["queueId"])
        assert told["Queue Offset"].strip() == str(message["queueOffset"])
        assert told["CommitLog Offset"].strip() == str(message["logOffset"])
        assert told["Store Host"].strip() == message["storeHost"]
        assert told.get("OffsetID", message["offsetId"]).strip() == message["offsetId"]
        tracks = {(each["consumerGroup"], each["trackType"]) for each in found[name][0]["tracks"]}
        assert tracks == set(re.findall(r"consumerGroup=([^,]+), trackType=(\w+)", text))
        assert (GROUP, "NOT_ONLINE") in tracks
    progress = found["consumerProgress"]
    rows = [line for line in _rows(printed["consumerProgress"]) if line[0] == TOPIC]
    figures = ("topic", "brokerName", "queueId", "brokerOffset", "consumerOffset", "diff", "inflight")
    assert sorted(line[:7] for line in rows) == sorted(
        [str(row[name]) for name in figures] for row in progress["queues"] if row["topic"] == TOPIC
    )
    assert f"Diff Total: {progress['diffTotal']}" in printed["consumerProgress"]


def _check_settings(printed: dict[str, str], found: dict[str, Any]) -> None:
    config = found["getConsumerConfig"][0]["config"]
    assert _pairs(printed["getConsumerConfig"])["retryMaxTimes"] == str(config["retryMaxTimes"]) == "7"
    (settings,) = found["getBrokerConfig"].values()
    theirs = _pairs(printed["getBrokerConfig"])
    assert theirs["brokerName"] == settings["brokerName"]
    assert len(settings.keys() & theirs.keys()) > 50
    assert all(theirs[key] == value.strip() for key, value in settings.items() if key in theirs)
    (figures,) = found["brokerStatus"].values()
    told = _pairs(printed["brokerStatus"], ":")
    assert told.keys() <= figures.keys()
    for key in ("brokerVersionDesc", "bootTimestamp", "msgPutTotalTodayNow", "commitLogMaxOffset"):
        assert told[key] == figures[key]
    (names,) = found["getNamesrvConfig"].values()
    namesrv = _pairs(printed["getNamesrvConfig"])
    assert {key: namesrv[key] for key in names if key in namesrv} == {
        key: value for key, value in names.items() if key in namesrv
    }
    assert namesrv


def _rows(printed: str) -> list[list[str]]:
    """The lines of a table without its heading."""
    return [line.split() for line in printed.splitlines() if line.strip() and not line.startswith("#")]


def _pairs(printed: str, separator: str = "=") -> dict[str, str]:
    """``key = value`` of each line that has one."""
    found = re.findall(rf"^(\w+)\s*{separator}\s?(.*)$", printed, re.MULTILINE)
    return {key: value.strip() for key, value in found}


def _shared(shares: dict[str, list[dict[str, Any]]]) -> tuple[dict[str, int], list[str]]:
    sizes = {client: len(queues) for client, queues in shares.items()}
    return sizes, sorted(json.dumps(queue, sort_keys=True) for queues in shares.values() for queue in queues)
