"""Topics: their settings, their permission bits, and the names that mean something."""

from enum import IntFlag, StrEnum

import msgspec

from tanist.model.integers import Int32

RETRY_PREFIX = "%RETRY%"
"""Before a group's name: where messages go that the group could not consume yet."""
DLQ_PREFIX = "%DLQ%"
"""Before a group's name: where messages go that the group gave up on."""
REPLY_SUFFIX = "_REPLY_TOPIC"
"""After a cluster's name: the topic of answers in request/reply."""
SYSTEM_PREFIX = "rmq_sys_"

AUTO_CREATE_TOPIC = "TBW102"
"""The template of topics that a first send creates."""
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Where delayed messages wait; its queue ids are delay levels minus one."""
TIMER_TOPIC = SYSTEM_PREFIX + "wheel_timer"
"""Where messages with a time of their own wait, all in its queue 0."""
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
"""Where prepared messages go whose producer was asked too often."""
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
BENCHMARK_TOPIC = "BenchmarkTest"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
WRITES_TOPIC = SYSTEM_PREFIX + "tanist_writes"
"""Ours: where a broker writes down what it has of writes that are made once, in its queue 0."""
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
"""Where clients tell what became of their messages, if they are told to."""

SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        HALF_OP_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        BENCHMARK_TOPIC,
        OFFSET_MOVED_TOPIC,
        WRITES_TOPIC,
    }
)

MAX_TOPIC_CHARS = 127
MAX_RETRY_TOPIC_CHARS = 255


class Permission(IntFlag):
    """The bits of a topic's ``perm``."""

    INHERIT = 1
    WRITE = 2
    READ = 4
    PRIORITY = 8


# Every send and pull asks, and an enum takes ten times as long to answer.
READ, WRITE, INHERIT = int(Permission.READ), int(Permission.WRITE), int(Permission.INHERIT)


class TopicSysFlag(IntFlag):
    """The bits of a topic's ``topicSysFlag``."""

    UNIT = 1
    UNIT_SUB = 2


class TopicFilterType(StrEnum):
    """Whether a message of the topic has one tag or several."""

    SINGLE_TAG = "SINGLE_TAG"
    MULTI_TAG = "MULTI_TAG"


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of one topic on one broker."""

    topic_name: str
    read_queue_count: Int32 = msgspec.field(name="readQueueNums", default=16)
    write_queue_count: Int32 = msgspec.field(name="writeQueueNums", default=16)
    perm: Int32 = int(Permission.READ | Permission.WRITE)
    topic_filter_type: TopicFilterType = TopicFilterType.SINGLE_TAG
    topic_sys_flag: Int32 = 0
    is_ordered: bool = msgspec.field(name="order", default=False)
    attributes: dict[str, str] = {}

    @property
    def is_readable(self) -> bool:
        return bool(self.perm & READ)

    @property
    def is_writable(self) -> bool:
        return bool(self.perm & WRITE)


def retry_topic(group: str) -> str:
    """The topic that carries what ``group`` has to consume again."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """The topic that carries what ``group`` gave up on."""
    return DLQ_PREFIX + group


def reply_topic(cluster: str) -> str:
    """The topic that carries the answers of request/reply in ``cluster``."""
    return cluster + REPLY_SUFFIX
