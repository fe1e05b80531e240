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
from tanist.protocol.codes import FLAG_ONE_WAY, FLAG_RESPONSE
from tanist.protocol.command import Command
from tanist.protocol.compiled import native
from tanist.protocol.frame import SEND_ANSWER_TEXTS, whole_send
from tanist.protocol.properties import encode_properties
from tanist.remoting import Connection

if TYPE_CHECKING:
    from tanist.protocol._native import Plan, Taken

FOLLOWS = b""
"""In place of an answer: it is sent when the message is safe, or nobody waits for one."""
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
        header = command.header_json
        return None if header is None else self._take(header, command.body, connection)

    def take_read(self, data: bytes, connection: Connection) -> bytes | None:
        """The same with all that was read from a connection at once, if that is one send."""
        whole = whole_send(data)
        return None if whole is None else self._take(*whole, connection)

    @property
    def plan(self) -> "Plan":
        """What C has to know beside the message, as it is now."""
        state = self._state
        if state.topics.table is not self._table:
            self._table = state.topics.table
            self._queue_counts.clear()
        if state.store.log.next_queue_offsets is not self._plan[1]:
            self._plan = self._make_plan()
        return self._plan

    def learn(self, topic: TopicConfig) -> None:
        """A send to this topic was taken step by step: the next ones may be quick.

        Not if there is more to look at with each of them.
        """
        name = topic.topic_name
        if is_open_to_sends(name) and not topic.is_ordered and not name.startswith(RETRY_PREFIX):
            self._queue_counts[name] = max(topic.read_queue_count, topic.write_queue_count)

    def _take(self, header: bytes, body: bytes | memoryview, connection: Connection) -> bytes | None:
        pending, log, now_ms = self._state.writer.pending, self._state.store.log, self._state.clock.now_ms()
        is_waiting = pending.is_on
        if is_waiting and not pending.has_room:
            return None
        taken = self._lay_out(header, body, connection.peer_host, now_ms)
        if taken is None:
            return None
        records, entries, keyed, queue, queue_offset, answer, flag = taken
        # It may be among the properties or in the body; to tell that is not for here.
        may_not_wait = is_waiting and _NO_WAIT in records
        place = Appended(log.log_end, QueueOffset(queue_offset), len(records), now_ms, entries, keyed)
        if may_not_wait or not self._state.writer.append_laid(queue, place, records):
            return None
        if flag & FLAG_ONE_WAY:
            return FOLLOWS
        if not is_waiting:
            return answer
        pending.answer_when_safe(place, connection, answer)
        return FOLLOWS

    def _lay_out(
        self, header: bytes, body: bytes | memoryview, born_host: bytes, now_ms: int
    ) -> "Taken | None":
        """Record, entries and answer of a send, for the log's end; None if it is not plain, or no request."""
        if native is None:
            return None
        taken = native.take_send(header, body, born_host, self.plan, self._state.store.log.log_end, now_ms)
        return None if taken is None or taken[-1] & FLAG_RESPONSE else taken

    def _make_plan(self) -> "Plan":
        state, intake = self._state, self._intake
        offsets = state.store.log.next_queue_offsets
        return (
            *(self._queue_counts, offsets, state.store_host),
            *(intake.stamp, intake.max_body_bytes, SEND_ANSWER_TEXTS),
        )
