"""The members of a group, as a broker that has only just begun to be read should be taken to know them. Pure.

Members introduce themselves to such a broker one after the other. Whoever came first would see nobody else,
take the others' queues, and read what they have in hand. So for a while those count as members that did so
before, also where the broker does not list them.
"""

from collections.abc import Collection

SETTLE_S = 10.0


class SettledMembers:
    """The members of one group, topic by topic, as one of them sees them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self._settles_s = 0.0

    def on_reader(self, now_s: float) -> None:
        """Another replica of some broker is read from now on."""
        self._settles_s = now_s + SETTLE_S

    def take(self, topic: str, listed: Collection[str], now_s: float) -> tuple[list[str], bool]:
        """Those that count, as a broker lists these; and whether all of them are listed."""
        missing: list[str] = []
        if now_s < self._settles_s:
            missing = [member for member in self._known.get(topic, ()) if member not in listed]
        members = [*listed, *missing]
        self._known[topic] = tuple(members)
        return members, not missing
