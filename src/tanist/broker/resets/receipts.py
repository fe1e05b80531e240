"""What a broker knows of one client of an order. Pure."""

from dataclasses import dataclass, field

from tanist.broker.consumer_group import Client, ClientConnection
from tanist.broker.resets.moment import LONG_AGO_MS, Moment
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import ClientReceipt, QueueReceipt, ReceiptState
from tanist.protocol.codes import Language, Version

MAX_TELLS = 5
"""A client whose connection ends again and again is told so often, and no more."""

BURST_MS = 1_000
"""Tells within that time are one: who stood still hears at once of many connections that have ended."""


@dataclass(slots=True, eq=False)
class Receipt:
    """One client. Its connection is None while it is away."""

    client_id: str
    address: str
    language: str
    version: int
    connection: ClientConnection | None = None
    state: ReceiptState = ReceiptState.PENDING
    told_ms: int = 0
    told_at_ms: int = LONG_AGO_MS
    """The same on the steady clock. Who was told before a restart is not waited for on its account."""
    told_count: int = 0
    counted_at_ms: int = LONG_AGO_MS
    """When a tell was last counted."""
    is_told_once_more: bool = False
    """Whether it was told again on this connection, because it had no queue when it was told first."""
    confirmed_ms: int = 0
    reason: str = ""
    queues: dict[int, QueueReceipt] = field(default_factory=dict[int, QueueReceipt])
    """Where it has moved, by queue."""
    owned: set[int] | None = None
    """Those of the order's queues that it said it has, or was seen to have; None before it said."""
    seen: set[int] = field(default_factory=set[int])
    """Those in which it has done something since it was told."""
    spared: frozenset[int] = frozenset()
    """Those in which it was sent to where the group stood when it came back, and not to the target."""
    stood: frozenset[int] = frozenset()
    """Those whose last pull before it was told had ended at the target."""
    asked_at_ms: int = LONG_AGO_MS
    """When it was last asked once more where it stands."""
    old_offsets: dict[int, int] = field(default_factory=dict[int, int])
    next_offsets: dict[int, int] = field(default_factory=dict[int, int])
    """Where its pulls since then ended, by queue: a pull that goes on there is no move."""

    @classmethod
    def of(cls, client: Client) -> "Receipt":
        return cls(
            client_id=client.client_id,
            address=client.connection.peer,
            language=client.language,
            version=client.version,
            connection=client.connection,
        )

    @classmethod
    def restored(cls, saved: ClientReceipt) -> "Receipt":
        """Of a client that was known before this broker was started: it has yet to come."""
        receipt = cls(
            client_id=saved.client_id,
            address=saved.address,
            language=saved.language,
            version=int(saved.version) if saved.version.isdecimal() else 0,
            state=saved.state,
            told_ms=saved.told_ms,
            told_count=1 if saved.told_ms else 0,
            confirmed_ms=saved.confirmed_ms,
            reason=saved.reason,
            queues={queue.queue_id: queue for queue in saved.queues},
        )
        if receipt.state is ReceiptState.TOLD:
            receipt.state = ReceiptState.PENDING
        return receipt

    @property
    def is_open(self) -> bool:
        """Whether it may still follow."""
        return self.state in (ReceiptState.PENDING, ReceiptState.TOLD)

    @property
    def host(self) -> str:
        return host_of(self.address)

    @property
    def says_itself(self) -> bool:
        """Whether it is one of ours, which send receipts."""
        return self.language == Language.PYTHON.name

    @property
    def is_deaf_in_broadcasting(self) -> bool:
        """Whether it is of a RocketMQ version that forgets a single queue's offset instead of keeping it."""
        is_old_4 = self.version < Version.V4_9_8
        is_old_5 = Version.V5_0_0 <= self.version < Version.V5_2_0
        return self.language == Language.JAVA.name and (is_old_4 or is_old_5)

    def told(self, now: Moment) -> None:
        """It is told, and has yet to follow."""
        self.state, self.reason = ReceiptState.TOLD, ""
        self.told_ms, self.told_at_ms = now

    def count_tell(self, now: Moment) -> bool:
        """It is to be told; False if it was told often enough."""
        if now.steady_ms - self.counted_at_ms < BURST_MS:
            return True
        if self.told_count >= MAX_TELLS:
            return False
        self.told_count += 1
        self.counted_at_ms = now.steady_ms
        return True

    def moved(self, queue_id: int, target: int) -> None:
        """It was seen at the target of a queue."""
        old = self.old_offsets.get(queue_id)
        self.queues[queue_id] = QueueReceipt(
            queue_id=queue_id,
            old_offset=None if old is None else QueueOffset(old),
            new_offset=QueueOffset(target),
        )
        self.seen.add(queue_id)

    def view(self, *, has_queues: bool = True) -> ClientReceipt:
        return ClientReceipt(
            client_id=self.client_id,
            address=self.address,
            language=self.language,
            version=str(self.version),
            state=self.state,
            told_ms=self.told_ms,
            confirmed_ms=self.confirmed_ms,
            queues=[self.queues[queue_id] for queue_id in sorted(self.queues)] if has_queues else [],
            reason=self.reason,
        )


def host_of(address: str) -> str:
    """Of ``host:port``."""
    return address.rpartition(":")[0]
