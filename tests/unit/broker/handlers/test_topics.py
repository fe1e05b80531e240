import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tanist.broker.handlers.topics import routes
from tanist.broker.state import BrokerState
from tanist.model.data_version import DataVersion
from tanist.model.route import MessageQueue
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.stats import TopicStatsTable
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.bodies.tables import TopicList
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.headers.sync import GetTopicConfigPageRequest
from tanist.protocol.headers.topics import GetTopicConfigRequest, UpdateTopicRequest
from tests.support.broker_tables import Asker, open_state
from tests.support.clocks import FakeClock
from tests.support.messages import make_message

UPDATE = UpdateTopicRequest(
    topic="Orders",
    default_topic="TBW102",
    read_queue_count=4,
    write_queue_count=3,
    perm=6,
    topic_filter_type="SINGLE_TAG",
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def state(tmp_path: Path, clock: FakeClock) -> Iterator[BrokerState]:
    state = open_state(tmp_path, clock=clock)
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _update(broker: Asker, **changes: Any) -> Command:
    return broker.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, msgspec.structs.replace(UPDATE, **changes))


def _wire_header(answer: Command) -> dict[str, Any]:
    """The JSON header that the answer has on the wire."""
    frame = encode_command(answer)
    header_bytes = int.from_bytes(frame[5:8])
    return cast("dict[str, Any]", json.loads(frame[8 : 8 + header_bytes]))


# Creating and changing


def test_a_topic_is_created_as_asked(state: BrokerState, broker: Asker) -> None:
    answer = _update(broker, topic_sys_flag=1, is_ordered=True, attributes="+message.type=FIFO")
    assert answer.code == ResponseCode.SUCCESS
    assert state.topics.find("Orders") == TopicConfig(
        topic_name="Orders",
        read_queue_count=4,
        write_queue_count=3,
        perm=6,
        topic_sys_flag=1,
        is_ordered=True,
        attributes={"message.type": "FIFO"},
    )


def test_a_topic_is_changed_and_keeps_the_attributes_that_were_not_named(
    state: BrokerState, broker: Asker
) -> None:
    _update(broker, attributes="+message.type=FIFO")
    assert _update(broker, perm=4).code == ResponseCode.SUCCESS
    config = state.topics.find("Orders")
    assert config is not None
    assert (config.perm, config.attributes) == (4, {"message.type": "FIFO"})


@pytest.mark.parametrize("topic", ["", "a b", "../up", "x" * 128])
def test_a_bad_name_is_an_invalid_parameter(broker: Asker, topic: str) -> None:
    assert _update(broker, topic=topic).code == ResponseCode.INVALID_PARAMETER


@pytest.mark.parametrize("topic", ["TBW102", "DefaultCluster", "broker-a", "rmq_sys_mine"])
def test_a_system_topic_is_not_for_operators(state: BrokerState, broker: Asker, topic: str) -> None:
    table = state.topics.table
    assert _update(broker, topic=topic).code == ResponseCode.INVALID_PARAMETER
    deletion = broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=topic))
    assert deletion.code == ResponseCode.INVALID_PARAMETER
    assert state.topics.table is table


def test_what_new_topics_are_made_after_can_be_changed_where_that_is_allowed(
    state: BrokerState, broker: Asker
) -> None:
    refusal = _update(broker, topic="TBW102", perm=5)
    assert refusal.remark is not None
    assert refusal.remark.endswith("; validateSystemTopicWhenUpdateTopic=false lets it be changed")
    state.settings = msgspec.structs.replace(state.settings, validate_system_topic_when_update_topic=False)
    assert _update(broker, topic="TBW102", perm=5).code == ResponseCode.SUCCESS
    made = state.topics.create_for_send("New", default_topic="TBW102", queue_count=8)
    assert made is not None
    assert (made.read_queue_count, made.write_queue_count, made.perm) == (3, 3, 4)
    for topic in ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_mine"):
        assert _update(broker, topic=topic).code == ResponseCode.INVALID_PARAMETER


@pytest.mark.parametrize(
    "changes",
    [
        {"read_queue_count": -1},
        {"write_queue_count": 65537},
        {"perm": 16},
        {"perm": -1},
    ],
)
def test_numbers_that_make_no_topic_are_refused(
    state: BrokerState, broker: Asker, changes: dict[str, int]
) -> None:
    assert _update(broker, **changes).code == ResponseCode.INVALID_PARAMETER
    assert state.topics.find("Orders") is None


@pytest.mark.parametrize("changes", [{"topic_filter_type": "LOUD"}, {"attributes": "+foo=bar"}])
def test_words_nobody_knows_are_refused(state: BrokerState, broker: Asker, changes: dict[str, str]) -> None:
    answer = _update(broker, **changes)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark is not None
    assert state.topics.find("Orders") is None


# Deleting


def test_a_deleted_topic_takes_the_groups_offsets_along(state: BrokerState, broker: Asker) -> None:
    _update(broker)
    state.offsets.commit("G", "Orders", 0, 5)
    state.offsets.commit("G", "Other", 0, 6)
    answer = broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic="Orders"))
    assert answer.code == ResponseCode.SUCCESS
    assert state.topics.find("Orders") is None
    assert state.offsets.topics_of("G") == {"Other"}


def test_a_topic_that_is_made_again_has_none_of_the_old_messages(state: BrokerState, broker: Asker) -> None:
    _update(broker)
    for number in range(3):
        state.store.append(make_message(number, topic="Orders"))
    broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic="Orders"))
    _update(broker)
    answer = broker.ask(RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic="Orders"))
    stats = decode_java_json(answer.body, TopicStatsTable).offset_table
    queue = MessageQueue(topic="Orders", broker_name="broker-a", queue_id=0)
    assert (stats[queue].min_offset, stats[queue].max_offset) == (3, 3)


