"""What becomes of a queue that is to go on at another offset. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue

FirstTaken: TypeAlias = Callable[[MessageQueue, QueueOffset], None]
"""Told of the first message of a queue that somebody takes after a move."""


@dataclass(frozen=True, slots=True)
class QueueMove:
    """One queue. Without a ``failure`` nothing of it that lies before ``target`` is handed out any more."""

    queue: MessageQueue
    old_offset: QueueOffset | None
    """Where this member stood; None if nobody can tell."""
    target: QueueOffset
    failure: str = ""

    def begun_at(self, start: QueueOffset) -> "QueueMove":
        """The same once the queue is taken again: where it begins is what counts, whoever kept that."""
        failure = "" if start == self.target else f"it went on at {start} instead of {self.target}"
        return replace(self, failure=failure)
