"""Consumer groups: their settings, and how they consume."""

from enum import StrEnum
from typing import Any

import msgspec

from tanist.model.integers import Int32, Int64

TOOLS_CONSUMER_GROUP = "TOOLS_CONSUMER"
"""The group in whose name operator tools pull."""

TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"
"""The group in whose name a broker keeps how far transactions are done with."""

MAX_GROUP_CHARS = 120


class MessageModel(StrEnum):
    """Whether the members of a group share the messages, or each gets all of them."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeType(StrEnum):
    """Who drives consumption."""

    ACTIVELY = "CONSUME_ACTIVELY"
    PASSIVELY = "CONSUME_PASSIVELY"
    POP = "CONSUME_POP"


class ConsumeFromWhere(StrEnum):
    """Where a group begins on a queue it has no offset for."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"

    @classmethod
    def _missing_(cls, value: object) -> "ConsumeFromWhere | None":
        return cls.LAST_OFFSET if value in _OLD_NAMES_OF_LAST else None


# Old clients may still send these. All three have long meant the last offset.
_OLD_NAMES_OF_LAST = frozenset(
    {
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
    }
)


def _customized_retry() -> dict[str, Any]:
    return {"type": "CUSTOMIZED"}


class SubscriptionGroupConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of one consumer group on one broker.

    ``group_retry_policy`` and ``subscription_data_set`` belong to RocketMQ 5 and are carried along
    untouched, so that a table read from a peer and written again loses nothing.
    """

    group_name: str
    is_consume_enabled: bool = msgspec.field(name="consumeEnable", default=True)
    is_consume_from_min_enabled: bool = msgspec.field(name="consumeFromMinEnable", default=True)
    is_broadcast_enabled: bool = msgspec.field(name="consumeBroadcastEnable", default=True)
    is_consumed_orderly: bool = msgspec.field(name="consumeMessageOrderly", default=False)
    is_change_notified: bool = msgspec.field(name="notifyConsumerIdsChangedEnable", default=True)
    retry_queue_count: Int32 = msgspec.field(name="retryQueueNums", default=1)
    retry_max_times: Int32 = 16
    broker_id: Int64 = 0
    slow_broker_id: Int64 = msgspec.field(name="whichBrokerWhenConsumeSlowly", default=1)
    consume_timeout_minutes: Int32 = msgspec.field(name="consumeTimeoutMinute", default=15)
    group_sys_flag: Int32 = 0
    group_retry_policy: dict[str, Any] = msgspec.field(default_factory=_customized_retry)
    subscription_data_set: list[dict[str, Any]] | None = None
    attributes: dict[str, str] = {}
