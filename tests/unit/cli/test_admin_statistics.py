"""What ``tanist admin statsAll`` adds up from brokers that are played."""

import msgspec
import pytest

from tanist.cli.exit_codes import Exit
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.stats import BrokerStats, ConsumeStats, QueueConsumeStats, StatsWindow
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.messages import ViewBrokerStatsRequest
from tanist.protocol.java_json import ObjectKeyed
from tests.support.played_fleet import PlayedFleet

FIRST, SECOND = "10.0.0.1:10911", "10.0.0.2:10911"
COUNTED = {
    (FIRST, "TOPIC_PUT_NUMS", "Orders"): BrokerStats(
        minute=StatsWindow(sum=60, tps=1.0), hour=StatsWindow(sum=900), day=StatsWindow(sum=1_000)
    ),
    # It has not counted for an hour yet.
    (SECOND, "TOPIC_PUT_NUMS", "Orders"): BrokerStats(
        minute=StatsWindow(sum=30, tps=0.5), hour=StatsWindow(), day=StatsWindow()
    ),
    (FIRST, "GROUP_GET_NUMS", "Orders@billing"): BrokerStats(
        minute=StatsWindow(sum=6, tps=0.1), hour=StatsWindow(sum=7), day=StatsWindow()
    ),
}


def _counted(address: str, command: Command) -> Command:
    asked = command.header(ViewBrokerStatsRequest)
    found = COUNTED.get((address, asked.stats_name, asked.stats_key))
    if found is None:
        return command.reply(ResponseCode.SYSTEM_ERROR, remark="nothing was counted")
    return command.reply(body=encode_body(found))


def _behind(_address: str, command: Command) -> Command:
    queue = MessageQueue(topic="Orders", broker_name="any", queue_id=0)
    stats = QueueConsumeStats(broker_offset=QueueOffset(10), consumer_offset=QueueOffset(7))
    return command.reply(body=encode_body(ConsumeStats(offset_table=ObjectKeyed({queue: stats}))))


@pytest.fixture
def pairs() -> PlayedFleet:
    fleet = PlayedFleet({"broker-a": {0: FIRST}, "broker-b": {0: SECOND}})
    topics = b'{"topicList":["Orders","Quiet","%RETRY%billing"]}'
    fleet.answers = {
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: lambda _, command: command.reply(body=topics),
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: lambda _, command: command.reply(
            body=b'{"groupList":["billing"]}' if command.ext["topic"] == "Orders" else b'{"groupList":[]}'
        ),
        RequestCode.VIEW_BROKER_STATS_DATA: _counted,
        RequestCode.GET_CONSUME_STATS: _behind,
    }
    return fleet


def test_figures_of_all_brokers_are_added_up_by_topic_and_group(
    pairs: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = pairs.runs(monkeypatch, "statsAll", "--json")
    assert shown.exit_code == Exit.DONE, shown.output
    orders, quiet = msgspec.json.decode(shown.stdout)
    assert orders == {
        "topic": "Orders",
        "consumerGroup": "billing",
        "accumulation": 6,
        "inTps": 1.5,
        "outTps": 0.1,
        "in24Hours": 1_030,
        "out24Hours": 7,
    }
    assert (quiet["topic"], quiet["in24Hours"], "consumerGroup" in quiet) == ("Quiet", 0, False)


def test_a_topic_to_which_nothing_comes_is_left_out_if_that_is_wished(
    pairs: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    active = pairs.runs(monkeypatch, "statsAll", "-a", "--json")
    assert [each["topic"] for each in msgspec.json.decode(active.stdout)] == ["Orders"]
    assert "no topic" in pairs.runs(monkeypatch, "statsAll", "-t", "Unknown").output
