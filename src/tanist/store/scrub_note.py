"""What a scrub writes down: where it goes on, and which places were damaged when it looked."""

import logging
from pathlib import Path

import msgspec

from tanist.errors import MQError
from tanist.protocol.java_json import BAD_JSON
from tanist.store.disk import Disk

_log = logging.getLogger(__name__)

FILE_NAME = "scrub"
"""In the store's root. RocketMQ ignores it."""


class ScrubNote(msgspec.Struct, frozen=True, rename="camel"):
    """One store's."""

    next_file: int = 0
    """The first byte of the file of the log with which the next round begins."""
    damaged: tuple[int, ...] = ()
    """The log offsets of the records that are damaged, or whose entries in a queue are."""


class ScrubNoteFile:
    """The note on disk. Without it a round begins anew, and finds again what is damaged."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._path = root / FILE_NAME
        self._saved = ScrubNote()

    def load(self) -> ScrubNote:
        try:
            self._saved = msgspec.json.decode(self._disk.read(self._path), type=ScrubNote)
        except FileNotFoundError:
            pass
        except (OSError, *BAD_JSON) as error:
            _log.warning("scrub begins anew path=%s reason=%s", self._path, error)
        return self._saved

    def save(self, note: ScrubNote) -> None:
        """Replace it. On a disk that does not take it the next start only has more to look at."""
        if note == self._saved:
            return
        try:
            self._disk.write_durably(self._path, msgspec.json.encode(note))
        except (MQError, OSError) as error:
            _log.warning("scrub note is not saved reason=%s", error)
            return
        self._saved = note
