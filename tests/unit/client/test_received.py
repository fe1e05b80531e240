"""Messages as consumers get them."""

import zlib

import pytest

from tanist.client.received import decode_messages
from tanist.errors import RemoteProtocolError
from tanist.model.message import Message
from tests.support.messages import make_message
from tests.support.received import QUEUE, record_of, records

RETRY_QUEUE = "%RETRY%billing"


def test_a_message_has_all_that_its_record_has() -> None:
    sent = make_message(3, tag="paid", keys="o-17 o-18", UNIQ_KEY="ID3", __SHARDINGKEY="c-5", colour="red")
    (message,) = decode_messages(record_of(sent, 3), QUEUE)
    assert (message.queue, message.queue_offset, message.log_offset) == (QUEUE, 3, 3000)
    assert (message.topic, message.body, message.flag) == (sent.topic, sent.body, 0)
    assert (message.tags, message.keys, message.sharding_key) == ("paid", ["o-17", "o-18"], "c-5")
    assert (message.message_id, message.offset_id) == ("ID3", "7F00000100002A9F0000000000000BB8")
    assert message.properties["colour"] == "red"
    assert message.store_timestamp_ms == 1_700_000_000_000
    assert message.store_host == ("127.0.0.1", 10911)
    assert message.born_host == ("127.0.0.1", 0)
    assert (message.born_timestamp_ms, message.reconsume_times) == (0, 0)
    assert message.stored_bytes == len(record_of(sent, 3))


def test_properties_say_the_same_whether_all_were_read_or_not() -> None:
    data = record_of(make_message(tag="a", keys="k l", UNIQ_KEY="ID", RETRY_TOPIC="Orders"), 0)
    (few,), (all_read,) = decode_messages(data, QUEUE), decode_messages(data, QUEUE)
    assert all_read.properties["TAGS"] == "a"
    for name in ("tags", "keys", "message_id", "topic", "sharding_key"):
        assert getattr(few, name) == getattr(all_read, name)


def test_a_message_without_tag_keys_and_id_has_none_and_goes_by_its_place() -> None:
    (message,) = decode_messages(record_of(make_message(), 1), QUEUE)
    assert (message.tags, message.keys, message.sharding_key) == (None, [], None)
    assert message.message_id == message.offset_id
    assert repr(message) == (f"<message {message.offset_id} topic=TopicA broker=broker-a queue=0 offset=1>")


def test_a_message_that_comes_again_has_the_topic_it_was_sent_to() -> None:
    (message,) = decode_messages(record_of(make_message(topic=RETRY_QUEUE, RETRY_TOPIC="Orders"), 0), QUEUE)
    assert message.topic == "Orders"


def test_a_compressed_body_comes_as_it_was() -> None:
    plain = b"again and " * 1000
    sent = Message(topic="T", queue_id=0, body=zlib.compress(plain), sys_flag=0x301)
    (message,) = decode_messages(record_of(sent, 0), QUEUE)
    assert message.body == plain


def test_several_messages_come_in_their_order_and_keep_nothing_of_the_answer() -> None:
    answer = bytearray(records(range(3)))
    messages = decode_messages(memoryview(answer), QUEUE)
    answer[:] = bytes(len(answer))
    assert [message.body for message in messages] == [b"message %d " % number for number in range(3)]
    assert decode_messages(b"", QUEUE) == []


@pytest.mark.parametrize(
    "data",
    [
        records([0])[:-1],
        records([0]) + b"\0",
        records([0]) + b"\0" * 200,
        record_of(Message(topic="T", queue_id=0, body=b"no zlib stream", sys_flag=1), 0),
    ],
    ids=["cut short", "a byte too many", "zeros behind", "no stream"],
)
def test_an_answer_that_is_not_whole_records_is_refused_and_not_passed_over(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_messages(data, QUEUE)
