"""For whom, what and where a broker that is not read relays, and what it keeps for that. Pure.

A stock client looks for its routes every 30 s only: so long it calls a broker that is not read any more. That
one relays to the broker that is. Tanist's own clients are told who is read, and go there.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from tanist.broker.reading import Outcome
from tanist.broker.slave_consume.permitted import Permitted
from tanist.model.route import MASTER_ID
from tanist.model.topics import READ
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_pull_head

PULLS = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
RELAYED = PULLS | {
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.UPDATE_CONSUMER_OFFSET,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.LOCK_BATCH_MQ,
    RequestCode.UNLOCK_BATCH_MQ,
    # A slave may lack the newest messages: where its queues end is not where they end.
    RequestCode.GET_MAX_OFFSET,
    RequestCode.GET_MIN_OFFSET,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    RequestCode.CONSUMER_SEND_MSG_BACK,
}
"""What consumers ask of the broker that is read."""
RETURNED = frozenset(
    {
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
    }
)
"""What the broker that is read asks of consumers."""

MAX_RELAYS = 1_024
"""Each is a connection. Whoever finds no room is refused, and goes by its route."""
MAX_WAITING = 1_024
"""Requests of one client that wait for the broker that is to be read: a pull for each of its queues."""
MAX_WAITING_BYTES = 1 << 20
MAX_HEARTBEAT_BYTES = 64 << 10
MAX_KEPT_BYTES = 16 << 20
"""Of the heartbeats of all clients together. Who is left out is a member after its next heartbeat."""

_REQUEST_BYTES = 256
"""What a request takes beside its body, roughly."""

PeerT = TypeVar("PeerT", bound=Hashable)
WaitingT = TypeVar("WaitingT")


def is_stock(language: Language | str) -> bool:
    """Whether a client is none of ours, and does not understand who is read instead of its broker."""
    return language not in (Language.PYTHON, Language.PYTHON.name)


def reads_elsewhere(found: Permitted, own: str) -> str | None:
    """The broker that is read instead of ``own``; None if none is known, or this one is."""
    return None if found.permission & READ or found.reader == own else found.reader


def relays_to(code: int, found: Permitted, own: str, *, is_slave: bool) -> str | None:
    """Where a request of a stock client goes; None if it is served, or refused, here."""
    if code == RequestCode.CONSUMER_SEND_MSG_BACK and not is_slave:
        # The slave that is read instead of a master writes nothing.
        return None
    return reads_elsewhere(found, own)


def pull_again(request: Command, queue_offset: int) -> bytes:
    """The answer that has a client send the same pull again at once."""
    return encode_pull_head(
        request,
        code=ResponseCode.PULL_RETRY_IMMEDIATELY,
        outcome=Outcome.NO_MATCHED_MESSAGE,
        suggested_broker_id=MASTER_ID,
        next_offset=queue_offset,
        min_offset=0,
        max_offset=queue_offset,
        body_bytes=0,
    )


class WaitingRequests(Generic[WaitingT]):
    """What one client asked while the broker that is to be read was not ready, in order and bounded."""

    def __init__(self, *, max_count: int = MAX_WAITING, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._requests: list[WaitingT] = []

    def add(self, request: WaitingT, body_bytes: int) -> bool:
        """Let a request wait; False if there is no room for it."""
        size_bytes = self._size_bytes + _REQUEST_BYTES + body_bytes
        if len(self._requests) >= self._max_count or size_bytes > self._max_bytes:
            return False
        self._size_bytes = size_bytes
        self._requests.append(request)
        return True

    def drain(self) -> list[WaitingT]:
        """Take all out."""
        drained, self._requests, self._size_bytes = self._requests, [], 0
        return drained


class KeptHeartbeats(Generic[PeerT]):
    """The last full heartbeat of each client, as it came: it tells another broker what the client wants."""

    def __init__(self, *, max_each_bytes: int = MAX_HEARTBEAT_BYTES, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_each_bytes = max_each_bytes
        self._max_bytes = max_bytes
        self._by_peer: dict[PeerT, Command] = {}
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._by_peer)

    def keep(self, peer: PeerT, heartbeat: Command) -> None:
        """Take a newer heartbeat of this client, if there is room for it."""
        self.forget(peer)
        size_bytes = len(heartbeat.body)
        if size_bytes <= self._max_each_bytes and self._size_bytes + size_bytes <= self._max_bytes:
            self._by_peer[peer] = owned(heartbeat)
            self._size_bytes += size_bytes

    def find(self, peer: PeerT) -> Command | None:
        """A copy: who sends it gives it an opaque."""
        found = self._by_peer.get(peer)
        return None if found is None else owned(found)

    def forget(self, peer: PeerT) -> None:
        if (found := self._by_peer.pop(peer, None)) is not None:
            self._size_bytes -= len(found.body)


def owned(command: Command) -> Command:
    """The same request, without the bytes of the whole read in which it came."""
    return Command(
        command.code,
        command.opaque,
        command.flag,
        command.language,
        command.version,
        body=bytes(command.body),
        encoding=command.encoding,
        ext_fields=dict(command.ext),
    )
