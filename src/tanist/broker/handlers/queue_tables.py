"""Tables with a row for each queue of a topic, encoded a few rows at a time."""

from collections.abc import Callable, Generator

from tanist.errors import ResponseError
from tanist.model.route import MessageQueue
from tanist.protocol.bodies import ObjectKeyed, encode_body
from tanist.protocol.codes import ResponseCode
from tanist.protocol.frame import MAX_BODY_BYTES

STEP_QUEUES = 8
"""Some 100 us each, if its file has to be opened. A topic may have tens of thousands of them."""


class QueueTables:
    """The tables of one answer, which fit a frame together."""

    def __init__(self, broker_name: str) -> None:
        self._broker_name = broker_name
        self._size_bytes = 0

    def encode(
        self, topic: str, queue_count: int, look: Callable[[int], object]
    ) -> Generator[None, None, list[bytes]]:
        """What ``look`` tells of each queue, as tables to be joined; yields after every few of them."""
        parts: list[bytes] = []
        for start in range(0, queue_count, STEP_QUEUES):
            queue_ids = range(start, min(start + STEP_QUEUES, queue_count))
            rows = ObjectKeyed(
                {
                    MessageQueue(topic=topic, broker_name=self._broker_name, queue_id=queue_id): look(
                        queue_id
                    )
                    for queue_id in queue_ids
                }
            )
            parts.append(self.take(encode_body(rows)))
            yield
        return parts

    def take(self, part: bytes) -> bytes:
        """A part of the answer, unless that gets too large."""
        self._size_bytes += len(part)
        if self._size_bytes > MAX_BODY_BYTES:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"the answer has more than {MAX_BODY_BYTES} bytes; ask for fewer topics at once",
            )
        return part
