"""Who hears the notes of links in a test, and remembers what was heard."""

from tanist.ha.notes import SendNote
from tanist.ha.replicas import Replica


class Heard:
    """What was heard, in order; and which call fails, if one does."""

    def __init__(self) -> None:
        self.events: list[str] = []
        """``begin``, ``note`` and ``end``."""
        self.notes: list[bytes] = []
        self.sends: list[SendNote] = []
        self.faults: dict[str, Exception] = {}
        """What the next such event raises."""

    def _on(self, event: str) -> None:
        self.events.append(event)
        if (fault := self.faults.pop(event, None)) is not None:
            raise fault

    def _begin(self, send: SendNote) -> None:
        assert self.events.count("begin") == self.events.count("end"), "one link at a time"
        self.sends.append(send)
        self._on("begin")

    def _hear(self, note: bytes) -> None:
        self.notes.append(note)
        self._on("note")

    def _end(self) -> None:
        # Nobody gets it.
        self.sends[-1](b"too late")
        self._on("end")


class HeardByMaster(Heard):
    """Hears the slaves of a master, a ``tanist.ha.notes.MasterNotes``."""

    def __init__(self) -> None:
        super().__init__()
        self.replicas: list[Replica] = []
        """Who is there."""

    def on_joined(self, replica: Replica, send: SendNote) -> None:
        self.replicas.append(replica)
        self._begin(send)

    def on_note(self, replica: Replica, note: bytes) -> None:
        assert self.replicas == [replica]
        self._hear(note)

    def on_left(self, replica: Replica) -> None:
        self.replicas.remove(replica)
        self._end()


class HeardBySlave(Heard):
    """Hears the master of a slave, a ``tanist.ha.notes.SlaveNotes``."""

    def on_linked(self, send: SendNote) -> None:
        self._begin(send)

    def on_note(self, note: bytes) -> None:
        self._hear(note)

    def on_unlinked(self) -> None:
        self._end()
