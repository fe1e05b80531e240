"""Who became what: the changes of role that the console saw from one look to the next. Pure."""

from collections import deque

import msgspec

from tanist.console.watching.snapshot import BrokerLook, Snapshot

KEPT_CHANGES = 100


class RoleChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One broker that is something else than before."""

    at_ms: int
    """When it was seen, at most a look after it happened."""
    group: str
    address: str
    before: str
    after: str
    epoch: int | None = None


class RoleWatch:
    """Remembers what each broker was."""

    def __init__(self) -> None:
        self._roles: dict[str, str] = {}
        self._changes: deque[RoleChange] = deque(maxlen=KEPT_CHANGES)

    @property
    def changes(self) -> list[RoleChange]:
        """The newest first."""
        return list(reversed(self._changes))

    def on_snapshot(self, snapshot: Snapshot) -> None:
        roles = {look.address: role_of(look) for look in snapshot.brokers}
        for look in snapshot.brokers:
            before, after = self._roles.get(look.address), roles[look.address]
            if before is not None and before != after:
                controlled = None if look.ha is None else look.ha.controlled
                self._changes.append(
                    RoleChange(
                        at_ms=snapshot.taken_ms,
                        group=look.name,
                        address=look.address,
                        before=before,
                        after=after,
                        epoch=None if controlled is None else controlled.epoch,
                    )
                )
        self._roles = roles


def role_of(look: BrokerLook) -> str:
    """What a broker is, in a word or two."""
    if not look.is_up:
        return "gone"
    if look.is_read_slave:
        return "slave that is read"
    return "master" if look.is_master else "slave"
