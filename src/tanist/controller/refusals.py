"""What was refused: counted by code, the last ones kept to be shown. Pure."""

from collections import Counter, deque
from dataclasses import dataclass

from tanist.errors import MQError, ResponseError
from tanist.protocol.codes import ResponseCode

_KEPT = 10
_REASON_CHARS = 1024
"""What is refused may be quoted in the reason, however long it is."""
_BAD_INPUT = "BAD_INPUT"
_MISTAKE = "MISTAKE"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One request that was not granted."""

    peer: str
    request_code: int
    kind: str
    reason: str
    at_ms: int


class Refusals:
    """All refusals since the start, by kind, and the last few of them whole."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last: deque[Refusal] = deque(maxlen=_KEPT)

    def note(self, error: Exception, *, peer: str, request_code: int, at_ms: int) -> Refusal:
        """Count a request that ended with ``error``."""
        reason = error.remark if isinstance(error, ResponseError) else str(error)
        refusal = Refusal(peer, request_code, _kind(error), reason[:_REASON_CHARS], at_ms)
        self.counts[refusal.kind] += 1
        self.last.append(refusal)
        return refusal


def _kind(error: Exception) -> str:
    """The name of the code that is answered; what is no request, or our fault, has a kind of its own."""
    if not isinstance(error, ResponseError):
        return _BAD_INPUT if isinstance(error, MQError) else _MISTAKE
    try:
        return ResponseCode(error.code).name
    except ValueError:
        return str(error.code)
