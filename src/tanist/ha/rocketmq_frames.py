"""Frames of the log as a master of RocketMQ sends them: whether one may come next, and its whole body.

Pure. What both dialects of such masters have in common.
"""

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import wrong_offset
from tanist.protocol.ha_stream import BodyPart


class WrongOffset(RemoteProtocolError):
    """A frame does not go where our log ends."""


def check_offset(log_offset: int, *, own_end: int, file_bytes: int) -> None:
    """Raise WrongOffset for a frame that does not go at our end, or with no log, where a file begins."""
    if own_end:
        if log_offset != own_end:
            raise WrongOffset(wrong_offset(own_end=own_end, master_offset=log_offset))
    elif log_offset % file_bytes:
        raise WrongOffset(
            f"the master begins at {log_offset}, where none of our files begins: set "
            f"mappedFileSizeCommitLog, now {file_bytes}, to the master's"
        )


class WholeBodies:
    """Puts the bodies of frames together that come in several reads."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, part: BodyPart) -> memoryview | None:
        """The whole body with this part; None if more of it is to come."""
        if not part.is_last:
            self._held += part.view
            return None
        if not self._held:
            return part.view
        body = memoryview(bytes(self._held + part.view))
        self._held.clear()
        return body
