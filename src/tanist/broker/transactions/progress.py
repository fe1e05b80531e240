"""How far halves are done with, and notes of them not needed any more: RocketMQ goes on from there too.

It follows the log's flush, and under a controller what is confirmed. Offsets that are ahead of the log after
a crash, or after its end was cut off, would pass over halves that nobody ended.
"""

from tanist.broker.offsets import OffsetTable
from tanist.broker.transactions.halves import HALF_QUEUE_ID
from tanist.model.groups import TRANSACTION_GROUP
from tanist.model.topics import HALF_OP_TOPIC, HALF_TOPIC


class TransactionProgress:
    """The offsets of one group in two topics."""

    def __init__(self, offsets: OffsetTable) -> None:
        self._offsets = offsets
        self.half_offset = self._find(HALF_TOPIC)
        self.note_offset = self._find(HALF_OP_TOPIC)
        self._durable_at: int | None = None
        """The log's end when the offsets were found, while they are still to be kept."""

    @property
    def is_kept(self) -> bool:
        return self._durable_at is None

    def advance(self, half_offset: int, note_offset: int, *, log_end: int, flushed_to: int) -> None:
        """Keep what was found before, if the log is durable up to there, and then see what is new."""
        if self._durable_at is not None and flushed_to >= self._durable_at:
            self._keep()
        if self.is_kept and (half_offset, note_offset) != (self.half_offset, self.note_offset):
            self.half_offset, self.note_offset = half_offset, note_offset
            self._durable_at = log_end

    def finish(self, half_offset: int, note_offset: int) -> None:
        """Keep these offsets: all of the log is durable."""
        if self._is_known or (half_offset, note_offset) != (0, 0):
            self.half_offset, self.note_offset = half_offset, note_offset
            self._keep()

    def _keep(self) -> None:
        self._offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, HALF_QUEUE_ID, self.half_offset)
        self._offsets.commit(TRANSACTION_GROUP, HALF_OP_TOPIC, HALF_QUEUE_ID, self.note_offset)
        self._durable_at = None

    @property
    def _is_known(self) -> bool:
        return bool(self._offsets.topics_of(TRANSACTION_GROUP))

    def _find(self, topic: str) -> int:
        return self._offsets.find(TRANSACTION_GROUP, topic, HALF_QUEUE_ID) or 0
