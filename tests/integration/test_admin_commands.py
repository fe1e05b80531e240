"""Commands of ``tanist admin`` against one broker with a producer and a consumer that are online.

Each tells what it found as JSON, and what it changes is looked for at the broker or the name server.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from tanist.cli.exit_codes import Exit, exit_code_of
from tanist.cli.main import tanist
from tanist.errors import MQError
from tanist.sync import Consumer, Message, Producer, Start
from tanist.testing import EmbeddedBroker
from tests.support.site import wait_until

CLUSTER, TOPIC, GROUP, SHOP = "DefaultCluster", "Orders", "billing", "shop"
TAGS = ("paid", "paid", "sent", None)


class Scene(NamedTuple):
    """The broker, and the ids that the shop's messages got, the first in queue 0."""

    broker: EmbeddedBroker
    message_ids: list[str]

    def runs(self, *words: str) -> Result:
        return CliRunner().invoke(tanist, ["admin", *words, "-n", self.broker.namesrv])

    def asks(self, *words: str) -> Any:
        """What a command says as JSON; it has to end with 0, and to have something for people too."""
        done = self.runs(*words, "--json")
        assert done.exit_code == Exit.DONE, f"{words}: {done.output} {done.exception!r}"
        return json.loads(done.stdout)

    def reads(self, *words: str) -> str:
        """What a command prints for people."""
        done = self.runs(*words)
        assert done.exit_code == Exit.DONE, f"{words}: {done.output} {done.exception!r}"
        return done.output

    def orders(self, *words: str) -> None:
        """Have the broker do something; it says that it did."""
        address = self.broker.address
        assert self.asks(*words) == [{"brokerAddr": address, "isDone": True}]

    def refuses(self, *words: str) -> tuple[int, str]:
        """The exit code of what is not done, and why."""
        done = self.runs(*words)
        if isinstance(done.exception, MQError):
            return exit_code_of(done.exception), str(done.exception)
        return done.exit_code, done.output


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with (
        EmbeddedBroker(topics={TOPIC: 1, "RMQ_SYS_TRACE_TOPIC": 1}) as broker,
        Producer(group=SHOP, namesrv=broker.namesrv, trace=True) as shop,
    ):
        sent = [shop.send(Message(TOPIC, f"body {n}".encode(), tags=tag)) for n, tag in enumerate(TAGS)]
        with billing(broker) as consumer:
            messages = iter(consumer)
            assert [next(messages).body for _ in TAGS] == [b"body 0", b"body 1", b"body 2", b"body 3"]
        # Who left has said where it stands; who is there now only listens.
        with billing(broker):
            scene = Scene(broker, [each.message_id for each in sent])
            # A producer tells of itself beside its sends, not before them.
            wait_until(
                lambda: scene.runs("producerConnection", "-g", SHOP, "-t", TOPIC).exit_code == Exit.DONE
            )
            yield scene


def billing(broker: EmbeddedBroker) -> Consumer:
    return Consumer(group=GROUP, topics={TOPIC: "*"}, namesrv=broker.namesrv, start=Start.FIRST)


def test_members_of_groups_are_shown(scene: Scene) -> None:
    found = scene.asks("consumerConnection", "-g", GROUP)
    assert found["subscriptionTable"][TOPIC]["subString"] == "*"
    assert found["messageModel"] == "CLUSTERING"
    (client,) = [each["clientId"] for each in found["connectionSet"]]
    assert [each["clientId"] for each in scene.asks("producerConnection", "-g", SHOP, "-t", TOPIC)] != [
        client
    ]
    listed = scene.asks("producer", "-b", scene.broker.address)
    assert SHOP in {each["producerGroup"] for each in listed}
    assert all(each["lastSeenAtMs"] > 0 for each in listed)
    (running,) = scene.asks("consumerStatus", "-g", GROUP, "-i", client)
    assert running["clientId"] == client
    assert "failure" not in running
    for words in (
        ("consumerConnection", "-g", GROUP, "-b", scene.broker.address),
        ("consumerStatus", "-g", GROUP),
    ):
        assert client in scene.reads(*words).replace("\n", "")
    assert f"{TOPIC}: * (TAG)" in scene.reads("consumerConnection", "-g", GROUP)
    for words in (("consumerConnection", "-g", "nobody"), ("consumerStatus", "-g", "nobody")):
        code, why = scene.refuses(*words)
        assert (code, "nobody" in why) == (Exit.NOT_FOUND, True)
    assert scene.refuses("producerConnection", "-g", "nobody", "-t", TOPIC)[0] == Exit.NOT_FOUND