def test_deleting_a_topic_that_is_not_there_succeeds(broker: Asker) -> None:
    for topic in ("Orders", "a!b"):
        answer = broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=topic))
        assert answer.code == ResponseCode.SUCCESS


def test_a_deletion_without_a_name_is_refused(broker: Asker) -> None:
    answer = broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=" "))
    assert answer.code == ResponseCode.INVALID_PARAMETER


# All topics


@pytest.mark.behaviour("S1-22")
def test_the_answer_with_all_topics_has_no_remark_and_the_table_as_utf8(
    state: BrokerState, broker: Asker
) -> None:
    answer = broker.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    header = _wire_header(answer)
    assert header["code"] == 0
    assert header.get("remark") is None
    text = json.loads(bytes(answer.body).decode("utf-8"))
    assert text["topicConfigTable"] == msgspec.to_builtins(state.topics.table.topics)
    assert text["dataVersion"] == msgspec.to_builtins(state.topics.data_version)


def test_who_asks_for_a_page_gets_all_topics_and_no_total(state: BrokerState, broker: Asker) -> None:
    page = GetTopicConfigPageRequest(topic_seq=2, max_topic_count=3, data_version="{}")
    answer = broker.ask(RequestCode.GET_ALL_TOPIC_CONFIG, page)
    assert decode_java_json(answer.body, TopicConfigTable).topics == state.topics.table.topics
    assert answer.ext == {}


def test_the_mappings_have_the_same_version_in_every_answer(broker: Asker, clock: FakeClock) -> None:
    for _ in range(2):
        answer = broker.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
        assert decode_java_json(answer.body, TopicConfigTable).mapping_data_version == DataVersion()
        clock.advance_ms(10)


def test_a_broker_without_any_topic_says_so_and_logs_who_asked(
    state: BrokerState, broker: Asker, caplog: pytest.LogCaptureFixture
) -> None:
    state.topics.table = TopicConfigTable()
    answer = broker.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "No topic in this broker")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "127.0.0.1:5" in caplog.text


@pytest.mark.behaviour("S1-24")
def test_a_table_that_utf8_can_not_carry_is_answered_with_that(state: BrokerState, broker: Asker) -> None:
    odd = TopicConfig(topic_name="half a \ud83d sign")
    state.topics.table = TopicConfigTable(topics={odd.topic_name: odd})
    answer = broker.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark is not None
    assert answer.remark.startswith("UnsupportedEncodingException")
    assert _wire_header(answer)["remark"] == answer.remark


# One topic


def test_a_topics_settings_are_told(state: BrokerState, broker: Asker) -> None:
    _update(broker)
    answer = broker.ask(RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest(topic="Orders", is_logical=True))
    assert decode_java_json(answer.body, TopicConfig) == state.topics.find("Orders")


@pytest.mark.parametrize("code", [RequestCode.GET_TOPIC_CONFIG, RequestCode.GET_TOPIC_STATS_INFO])
def test_an_unknown_topic_does_not_exist(broker: Asker, code: RequestCode) -> None:
    assert broker.ask(code, TopicRequest(topic="Orders")).code == ResponseCode.TOPIC_NOT_EXIST


def test_the_stats_tell_bounds_and_last_time_of_every_queue(
    state: BrokerState, broker: Asker, clock: FakeClock
) -> None:
    _update(broker)
    for number in range(3):
        clock.advance_ms(100)
        state.store.append(make_message(number, topic="Orders", queue_id=1))
    state.store.dispatch()
    answer = broker.ask(RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic="Orders"))
    told = decode_java_json(answer.body, TopicStatsTable).offset_table
    queues = [MessageQueue(topic="Orders", broker_name="broker-a", queue_id=number) for number in range(4)]
    assert sorted(told) == queues
    assert [told[queue].max_offset for queue in queues] == [0, 3, 0, 0]
    assert [told[queue].min_offset for queue in queues] == [0, 0, 0, 0]
    assert [told[queue].last_update_timestamp_ms for queue in queues] == [0, clock.now_ms(), 0, 0]


def test_the_system_topics_are_listed(broker: Asker) -> None:
    answer = broker.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    listed = decode_java_json(answer.body, TopicList).topics
    assert {"TBW102", "broker-a", "DefaultCluster", "SCHEDULE_TOPIC_XXXX"} <= listed


def test_no_deletion_makes_a_long_line(broker: Asker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic="t" * 100_000))
    assert caplog.messages
    assert max(map(len, caplog.messages)) < 500


def _update_many(broker: Asker, *configs: dict[str, Any]) -> Command:
    body = json.dumps({"topicConfigList": configs}).encode()
    return broker.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)


def test_many_topics_are_made_in_one_request(broker: Asker, state: BrokerState) -> None:
    one = {
        "topicName": "One",
        "readQueueNums": 2,
        "writeQueueNums": 2,
        "attributes": {"+message.type": "FIFO"},
    }
    assert _update_many(broker, one, {"topicName": "Two"}).code == ResponseCode.SUCCESS
    found = state.topics.find("One")
    assert found is not None
    assert (found.read_queue_count, found.attributes) == (2, {"message.type": "FIFO"})
    assert state.topics.find("Two") is not None


def test_of_many_topics_none_is_made_if_one_is_wrong(broker: Asker, state: BrokerState) -> None:
    assert _update_many(broker, {"topicName": "One"}, {"topicName": "no name"}).code != ResponseCode.SUCCESS
    assert _update_many(broker).code == ResponseCode.INVALID_PARAMETER
    assert state.topics.find("One") is None
