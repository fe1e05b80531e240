"""Topics that were deleted while the log still holds their messages.

The log can not give single messages back, so a deletion is a place in it: what a topic has before
that place is gone for everybody, what comes behind it is the topic's that was made again under the
name. The queues go on counting, so no offset ever means two messages, and indexes that are built
again from the log come out the same. A place that the log has not (any more) is moved to where the
log ends or forgotten where it begins, before anything new is written.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.protocol.java_json import BAD_JSON
from tanist.store.backed_file import BackedFile
from tanist.store.disk import Disk

FILE_NAME = "deletedTopics"
"""In the store's root. RocketMQ ignores it."""


class Deletions:
    """Where in the log each deleted topic was deleted last. Every change is on disk before it counts."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._file = BackedFile(disk, root / FILE_NAME)
        self._places: dict[str, int] = {}

    @property
    def places(self) -> Mapping[str, int]:
        """Where each topic was deleted. Never changed, only replaced."""
        return self._places

    def load(self) -> None:
        self._places = self._file.load(decode_deletions) or {}

    def first_kept(self, topic: str, log_start: int) -> int:
        """The first byte of the log in which the topic may have a message."""
        return max(log_start, self._places.get(topic, 0))

    def add(self, topics: Collection[str], log_end: int) -> None:
        """These topics lose all that the log holds now."""
        self._save(self._places | dict.fromkeys(topics, log_end))

    def merge(self, places: Mapping[str, int]) -> None:
        """Those of a master count too; what it has forgotten may still hide something here."""
        later = {topic: max(place, self._places.get(topic, 0)) for topic, place in places.items()}
        self._save(self._places | later)

    def cut(self, log_offset: int) -> None:
        """The log ends here now. What is written from here on was never deleted."""
        self._save({topic: min(place, log_offset) for topic, place in self._places.items()})

    def raise_start(self, log_start: int) -> None:
        """The log begins here now: deletions before it have nothing left to hide."""
        self._save({topic: place for topic, place in self._places.items() if place > log_start})

    def _save(self, places: dict[str, int]) -> None:
        if places != self._places:
            self._file.save(msgspec.json.format(msgspec.json.encode(places, order="sorted"), indent=1))
            self._places = places


def decode_deletions(data: bytes) -> dict[str, int]:
    """Raises RemoteProtocolError for anything but a table of places by topic."""
    try:
        return msgspec.json.decode(data, type=dict[str, int])
    except BAD_JSON as error:
        raise RemoteProtocolError(f"no table of deleted topics: {error}") from error
