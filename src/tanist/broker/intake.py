"""What a send must satisfy before the log sees it, and the message that the log then gets. Pure."""

from collections.abc import Callable

from tanist.errors import ResponseError
from tanist.model.message import Message, SysFlag
from tanist.model.property_names import (
    CLUSTER,
    MSG_REGION,
    TRACE_ON,
    UNIQ_KEY,
)
from tanist.model.topics import TopicConfig
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.send import DEFAULT_REGION, SendMessageRequest
from tanist.protocol.properties import encode_properties, join_properties
from tanist.protocol.record import MAX_PROPERTIES_BYTES
from tanist.protocol.tags import find_unique_key

_ENDED = int(SysFlag.COMMIT)
"""The bit that a committed and a rolled back message share."""


class Intake:
    """Checks sends and completes their messages, as one broker does it."""

    def __init__(self, *, cluster: str, max_body_bytes: int) -> None:
        self.max_body_bytes = max_body_bytes
        self.stamp = encode_properties({CLUSTER: cluster, MSG_REGION: DEFAULT_REGION, TRACE_ON: "true"})
        """What the broker adds to the properties of every message."""

    def accept(
        self,
        request: SendMessageRequest,
        body: bytes | memoryview,
        *,
        topic: TopicConfig,
        queue_id: int,
        born_host: bytes,
        make_id: Callable[[], str] | None,
    ) -> tuple[Message, str]:
        """The message to append, and its unique id, which is made if the producer gave it none.

        None is made for a batch: what is added to a batch is added to each of its messages and would
        hide their own ids, because the last property of a name counts.
        """
        if not body:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "the message has no body")
        if len(body) > self.max_body_bytes:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"a body of {len(body)} bytes; at most {self.max_body_bytes} are taken",
            )
        if request.sys_flag & _ENDED:
            raise ResponseError(ResponseCode.MESSAGE_ILLEGAL, "a send can not commit or roll back")
        properties = (request.properties or "").encode("utf-8", "replace")
        found_id = find_unique_key(properties)
        fresh_id = "" if found_id or make_id is None else make_id()
        stamped = self._stamped(properties, fresh_id)
        message = Message(
            topic=topic.topic_name,
            queue_id=queue_id,
            body=body,
            properties=stamped,
            flag=request.flag,
            sys_flag=request.sys_flag,
            born_timestamp_ms=request.born_timestamp_ms,
            born_host=born_host,
            reconsume_times=request.reconsume_times or 0,
        )
        return message, found_id.decode("utf-8", "replace") if found_id else fresh_id

    def _stamped(self, properties: bytes, fresh_id: str) -> bytes:
        """The producer's properties, byte for byte, and behind them what the broker adds."""
        unique = f"{UNIQ_KEY}\x01{fresh_id}\x02".encode() if fresh_id else b""
        stamped = join_properties(properties, unique + self.stamp)
        if len(stamped) > MAX_PROPERTIES_BYTES or 0 in stamped:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"{len(properties)} bytes of properties: with the broker's own at most "
                f"{MAX_PROPERTIES_BYTES} are taken, and no NUL",
            )
        return stamped
