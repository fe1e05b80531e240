"""What the pure ends of a link ask their shells to do."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from tanist.model.epochs import Epoch
from tanist.protocol.ha_link import AckKind


class CloseKind(Enum):
    """Why a link ends, as it is counted and shown."""

    NO_HELLO = "no hello"
    """What came can not be a hello, or a hello that we speak."""
    BAD_TLS = "TLS handshake failed"
    TOO_SLOW = "too slow to prove itself"
    NOT_PROVEN = "not proven"
    REFUSED = "refused"
    """It proved who it is, and does not fit: the reason says why."""
    BAD_FRAME = "bad frame"
    IMPOSSIBLE_ACK = "impossible ack"
    WRONG_OFFSET = "wrong offset"
    SILENT = "silent"
    REPLACED = "replaced by a newer connection"
    LOST = "connection lost"
    STORE = "the log takes nothing"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Send these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CloseLink:
    """End the link, after what was sent."""

    kind: CloseKind
    reason: str


@dataclass(frozen=True, slots=True)
class StartTransfer:
    """The slave is let in: from now on the log goes to it, from ``start_offset`` on."""

    start_offset: int
    requested_to: int
    """The end of its own log."""
    broker_id: int | None
    """None if it did not tell."""
    ack_kind: AckKind
    held_from: int = 0
    """Where what it holds begins; 0 if it did not tell, or if that is not known to lie elsewhere."""
    is_learner: bool = False
    """Whether it only follows, and is not to be counted on."""


@dataclass(frozen=True, slots=True)
class TakeAck:
    """The slave holds the log up to here."""

    acked_to: int


@dataclass(frozen=True, slots=True)
class TakeTablesHeld:
    """The slave has taken over the tables up to the question with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class TakeNote:
    """The other end noted this."""

    note: bytes


@dataclass(frozen=True, slots=True)
class TrustPeer:
    """The slave has proven who it is, and is about to cut its log: others who come must not push it out."""


@dataclass(frozen=True, slots=True)
class NewerEpoch:
    """A slave, proven, was told of a newer epoch than ours: another one is master now."""

    epoch: int


@dataclass(frozen=True, slots=True)
class AppendLog:
    """Append these bytes of the master's log, then tell the link with ``on_appended``."""

    log_offset: int
    body: memoryview


@dataclass(frozen=True, slots=True)
class ApplyTable:
    """Take over a change of the tables."""

    change: bytes


@dataclass(frozen=True, slots=True)
class FollowLog:
    """The master lets us in: its log is ours from now on, whose incarnation this is."""

    incarnation: bytes | None
    """None if it does not tell, and sends no tables either."""


@dataclass(frozen=True, slots=True)
class TellEpochs:
    """Tell operators which epochs both logs have, and what follows from that."""

    own: tuple[Epoch, ...]
    master: tuple[Epoch, ...]
    log_end: int
    agreed_to: int | None
    """Up to where both logs agree; None if nothing tells, so that this log is not the master's."""


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Keep our log only up to here, where it last agrees with the master's; then call ``on_truncated``.

    What is cut was never confirmed. It is kept beside the log, as a file that can be read.
    """

    log_offset: int


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """Write down that the master of this epoch wrote the log from here on, before its bytes are appended."""

    epoch: int
    start: int


@dataclass(frozen=True, slots=True)
class ConfirmTo:
    """All replicas in step hold the log up to here: consumers may see so much of it, as far as we hold it."""

    confirmed_to: int


MasterAction: TypeAlias = (
    SendBytes | CloseLink | StartTransfer | TakeAck | TakeTablesHeld | TakeNote | TrustPeer | NewerEpoch
)
SlaveAction: TypeAlias = (
    SendBytes
    | CloseLink
    | AppendLog
    | ApplyTable
    | TakeNote
    | FollowLog
    | TellEpochs
    | TruncateTo
    | BeginEpoch
    | ConfirmTo
)


def wrong_offset(*, own_end: int, master_offset: int) -> str:
    """What is wrong with a frame that does not go where our log ends, in RocketMQ's words."""
    return (
        "master pushed offset not equal the max phy offset in slave, "
        f"SLAVE: {own_end} MASTER: {master_offset}"
    )
