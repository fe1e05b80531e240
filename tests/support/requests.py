"""Requests that tests send to a broker by hand, to one topic and as one group unless they say otherwise."""

from typing import Any

from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.send import SendMessageRequestV2

TOPIC = "TopicA"
GROUP = "GroupA"
NO_NAME_SERVER = "127.0.0.1:1"
"""For a broker that is found by its address."""
SUSPEND, SUBSCRIPTION = 2, 4


def send_request(body: bytes = b"body", *, is_one_way: bool = False, **fields: Any) -> Command:
    given: dict[str, Any] = {
        "producer_group": "P",
        "topic": TOPIC,
        "default_topic": "TBW102",
        "default_topic_queue_count": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp_ms": 1,
        "flag": 0,
        **fields,
    }
    header = SendMessageRequestV2(**given)  # pyright: ignore[reportArgumentType]
    return Command.request(RequestCode.SEND_MESSAGE_V2, header, body=body, is_one_way=is_one_way)


def pull_request(
    queue_offset: int = 0, *, suspend_ms: int = 0, opaque: int = 0, topic: str = TOPIC, queue_id: int = 0
) -> Command:
    """A pull by a subscription of its own, to everything. With ``suspend_ms`` it may wait so long."""
    header = PullMessageRequest(
        consumer_group=GROUP,
        topic=topic,
        queue_id=queue_id,
        queue_offset=queue_offset,  # pyright: ignore[reportArgumentType]
        max_message_count=32,
        sys_flag=SUBSCRIPTION | (SUSPEND if suspend_ms else 0),
        consumer_offset=0,  # pyright: ignore[reportArgumentType]
        suspend_timeout_ms=suspend_ms,
        subscription="*",
        sub_version=0,
    )
    return Command.request(RequestCode.PULL_MESSAGE, header, opaque=opaque)
