"""Asks producers about halves, each question when it can be answered.

A half that is asked about is copied first, and the answer names the copy. It may be here in a millisecond.
Under a controller a copy is in its queue only when it is confirmed: asked before that, a producer that is
nearer than the slaves would end what nobody knows yet, each time again.
"""

import logging
from collections import deque

from tanist.broker.state import BrokerState
from tanist.broker.transactions.halves import Half
from tanist.broker.transactions.question import make_question
from tanist.model.message import Appended, Message
from tanist.protocol.frame import encode_command
from tanist.protocol.record import crc32

_log = logging.getLogger(__name__)

MAX_UNASKED = 1024
"""So many questions may wait for their copies."""


class Asking:
    """The questions of one broker."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._unasked: deque[tuple[Half, Message, Appended]] = deque()

    @property
    def is_full(self) -> bool:
        return len(self._unasked) >= MAX_UNASKED

    def add(self, half: Half, message: Message, appended: Appended) -> None:
        """A half has a copy: ask about it, and show the message so."""
        self._unasked.append((half, message, appended))

    def ask_indexed(self) -> None:
        """Ask about the copies that are in their queue by now."""
        dispatched_to = self._state.store.dispatcher.dispatched_to
        while self._unasked and self._unasked[0][2].end <= dispatched_to:
            self._ask(*self._unasked.popleft())

    def _ask(self, half: Half, message: Message, appended: Appended) -> None:
        # Not the same one each time: it may be one that is as good as gone.
        number = crc32(half.unique_id.encode()) + half.check_count
        producer = self._state.clients.pick_producer(half.producer_group, number)
        if producer is None:
            _log.debug("nobody to ask about a transaction group=%s", half.producer_group)
            return
        question = make_question(
            half,
            message,
            appended,
            store_host=self._state.store_host,
            broker_name=self._state.settings.broker_name,
        )
        producer.connection.send(encode_command(question))
