"""The topics that every broker has from its first start, with RocketMQ's names and sizes.

Some of them serve features of RocketMQ that Tanist lacks. They are there all the same, so that a store
and a table that go from one to the other mean the same on both sides.
"""

from tanist.broker.settings import BrokerSettings
from tanist.model.topics import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    CHECK_MAX_TIME_TOPIC,
    HALF_OP_TOPIC,
    HALF_TOPIC,
    INHERIT,
    OFFSET_MOVED_TOPIC,
    READ,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYSTEM_PREFIX,
    SYSTEM_TOPICS,
    TIMER_TOPIC,
    TRACE_TOPIC,
    WRITE,
    WRITES_TOPIC,
    TopicConfig,
    reply_topic,
)

_CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"

_SCHEDULE_QUEUES = 18
_BENCHMARK_QUEUES = 1024
_CLUSTER_QUEUES = 16
_REVIVE_QUEUES = 8

_READ_WRITE = READ | WRITE
_TEMPLATE = READ | WRITE | INHERIT

_NOT_FOR_SENDS = frozenset(
    {
        SCHEDULE_TOPIC,
        TIMER_TOPIC,
        HALF_TOPIC,
        HALF_OP_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        WRITES_TOPIC,
    }
)


def system_topics(settings: BrokerSettings) -> list[TopicConfig]:
    """The topics a broker makes at its first start, as RocketMQ's TopicConfigManager does."""
    cluster, broker = settings.broker_cluster_name, settings.broker_name
    topics = [
        _topic(SELF_TEST_TOPIC, 1),
        _topic(BENCHMARK_TOPIC, _BENCHMARK_QUEUES),
        _topic(cluster, _CLUSTER_QUEUES, _TEMPLATE),
        _topic(broker, 1, _TEMPLATE),
        _topic(OFFSET_MOVED_TOPIC, 1),
        _topic(SCHEDULE_TOPIC, _SCHEDULE_QUEUES),
        _topic(reply_topic(cluster), 1),
        _topic(f"{SYSTEM_PREFIX}REVIVE_LOG_{cluster}", _REVIVE_QUEUES),
        _topic(f"{SYSTEM_PREFIX}SYNC_BROKER_MEMBER_{broker}", 1, INHERIT),
        _topic(HALF_TOPIC, 1),
        _topic(HALF_OP_TOPIC, 1),
    ]
    if settings.timer_wheel_enable:
        topics.append(_topic(TIMER_TOPIC, 1))
    if settings.trace_topic_enable:
        topics.append(_topic(settings.msg_trace_topic_name, 1))
    if settings.auto_create_topic_enable:
        topics.append(_topic(AUTO_CREATE_TOPIC, settings.default_topic_queue_nums, _TEMPLATE))
    return topics


def system_topic_names(settings: BrokerSettings) -> frozenset[str]:
    """Every name that operators can not create, change or delete, whether the topic is there or not."""
    made = (topic.topic_name for topic in system_topics(settings))
    return SYSTEM_TOPICS.union(made, {TRACE_TOPIC, _CHECKPOINT_TOPIC})


def is_open_to_sends(topic: str) -> bool:
    """Whether clients may send to a topic: false for those in which the broker keeps its own messages."""
    return topic not in _NOT_FOR_SENDS


def _topic(name: str, queue_count: int, perm: int = _READ_WRITE) -> TopicConfig:
    return TopicConfig(
        topic_name=name, read_queue_count=queue_count, write_queue_count=queue_count, perm=perm
    )
