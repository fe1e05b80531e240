"""Writing JSON bodies."""

import json

import pytest

from tanist.errors import LocalProtocolError
from tanist.model.data_version import DataVersion
from tanist.model.groups import MessageModel
from tanist.model.route import BrokerData, MessageQueue
from tanist.protocol.bodies import ObjectKeyed, encode_body, join_tables
from tanist.protocol.bodies.client import AssignmentQuery
from tanist.protocol.bodies.tables import TopicList


def test_keys_are_sorted_and_quoted() -> None:
    broker = BrokerData(cluster="c", broker_name="b", broker_addrs={1: "y", 0: "x"})
    assert encode_body(broker) == b'{"brokerAddrs":{"0":"x","1":"y"},"brokerName":"b","cluster":"c"}'


def test_nulls_are_left_out_on_every_level() -> None:
    assert json.loads(encode_body([{"a": None, "b": {"c": None}}])) == [{"b": {}}]


def test_sets_are_sorted_lists_and_enums_are_names() -> None:
    assert encode_body(TopicList(topics=frozenset({"b", "a"}))) == b'{"topicList":["a","b"]}'
    query = AssignmentQuery(
        topic="T", consumer_group="G", client_id="c", message_model=MessageModel.BROADCASTING
    )
    assert json.loads(encode_body(query))["messageModel"] == "BROADCASTING"


def test_an_object_that_is_a_key_becomes_its_text() -> None:
    queue = MessageQueue(topic="T", broker_name="b", queue_id=0)
    table = ObjectKeyed({queue: DataVersion(counter=1)})
    assert json.loads(encode_body({"t": table})) == {
        "t": {'{"brokerName":"b","queueId":0,"topic":"T"}': {"counter": 1, "stateVersion": 0, "timestamp": 0}}
    }


def test_text_that_utf_8_cannot_carry_is_not_written() -> None:
    with pytest.raises(LocalProtocolError, match="UTF-8"):
        encode_body({"k": "\ud800"})


def test_a_table_can_be_encoded_in_pieces() -> None:
    queues = [MessageQueue(topic="T", broker_name="b", queue_id=number) for number in range(3)]
    whole = ObjectKeyed({queue: queue.queue_id for queue in queues})
    pieces = [encode_body(ObjectKeyed({queue: queue.queue_id})) for queue in queues]
    joined = encode_body({"table": join_tables([*pieces[:1], b"{}", *pieces[1:]])})
    assert joined == encode_body({"table": whole})
    assert encode_body(join_tables([])) == b"{}"
