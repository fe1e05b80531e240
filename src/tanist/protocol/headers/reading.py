"""Asking a broker how it stands to being read. Ours: other brokers do not know the request."""

import msgspec

from tanist.model.integers import Int32, Int64
from tanist.protocol.headers.base import Header

MAX_WAIT_MS = 10_000
"""A question waits no longer than this for something to change; who wants to know asks again then."""


class ReadStandingRequest(Header, frozen=True):
    """May this broker be read, and who may if not?

    The answer comes when the broker may be read or names one that may, or when the time is over.
    """

    wait_ms: Int32 = msgspec.field(name="waitMillis", default=0)
    known_reader: str | None = None
    """A broker that the asker knows of and can not read: to name that one again is no answer yet."""
    relayed_for: str | None = None
    """The asker is a broker, and brings on this connection what the client of this address sent to it."""


class ReadStandingResponse(Header, frozen=True):
    """``permission`` is FULL, WRITE, READ or NONE; without a reader address nobody is known who is read."""

    permission: str
    is_coordinated: bool = msgspec.field(name="coordinated", default=False)
    """Whether a coordinator says so. If not it does not change, and no client goes by it."""
    reader_address: str | None = None
    read_term: Int64 = 0
    reason: str = ""
