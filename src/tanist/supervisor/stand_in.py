"""For whom, where to and how long the parent of a dead master stands in on its ports. Pure.

    WAITING --a broker is read--> PIPING --another one is read--> PIPING, and who is connected is cut
       |                            |----nobody is read any more, or nobody is led any more--> OVER
       |--nobody is read in time--> OVER
    any state --the time is over, or a signal--> OVER

Consumers of RocketMQ look for their routes every 30 s only, and call their dead broker until then. As long as
this lasts nobody starts the broker again: so it ends as soon as it is of no use.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from tanist.model.reading import Assignment, GroupRole, ReadRecord
from tanist.protocol.codes import Language, RequestCode
from tanist.protocol.frame import first_request

IDLE_S = 10.0
"""Whoever consumes calls again within 3 s. After so long without anybody nobody needs to be led."""
_CLAIM_S = 5.0
"""How long after its checks a slave may take to be read."""

_SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)


class StandInState(Enum):
    WAITING = "waiting"
    PIPING = "piping"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class LeadTo:
    """Lead those who wait, and who come, to this broker, and cut those who were led to another."""

    reader: str


@dataclass(frozen=True, slots=True)
class End:
    """Give the ports back, and cut everybody."""

    reason: str


Action: TypeAlias = LeadTo | End


@dataclass(slots=True)
class StandIn:
    """One stand-in, from the death of its broker."""

    address: str
    """The dead broker's."""
    began_s: float
    limit_s: float
    wait_s: float
    """How long nobody may be read."""
    state: StandInState = field(default=StandInState.WAITING, init=False)
    reader: str | None = field(default=None, init=False)
    _idle_since_s: float | None = field(default=None, init=False)

    def on_record(self, record: ReadRecord | None, *, now_s: float) -> list[Action]:
        """The registry says who is read."""
        reader = record.reader if record is not None else None
        if self.state is StandInState.OVER or reader == self.reader:
            return []
        if reader is None or reader == self.address:
            return self._end("nobody is read in its place any more") if self.reader is not None else []
        self.state = StandInState.PIPING
        self.reader = reader
        self._idle_since_s = now_s
        return [LeadTo(reader)]

    def on_led(self, count: int, *, now_s: float) -> None:
        """So many are connected to the reader now."""
        self._idle_since_s = now_s if not count else None

    def on_time(self, *, now_s: float) -> list[Action]:
        """Time has passed."""
        if self.state is StandInState.OVER:
            return []
        if now_s - self.began_s >= self.limit_s:
            return self._end("its time is over")
        if self.state is StandInState.WAITING and now_s - self.began_s >= self.wait_s:
            return self._end("nobody is read in its place")
        if self._idle_since_s is not None and now_s - self._idle_since_s >= IDLE_S:
            return self._end("nobody needs it")
        return []

    def _end(self, reason: str) -> list[Action]:
        self.state = StandInState.OVER
        return [End(reason)]


def longest_wait_s(checks: int) -> float:
    """How long a slave that makes so many checks, one a second, may take to be read."""
    return checks + _CLAIM_S


def find_heir(
    assignment: Assignment | None, record: ReadRecord | None, *, address: str, is_master: bool
) -> str | None:
    """Who is read in the place of the master at ``address``, or will be soon; None if that is nobody.

    ``is_master`` is what the settings say. The assignment counts for more: the broker went by that too.
    """
    own = assignment.find(address) if assignment is not None else None
    if not (is_master if own is None else own.role is GroupRole.MASTER):
        return None
    if record is not None and record.reader is not None:
        return record.reader if record.reader != address else None
    second = assignment.second if assignment is not None else None
    return second.address if second is not None and second.address != address else None


def is_turned_away(said: bytes) -> bool:
    """Whether a caller who begins with this is better off without an answer.

    Who sends messages goes to another master as soon as this one is not there, and a slave takes none.
    Clients of ours ask all brokers of a group who is read. Of TLS nothing can be seen: it is let through.
    """
    request = first_request(said)
    return request is not None and (request.code in _SENDS or request.language is Language.PYTHON)
