"""What the decoders of all replication streams share: gathering a header, handing out a body.

A header may arrive in pieces and is gathered. A body is never gathered: it is handed out in the
pieces in which it arrives, as views of what was read, so that its bytes are copied once, into the
log. Whoever takes them must be done with them before the read buffer is used again, and must not
count them as received before the piece that ``is_last``.
"""

from typing import NamedTuple

MAX_BODY_BYTES = 4 << 20
"""RocketMQ's slaves read frames through a buffer of this size, so no frame is larger."""


class BodyPart(NamedTuple):
    """The next bytes of the body whose header came before."""

    view: memoryview
    is_last: bool


def gather(held: bytearray, view: memoryview, size_bytes: int) -> memoryview:
    """Move bytes from the front of ``view`` until ``held`` has ``size_bytes``; what is left of ``view``."""
    missing = max(0, size_bytes - len(held))
    held += view[:missing]
    return view[missing:]
