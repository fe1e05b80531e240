"""What requests and replies carry."""

from typing import Any

import pytest

from tanist.client.errors import InvalidArgument
from tanist.client.received import ReceivedMessage, decode_message
from tanist.client.requests.replies import make_reply, read_reply, reply_topics, request_properties
from tanist.client.session.routes import TopicRoute
from tanist.errors import RemoteProtocolError
from tanist.model.message import SysFlag
from tanist.model.route import BrokerData, TopicRouteData
from tanist.protocol import Command, RequestCode
from tanist.protocol.compression import Compression, compress_body
from tests.support.questions import record_of

REQUEST = {"CORRELATION_ID": "c-1", "REPLY_TO_CLIENT": "10.0.0.5@7", "TTL": "3000", "CLUSTER": "Main"}


def received(**properties: str) -> ReceivedMessage:
    return decode_message(record_of(properties=properties), broker_name="broker-a")


def pushed(body: bytes = b"yes", **fields: str) -> Command:
    """A reply as a broker pushes it."""
    ext = {
        "producerGroup": "R",
        "topic": "Main_REPLY_TOPIC",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": "1700000000000",
        "flag": "0",
        "properties": "CORRELATION_ID\1c-1\2own\1text",
        "reconsumeTimes": "0",
        "unitMode": "false",
        "bornHost": "10.0.0.9:4711",
        "storeHost": "10.0.0.7:10911",
        "storeTimestamp": "1700000000001",
        **fields,
    }
    return Command.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, ext=ext, body=body)


def test_a_request_says_who_waits_for_its_reply_and_how_long() -> None:
    assert request_properties(correlation_id="c-1", client_id="10.0.0.5@7", timeout_s=1.5) == {
        "CORRELATION_ID": "c-1",
        "REPLY_TO_CLIENT": "10.0.0.5@7",
        "TTL": "1500",
    }


def test_a_reply_goes_to_the_topic_of_the_request_s_cluster_and_carries_its_id() -> None:
    reply = make_reply(received(**REQUEST), b"yes", {"own": "text"})
    assert reply.message.topic == "Main_REPLY_TOPIC"
    assert reply.message.body == b"yes"
    assert reply.message.properties == {"own": "text"}
    assert reply.broker_name == "broker-a"
    assert reply.extra == {
        "MSG_TYPE": "reply",
        "CORRELATION_ID": "c-1",
        "REPLY_TO_CLIENT": "10.0.0.5@7",
        "TTL": "3000",
    }


@pytest.mark.parametrize("missing", ["CORRELATION_ID", "REPLY_TO_CLIENT", "CLUSTER"])
def test_only_a_request_can_be_replied_to(missing: str) -> None:
    properties = {name: value for name, value in REQUEST.items() if name != missing}
    with pytest.raises(InvalidArgument, match=f"no property {missing}") as refused:
        make_reply(received(**properties), b"yes", None)
    assert refused.value.argument == "received"


@pytest.mark.parametrize(
    ("given", "body", "properties", "argument"),
    [
        (b"a request", b"yes", None, "received"),
        (None, b"", None, "body"),
        (None, "yes", None, "body"),
        (None, b"yes", {"TTL": "1"}, "properties['TTL']"),
        (None, b"yes", {"a": 1}, "properties['a']"),
    ],
)
def test_what_can_not_be_a_reply_is_refused(given: Any, body: Any, properties: Any, argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make_reply(given or received(**REQUEST), body, properties)
    assert refused.value.argument == argument


def test_a_pushed_reply_is_read_whole() -> None:
    correlation_id, reply = read_reply(pushed())
    assert correlation_id == "c-1"
    assert (reply.body, reply.topic, reply.properties["own"]) == (b"yes", "Main_REPLY_TOPIC", "text")
    assert reply.born_host == ("10.0.0.9", 4711)
    assert reply.store_host == ("10.0.0.7", 10911)
    assert (reply.born_timestamp_ms, reply.store_timestamp_ms) == (1700000000000, 1700000000001)


def test_a_compressed_reply_is_read_in_the_clear() -> None:
    flag = int(SysFlag.COMPRESSED) | Compression.ZLIB
    command = pushed(compress_body(b"large " * 1000, flag), sysFlag=str(flag))
    assert read_reply(command)[1].body == b"large " * 1000


def test_a_reply_whose_body_is_not_what_its_flag_says_is_none() -> None:
    with pytest.raises(RemoteProtocolError, match="zlib"):
        read_reply(pushed(b"plain", sysFlag="1"))


@pytest.mark.parametrize("address", ["/10.0.0.9:4711", "somewhere", ""])
def test_an_address_that_can_not_be_read_spoils_no_reply(address: str) -> None:
    _, reply = read_reply(pushed(bornHost=address, storeHost=address))
    assert (reply.body, reply.born_host) == (b"yes", ("0.0.0.0", 0))


def test_a_reply_that_names_no_request_is_nobody_s() -> None:
    assert read_reply(pushed(properties="own\1text"))[0] is None


def test_replies_come_through_every_cluster_of_a_topic() -> None:
    brokers = [
        BrokerData(cluster=cluster, broker_name=name, broker_addrs={})
        for cluster, name in [("B", "b-0"), ("A", "a-0"), ("A", "a-1")]
    ]
    route = TopicRoute("Orders", TopicRouteData(broker_datas=brokers))
    assert reply_topics(route) == ["A_REPLY_TOPIC", "B_REPLY_TOPIC"]
