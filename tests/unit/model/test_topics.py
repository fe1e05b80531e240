"""Topics and their names."""

import msgspec
import pytest

from tanist.model.topics import (
    Permission,
    TopicConfig,
    dlq_topic,
    reply_topic,
    retry_topic,
)


def test_a_new_topic_has_sixteen_queues_and_may_be_read_and_written() -> None:
    topic = TopicConfig(topic_name="T")
    assert (topic.read_queue_count, topic.write_queue_count, topic.perm) == (16, 16, 6)
    assert topic.is_readable
    assert topic.is_writable


@pytest.mark.parametrize(
    ("perm", "is_readable", "is_writable"),
    [(0, False, False), (2, False, True), (4, True, False), (7, True, True), (8, False, False)],
)
def test_permission_bits_are_read_one_by_one(perm: int, is_readable: bool, is_writable: bool) -> None:
    topic = TopicConfig(topic_name="T", perm=perm)
    assert (topic.is_readable, topic.is_writable) == (is_readable, is_writable)


def test_a_topic_is_spelled_as_rocketmq_spells_it() -> None:
    topic = TopicConfig(topic_name="T", is_ordered=True, perm=int(Permission.READ))
    assert msgspec.json.decode(msgspec.json.encode(topic)) == {
        "topicName": "T",
        "readQueueNums": 16,
        "writeQueueNums": 16,
        "perm": 4,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": True,
        "attributes": {},
    }


def test_a_topic_of_rocketmq_4_has_no_attributes() -> None:
    assert msgspec.json.decode(b'{"topicName":"T"}', type=TopicConfig).attributes == {}


def test_names_are_made_of_groups_and_clusters() -> None:
    assert retry_topic("G") == "%RETRY%G"
    assert dlq_topic("G") == "%DLQ%G"
    assert reply_topic("C") == "C_REPLY_TOPIC"