def test_figures_of_topics_and_groups_are_shown(scene: Scene) -> None:
    assert (GROUP, 0) in {
        (each.get("consumerGroup"), each["accumulation"]) for each in scene.asks("statsAll", "-t", TOPIC)
    }
    (behind,) = [each for each in _behind(scene) if (each["topic"], each["group"]) == (TOPIC, GROUP)]
    assert (behind["queueId"], behind["brokerOffset"], behind["consumerOffset"], behind["diff"]) == (
        0,
        4,
        4,
        0,
    )
    assert "diff total: 0" in scene.reads("brokerConsumeStats", "-b", scene.broker.address)
    assert _behind(scene, "-l", "1000") == []


def test_a_message_is_traced_from_who_sent_it(scene: Scene) -> None:
    words = ("queryMsgTraceById", "-i", scene.message_ids[0])

    def is_told() -> bool:
        return scene.runs(*words).exit_code == Exit.DONE

    wait_until(is_told)
    (found,) = [each for each in scene.asks(*words) if each["kind"] == "Send"]
    assert (found["trace"]["group"], found["trace"]["is_ok"]) == (SHOP, True)
    assert f"Send {SHOP}" in scene.reads(*words)
    assert scene.refuses("queryMsgTraceById", "-i", "nothing")[0] == Exit.NOT_FOUND


def test_messages_are_read_from_queues_without_moving_anybody(scene: Scene) -> None:
    name = scene.broker.broker_name
    place = ("-t", TOPIC, "-a", name, "-i", "0")
    before = _behind(scene)

    def bodies(*words: str) -> list[str]:
        return [each["body"] for each in scene.asks(*words)]

    assert bodies("printMsg", "-t", TOPIC) == [f"body {n}" for n in range(4)]
    assert bodies("printMsg", "-t", TOPIC, "-s", "paid") == ["body 0", "body 1"]
    assert bodies("printMsg", "-t", TOPIC, "-e", "1000") == []
    assert "body 0" not in scene.reads("printMsg", "-t", TOPIC, "-d", "false")
    assert bodies("printMsgByQueue", *place, "-s", "sent") == ["body 2"]
    assert scene.reads("printMsgByQueue", *place) == "4 messages\n"
    assert "body 3" in scene.reads("printMsgByQueue", *place, "-p", "true", "-d", "true")
    tags = scene.asks("printMsgByQueue", *place, "-f", "true")
    assert {each.get("tag"): each["count"] for each in tags} == {"paid": 2, "sent": 1, None: 1}
    assert bodies("consumeMessage", "-t", TOPIC, "-b", name, "-i", "0", "-o", "1", "-c", "2") == [
        "body 1",
        "body 2",
    ]
    assert bodies("consumeMessage", "-t", TOPIC, "-g", GROUP) == [f"body {n}" for n in range(4)]
    assert scene.refuses("consumeMessage", "-t", TOPIC, "-b", name, "-i", "7")[0] == Exit.NOT_FOUND
    assert _behind(scene) == before


def test_entries_of_a_consume_queue_say_where_messages_lie(scene: Scene) -> None:
    place = ("-t", TOPIC, "-q", "0", "-b", scene.broker.address)
    found = scene.asks("queryCq", *place, "-i", "1", "-c", "2", "-g", GROUP)
    assert (found["minQueueIndex"], found["maxQueueIndex"]) == (0, 4)
    offsets = [each["physicOffset"] for each in found["queueData"]]
    assert len(offsets) == 2
    assert offsets == sorted(offsets)
    assert found["subscriptionData"]["subString"] == "*"
    assert "the queue holds [0, 4)" in scene.reads("queryCq", *place, "-i", "0")


