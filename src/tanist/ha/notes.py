"""Notes: what the brokers on both ends of a link tell each other beside the log; only they know the form.

They go both ways, between Tanist's brokers alone. A note is taken whole or not at all, in the order in which
it was sent on its link, and none outlives its link. None is left out either: a link whose other end leaves
more than MAX_WAITING_BYTES unread ends. A master's note comes after what its tables became before it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import CloseKind
from tanist.ha.replicas import Replica

_log = logging.getLogger(__name__)

MAX_WAITING_BYTES = 64 << 20
"""So much may wait to be read on one link: the offsets of all groups that a broker can have."""

SendNote = Callable[[bytes], None]
"""Sends a note on one link, or does nothing if that link is gone. One has 1 to MAX_NOTE_BYTES bytes."""


class MasterNotes(Protocol):
    """Who hears a master's slaves.

    For each link ``on_joined`` comes first, and ``on_left`` once and last, as soon as the link is given up:
    before the slave joins on another one, and before the broker has stopped. A note of bad form is answered
    by raising RemoteProtocolError, which ends the link; so does any other fault, which is told in the log.
    """

    def on_joined(self, replica: Replica, send: SendNote) -> None:
        """A slave was let in; what is sent to it goes by ``send``."""
        ...

    def on_note(self, replica: Replica, note: bytes) -> None: ...

    def on_left(self, replica: Replica) -> None: ...


class SlaveNotes(Protocol):
    """Who hears a slave's master. It is called, and its faults are taken, as those of MasterNotes."""

    def on_linked(self, send: SendNote) -> None:
        """The master let us in; what is sent to it goes by ``send``."""
        ...

    def on_note(self, note: bytes) -> None: ...

    def on_unlinked(self) -> None:
        """The link is gone."""
        ...


@dataclass(slots=True)
class NoteLine:
    """Calls who hears the notes of one link: in pairs, and no fault of his reaches further than the link."""

    peer: str
    begin: Callable[[SendNote], None]
    hear: Callable[[bytes], None]
    end: Callable[[], None]
    close: Callable[[CloseKind, str], None]
    """Ends the link."""
    _is_open: bool = field(default=False, init=False)

    def on_open(self, send: SendNote) -> None:
        """The link works from now on."""
        # Before the call: whoever fails in it is told too that the link is gone.
        self._is_open = True
        self._guard(lambda: self.begin(send))

    def on_note(self, note: bytes) -> None:
        if self._is_open:
            self._guard(lambda: self.hear(note))

    def on_close(self) -> None:
        """The link is given up, which may be said more than once."""
        if self._is_open:
            self._is_open = False
            self._guard(self.end)

    def _guard(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except RemoteProtocolError as error:
            self.close(CloseKind.BAD_FRAME, str(error))
        except Exception as error:
            _log.exception("who hears the notes of a link failed peer=%s", self.peer)
            self.close(CloseKind.LOST, f"its notes are not heard: {error!r}")
