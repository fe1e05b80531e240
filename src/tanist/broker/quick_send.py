"""Sends that need no second look: from the text of the header to record and answer in one step, in C.

Most sends are alike: one message, for a queue that is known, to be seen at once. For these ``take_send`` of
``_native`` reads the header, checks what SendHandler and Intake check, and lays out the record, the queue's
entry and the answer. Whatever is otherwise it leaves alone, as does everybody without the C: SendHandler does
the same work step by step, and says what is wrong where something is.
"""

from typing import TYPE_CHECKING

from tanist.broker.intake import Intake
from tanist.broker.state import BrokerState
from tanist.broker.system_topics import is_open_to_sends
from tanist.model.message import Appended
from tanist.model.offsets import QueueOffset
from tanist.model.property_names import WAIT
from tanist.model.topics import RETRY_PREFIX, TopicConfig
from tanist.protocol.codes import FLAG_ONE_WAY
from tanist.protocol.command import Command
from tanist.protocol.frame import SEND_ANSWER_TEXTS
from tanist.protocol.properties import encode_properties
from tanist.remoting import Connection

try:
    from tanist.protocol import _native as native
except ImportError:
    native = None

if TYPE_CHECKING:
    from tanist.protocol._native import Plan

FOLLOWS = b""
"""In place of an answer: it is on its way, and is sent when the message is safe."""
_NO_WAIT = encode_properties({WAIT: "false"}).rstrip(b"\x02")


class QuickSends:
    """Takes what is plain; SendHandler tells it of the topics."""

    def __init__(self, state: BrokerState, intake: Intake) -> None:
        self._state = state
        self._intake = intake
        self._table = state.topics.table
        self._queue_counts: dict[str, int] = {}
        self._plan = self._make_plan()

    def take(self, command: Command, connection: Connection) -> bytes | None:
        """Append the message of a send and return its answer, or FOLLOWS.

        None if nothing was done: go step by step.
        """
        state = self._state
        log = state.store.log
        pending = state.writer.pending
        is_waiting = pending.is_on
        if native is None or command.header_json is None or (is_waiting and not pending.has_room):
            return None
        if state.topics.table is not self._table:
            self._table = state.topics.table
            self._queue_counts.clear()
        if log.next_queue_offsets is not self._plan[1]:
            self._plan = self._make_plan()
        now_ms = state.clock.now_ms()
        taken = native.take_send(
            command.header_json, command.body, connection.peer_host, self._plan, log.log_end, now_ms
        )
        if taken is None:
            return None
        records, entries, keyed, queue, queue_offset, answer = taken
        if is_waiting and _NO_WAIT in records:
            # It may be among the properties or in the body; to tell that is not for here.
            return None
        place = Appended(log.log_end, QueueOffset(queue_offset), len(records), now_ms, entries, keyed)
        if not state.writer.append_laid(queue, place, records):
            return None
        if not is_waiting or command.flag & FLAG_ONE_WAY:
            return answer
        pending.answer_when_safe(place, connection, answer)
        return FOLLOWS

    def learn(self, topic: TopicConfig) -> None:
        """A send to this topic was taken step by step: the next ones may be quick.

        Not if there is more to look at with each of them.
        """
        name = topic.topic_name
        if is_open_to_sends(name) and not topic.is_ordered and not name.startswith(RETRY_PREFIX):
            self._queue_counts[name] = max(topic.read_queue_count, topic.write_queue_count)

    def _make_plan(self) -> "Plan":
        """What C has to know beside the message."""
        state, intake = self._state, self._intake
        offsets = state.store.log.next_queue_offsets
        return (
            *(self._queue_counts, offsets, state.store_host),
            *(intake.stamp, intake.max_body_bytes, SEND_ANSWER_TEXTS),
        )