@pytest.mark.parametrize(
    ("words", "topic"),
    [
        (("sendMsgStatus", "-b", "embedded", "-c", "3", "-s", "7"), "embedded"),
        (("checkMsgSendRT", "-t", "Timed", "-a", "3", "-s", "7"), "Timed"),
    ],
    ids=["sendMsgStatus", "checkMsgSendRT"],
)
def test_messages_are_sent_to_see_how_long_it_takes(words: tuple[str, ...], topic: str, scene: Scene) -> None:
    scene.orders("updateTopic", "-b", scene.broker.address, "-t", "Timed", "-r", "1", "-w", "1")
    found = scene.asks(*words)
    assert [(each["isSent"], each["brokerName"]) for each in found["sent"]] == [(True, "embedded")] * 3
    assert found["averageMs"] > 0
    assert [each["bodyBytes"] for each in scene.asks("printMsg", "-t", topic)] == [7, 7, 7]
    assert "sent 3 of 3" in scene.reads(*words)


def test_every_master_is_timed_and_one_that_is_not_there_is_told(scene: Scene) -> None:
    (row,) = scene.asks("clusterRT", "-a", "2", "-s", "7", "-c", CLUSTER)
    assert (row["brokerName"], row["successCount"], row["failCount"]) == ("embedded", 2, 0)
    assert "no master is registered there" in scene.reads("clusterRT", "-c", "Elsewhere")
    scene.orders("updateTopic", "-b", scene.broker.address, "-t", "ReadOnly", "-p", "4")
    failed = scene.runs("checkMsgSendRT", "-t", "ReadOnly", "-a", "1", "--json")
    assert failed.exit_code == Exit.FAILED
    assert [each["isSent"] for each in json.loads(failed.stdout)["sent"]] == [False]


def test_a_topics_permission_is_changed_at_the_broker_and_in_routes(scene: Scene) -> None:
    address = scene.broker.address
    scene.orders("updateTopic", "-b", address, "-t", "Kept", "-r", "2", "-w", "2")
    scene.orders("updateTopicPerm", "-b", address, "-t", "Kept", "-p", "4")

    def offers() -> list[tuple[int, int]]:
        route = scene.asks("topicRoute", "-t", "Kept")
        return [(each["perm"], each["writeQueueNums"]) for each in route["queueDatas"]]

    wait_until(lambda: offers() == [(4, 2)])
    code, why = scene.refuses("updateTopicPerm", "-b", address, "-t", "Unknown", "-p", "4")
    assert (code, "Unknown" in why) == (Exit.NOT_FOUND, True)


def test_producers_are_kept_from_a_broker_and_let_back(scene: Scene) -> None:
    def permission() -> int:
        return scene.asks("topicRoute", "-t", TOPIC)["queueDatas"][0]["perm"]

    names, broker = scene.broker.namesrv, ("-b", scene.broker.broker_name)
    (wiped,) = scene.asks("wipeWritePerm", *broker)
    assert (wiped["namesrvAddr"], permission()) == (names, 4)
    (let_back,) = scene.asks("addWritePerm", *broker)
    assert (let_back, permission()) == (wiped, 6)
    assert wiped["topicCount"] > 0


def test_an_order_of_queues_is_put_shown_and_deleted(scene: Scene) -> None:
    names = scene.broker.namesrv
    words = ("updateOrderConf", "-t", "Ordered", "-m")
    assert scene.asks(*words, "put", "-v", "embedded:4") == [{"brokerAddr": names, "isDone": True}]
    assert scene.asks(*words, "get") == {"topic": "Ordered", "orderConf": "embedded:4"}
    assert scene.reads(*words, "delete") == f"{names}: the order of Ordered is deleted\n"
    assert scene.refuses(*words, "get")[0] == Exit.NOT_FOUND
    assert scene.refuses(*words, "put")[0] == Exit.FAILED


def test_a_value_at_the_name_server_is_set_and_deleted(scene: Scene) -> None:
    namespace, order = ("-s", "ORDER_TOPIC_CONFIG"), ("updateOrderConf", "-t", "Valued", "-m", "get")
    told = [{"brokerAddr": scene.broker.namesrv, "isDone": True}]
    assert scene.asks("updateKvConfig", *namespace, "-k", "Valued", "-v", "embedded:2") == told
    assert scene.asks(*order)["orderConf"] == "embedded:2"
    assert scene.asks("deleteKvConfig", *namespace, "-k", "Valued") == told
    assert scene.refuses(*order)[0] == Exit.NOT_FOUND


