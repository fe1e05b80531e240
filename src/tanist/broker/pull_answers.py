"""The answer to a pull: which code, which broker to ask next, and the messages as they lie in the log."""

from tanist.broker.memory import hot_bytes
from tanist.broker.reading import Outcome, QueueRead
from tanist.broker.slave_reads import is_behind, suggested_broker_id
from tanist.broker.state import BrokerState
from tanist.model.route import MASTER_ID
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_pull_head
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.remoting.replies import Pieces
from tanist.store import MessageStore

_CODES = {
    Outcome.FOUND: ResponseCode.SUCCESS,
    Outcome.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    Outcome.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    Outcome.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    Outcome.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    Outcome.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
    Outcome.OFFSET_NOT_ON_SLAVE: ResponseCode.PULL_NOT_FOUND,
}


def code_of(found: QueueRead, asked_offset: int) -> ResponseCode:
    """What a consumer that asked for this offset is told of what was found."""
    if found.outcome is Outcome.NO_MESSAGE_IN_QUEUE:
        # A consumer that stands behind an empty queue must go back to its start; one at 0 waits.
        return ResponseCode.PULL_OFFSET_MOVED if asked_offset != 0 else ResponseCode.PULL_NOT_FOUND
    return _CODES[found.outcome]


def answer_pull(
    state: BrokerState, command: Command, request: PullMessageRequest, found: QueueRead
) -> Pieces:
    """The frame in pieces, and what it gives out counted."""
    _count(state, request, found)
    head = encode_pull_head(
        command,
        code=code_of(found, request.queue_offset),
        outcome=found.outcome,
        suggested_broker_id=_suggested_broker_id(state, request, found),
        next_offset=found.next_offset,
        min_offset=found.min_offset,
        max_offset=found.max_offset,
        body_bytes=found.size_bytes,
    )
    return [head, *found.pieces]


def _suggested_broker_id(state: BrokerState, request: PullMessageRequest, found: QueueRead) -> int:
    if not state.settings.slave_read_enable or state.read_right is not None:
        # Whoever is read of a group in which one is at a time stands at the master's place in its route.
        return MASTER_ID
    group = state.groups.find(request.consumer_group)
    assert group is not None  # Whoever is answered was checked in the same turn.
    return suggested_broker_id(
        group,
        is_behind=is_behind(
            read_to=_read_to(state.store, request, found),
            log_end=state.store.log.log_end,
            hot_bytes=hot_bytes(state.store.settings),
        ),
    )


def _count(state: BrokerState, request: PullMessageRequest, found: QueueRead) -> None:
    if not found.message_count:
        state.counters.on_missed()
        return
    state.counters.on_pulled(
        request.topic,
        request.consumer_group,
        count=found.message_count,
        size_bytes=found.size_bytes,
        is_system=state.topics.is_system(request.topic),
    )


def _read_to(store: MessageStore, request: PullMessageRequest, found: QueueRead) -> int | None:
    """Where in the log the last message lies that a pull has looked at; None if it looked at none."""
    queue = store.queues.find(request.topic, request.queue_id)
    has_looked = found.outcome in (Outcome.FOUND, Outcome.NO_MATCHED_MESSAGE)
    return queue.entry(found.next_offset - 1).log_offset if queue is not None and has_looked else None
