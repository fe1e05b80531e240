"""Who consumes at a broker now: what it tells the one that is read after it. Pure.

Consumers come to their new broker one after the other. Without knowing who else will come, the first one is
given all queues, and consumes what another member still holds.
"""

from collections.abc import Iterable, Mapping

import msgspec

from tanist.model.route import MessageQueue
from tanist.protocol.ha_link import MAX_NOTE_BYTES

MAX_VIEW_BYTES = MAX_NOTE_BYTES * 3 // 8
"""As it travels: a note has room for it beside offsets. Groups for which there is none are left out whole."""


class HeldLock(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A queue that one member consumes in order."""

    queue: MessageQueue
    client_id: str
    left_ms: int
    """How long the lock lives if nobody renews it."""


class LiveView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The members, topics and locks of groups, by their name; of groups that broadcast nothing."""

    members: Mapping[str, tuple[str, ...]] = {}
    """The client ids."""
    topics: Mapping[str, tuple[str, ...]] = {}
    """What the members want."""
    locks: Mapping[str, tuple[HeldLock, ...]] = {}


NOBODY = LiveView()


def bounded(view: LiveView, *, max_bytes: int = MAX_VIEW_BYTES) -> LiveView:
    """As much of a view as is told at most: first the members, and then the locks, of whole groups."""
    members: dict[str, tuple[str, ...]] = {}
    topics: dict[str, tuple[str, ...]] = {}
    locks: dict[str, tuple[HeldLock, ...]] = {}
    room = max_bytes
    for group, client_ids in view.members.items():
        wanted = view.topics.get(group, ())
        size = len(msgspec.json.encode((group, client_ids, group, wanted)))
        if size <= room:
            members[group] = client_ids
            if wanted:
                topics[group] = wanted
            room -= size
    for group, held in view.locks.items():
        size = len(msgspec.json.encode((group, held)))
        if size <= room:
            locks[group] = held
            room -= size
    return LiveView(members=members, topics=topics, locks=locks)


class ExpectedMembers:
    """Who was a member where the groups were read before, and has not come yet."""

    def __init__(self) -> None:
        self._by_group: dict[str, set[str]] = {}

    def expect(self, members: Mapping[str, Iterable[str]]) -> None:
        """Expect these from now on, and nobody else."""
        self._by_group = {group: set(client_ids) for group, client_ids in members.items()}

    def missing(self, group: str) -> set[str]:
        return self._by_group.get(group, set())

    def on_came(self, group: str, client_id: str) -> None:
        expected = self._by_group.get(group)
        if expected is not None:
            expected.discard(client_id)
            if not expected:
                del self._by_group[group]

    def end(self) -> list[str]:
        """Expect nobody any more. Returns the groups of which somebody did not come."""
        groups = list(self._by_group)
        self._by_group.clear()
        return groups