def test_settings_are_changed_while_a_broker_and_a_name_server_run(scene: Scene) -> None:
    address, names = scene.broker.address, scene.broker.namesrv
    scene.orders("updateBrokerConfig", "-b", address, "-k", "fileReservedTime", "-v", "71")
    assert scene.asks("getBrokerConfig", "-b", address)[address]["fileReservedTime"] == "71"
    code, why = scene.refuses("updateBrokerConfig", "-b", address, "-k", "storePathRootDir", "-v", "/tmp/x")
    assert code != Exit.DONE
    assert "storePathRootDir" in why
    told = [{"brokerAddr": names, "isDone": True}]
    assert scene.asks("updateNamesrvConfig", "-k", "returnOrderTopicConfigToBroker", "-v", "false") == told
    settings = scene.asks("getNamesrvConfig")[names]
    assert settings["returnOrderTopicConfigToBroker"] == "false"


def test_a_group_is_put_where_another_stands(scene: Scene) -> None:
    words = ("cloneGroupOffset", "-s", GROUP, "-d", "copied", "-t", TOPIC, "-o", "true")
    code, why = scene.refuses(*words)
    assert (code, "group copied does not exist" in why) == (Exit.NOT_FOUND, True)
    scene.orders("updateSubGroup", "-b", scene.broker.address, "-g", "copied")
    scene.orders(*words)
    stands = {each["group"]: each["consumerOffset"] for each in _behind(scene) if each["topic"] == TOPIC}
    assert stands["copied"] == stands[GROUP]
    assert scene.reads(*words) == f"{scene.broker.address}: copied stands where {GROUP} does in {TOPIC}\n"


def test_exports_write_what_they_print(scene: Scene, tmp_path: Path) -> None:

    def exported(*words: str, name: str) -> Any:
        to = ("-f", str(tmp_path))
        found = scene.asks(*words, *to)
        assert json.loads((tmp_path / name).read_text()) == found
        assert scene.reads(*words, *to) == f"written to {tmp_path / name}\n"
        return found

    metadata = exported("exportMetadata", "-c", CLUSTER, name="metadata.json")
    assert metadata["topicConfigTable"][TOPIC]["readQueueNums"] == 1
    assert not [name for name in metadata["topicConfigTable"] if name.startswith(("%RETRY%", "RMQ_SYS_"))]
    assert set(metadata["subscriptionGroupTable"]) >= {GROUP}
    special = exported("exportMetadata", "-b", scene.broker.address, "-t", "-s", name="metadata.json")
    assert f"%RETRY%{GROUP}" in special["topicConfigTable"]
    assert "subscriptionGroupTable" not in special
    configs = exported("exportConfigs", "-c", CLUSTER, name="configs.json")
    assert configs["clusterScale"] == {"namesrvSize": 1, "masterBrokerSize": 1, "slaveBrokerSize": 0}
    assert configs["brokerConfigs"]["embedded"]["brokerClusterName"] == CLUSTER
    metrics = exported("exportMetrics", "-c", CLUSTER, name="metrics.json")
    assert list(metrics["evaluateReport"]) == [scene.broker.address]
    assert metrics["totalData"]["totalTodayNum"] >= len(TAGS)


@pytest.mark.parametrize(
    "words",
    [
        ("setConsumeMode", "-g", GROUP, "-t", TOPIC, "-m", "POP"),
        ("resetMasterFlushOffset", "-o", "1"),
        ("getColdDataFlowCtrInfo",),
        ("updateColdDataFlowCtrGroupConfig", "-g", GROUP, "-v", "1"),
        ("removeColdDataFlowCtrGroupConfig", "-g", GROUP),
        ("setCommitLogReadAheadMode", "-m", "1"),
        ("createUser", "-u", "al", "-p", "pw"),
        ("getUser", "-u", "al"),
        ("listUser",),
        ("createAcl", "-s", "User:al", "-r", "Topic:a", "-a", "Pub", "-d", "Allow"),
        ("listAcl",),
        ("updateAclConfig", "-a", "al", "-s", "secret12"),
        ("updateGlobalWhiteAddr", "-g", "10.0.0.1"),
        ("clusterAclConfigVersion",),
    ],
    ids=lambda words: words[0],
)
def test_a_broker_of_ours_refuses_what_it_has_not(words: tuple[str, ...], scene: Scene) -> None:
    code, why = scene.refuses(*words, "-b", scene.broker.address)
    assert code == Exit.NOT_SUPPORTED, why


def _behind(scene: Scene, *options: str) -> list[dict[str, Any]]:
    return scene.asks("brokerConsumeStats", "-b", scene.broker.address, *options)["queues"]
