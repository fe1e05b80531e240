"""Which replicas are alive: they told so within the time that they said they would.

Pure; the time comes in. Every deadline is exact: ``next_deadline_s`` says when to call ``on_tick``. A replica
whose broker gives no ``session_id`` has no lease, so it is gone when its connection is. One that has a
session may be serving behind a broken connection: only its deadline or a report of its death ends it.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tanist.controller.group_record import DEFAULT_LEASE_MS, MAX_TEXT_CHARS, require_short
from tanist.errors import ResponseError
from tanist.model.integers import INT32_MAX
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.controller import BrokerHeartbeatRequest

MAX_REPLICAS = 10_000
"""Of all groups together."""
MIN_TIMEOUT_MS = 50
MAX_TIMEOUT_MS = 600_000
_MAX_DEAD = 1024
"""Sessions that are known to be over and are remembered."""
_STALL_S = 0.25
"""A tick that comes later than this finds heartbeats unread: we were stopped, not they."""
_GRACE_S = 0.25
"""The time to read them then."""


@dataclass(frozen=True, slots=True)
class Live:
    """One replica, as its newest heartbeat describes it. What it says replaces all that it said before."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    epoch: int
    log_end: int
    confirmed_to: int
    priority: int
    timeout_ms: int
    session: str | None
    ha_address: str | None
    tables_gap: str | None
    damage: str | None
    connection: object
    deadline_s: float


class LiveTable:
    """The replicas of all groups that are alive."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[int, Live]] = {}
        self._of_connections: dict[object, set[tuple[str, int]]] = {}
        self._dead: deque[str] = deque(maxlen=_MAX_DEAD)
        self._count = 0
        self._is_in_grace = False

    def members(self, broker_name: str) -> Mapping[int, Live]:
        """Those of one group, by their ids."""
        return self._groups.get(broker_name, {})

    @property
    def count(self) -> int:
        """How many are alive, of all groups together."""
        return self._count

    @property
    def next_deadline_s(self) -> float | None:
        """When the next of them is dead if nothing is heard."""
        return min(
            (live.deadline_s for members in self._groups.values() for live in members.values()), default=None
        )

    def on_heartbeat(
        self, heartbeat: BrokerHeartbeatRequest, connection: object, *, now_s: float
    ) -> tuple[Live, bool]:
        """Take a heartbeat in; whose it is, and whether it, or this start of it, was not known to be alive.

        Raises ResponseError if it makes no sense.
        """
        live = _read(heartbeat, connection, now_s)
        if live.session is not None and self.is_dead(live.session):
            # It was on its way when its sender died.
            raise ResponseError(
                ResponseCode.CONTROLLER_BROKER_NOT_ALIVE, "the process of this session was seen to end"
            )
        before = self.members(live.broker_name).get(live.broker_id)
        if before is None and self._count >= MAX_REPLICAS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY, f"{MAX_REPLICAS} replicas are alive, no more are watched"
            )
        if before is not None:
            self._forget(before)
        self._groups.setdefault(live.broker_name, {})[live.broker_id] = live
        self._of_connections.setdefault(connection, set()).add((live.broker_name, live.broker_id))
        self._count += 1
        return live, before is None or before.session != live.session

    def on_connection_lost(self, connection: object) -> list[Live]:
        """A connection ended: those whose newest heartbeat came on it and who have no session are gone."""
        gone = [
            live
            for name, broker_id in self._of_connections.get(connection, ())
            if (live := self._groups[name][broker_id]).session is None
        ]
        for live in gone:
            self._forget(live)
        return gone

    def on_dead(self, session: str) -> list[Live]:
        """Somebody saw the process of this session end. Raises ResponseError if it can not be one."""
        require_short(session)
        if session not in self._dead:
            self._dead.append(session)
        return self._drop([live for live in self.all() if live.session == session])

    def is_dead(self, session: str) -> bool:
        """Whether the process of this session was seen to end."""
        return session in self._dead

    def on_registered(self, broker_name: str, broker_id: int) -> None:
        """A replica has just started: a heartbeat of it without a session is of its former life."""
        live = self.members(broker_name).get(broker_id)
        if live is not None and live.session is None:
            self._forget(live)

    def on_tick(self, *, now_s: float) -> list[Live]:
        """Those who were silent for too long are gone; if we were stopped, they get a moment more, once."""
        due_s = self.next_deadline_s
        if due_s is None or now_s < due_s:
            self._is_in_grace = False
            return []
        overdue = [live for live in self.all() if live.deadline_s <= now_s]
        if now_s - due_s > _STALL_S and not self._is_in_grace:
            self._is_in_grace = True
            for live in overdue:
                late = replace(live, deadline_s=now_s + _GRACE_S)
                self._groups[live.broker_name][live.broker_id] = late
            return []
        self._is_in_grace = False
        return self._drop(overdue)

    def all(self) -> list[Live]:
        """Those of all groups."""
        return [live for members in self._groups.values() for live in members.values()]

    def _drop(self, gone: list[Live]) -> list[Live]:
        for live in gone:
            self._forget(live)
        return gone

    def _forget(self, live: Live) -> None:
        self._count -= 1
        members = self._groups[live.broker_name]
        del members[live.broker_id]
        if not members:
            del self._groups[live.broker_name]
        places = self._of_connections[live.connection]
        places.discard((live.broker_name, live.broker_id))
        if not places:
            del self._of_connections[live.connection]


def _read(heartbeat: BrokerHeartbeatRequest, connection: object, now_s: float) -> Live:
    if heartbeat.broker_id is None or heartbeat.broker_id < 1:
        raise ResponseError(
            ResponseCode.CONTROLLER_INVALID_REQUEST,
            f"a heartbeat to a controller has a brokerId from 1, not {heartbeat.broker_id}",
        )
    timeout_ms = (
        DEFAULT_LEASE_MS if heartbeat.heartbeat_timeout_ms is None else heartbeat.heartbeat_timeout_ms
    )
    if not MIN_TIMEOUT_MS <= timeout_ms <= MAX_TIMEOUT_MS:
        raise ResponseError(
            ResponseCode.CONTROLLER_INVALID_REQUEST,
            f"heartbeatTimeoutMills={timeout_ms} is not within {MIN_TIMEOUT_MS} to {MAX_TIMEOUT_MS}",
        )
    require_short(
        *(heartbeat.cluster_name, heartbeat.broker_name, heartbeat.broker_addr),
        *(text for text in (heartbeat.session_id, heartbeat.ha_address) if text),
    )
    priority = heartbeat.election_priority
    return Live(
        cluster=heartbeat.cluster_name,
        broker_name=heartbeat.broker_name,
        broker_id=heartbeat.broker_id,
        address=heartbeat.broker_addr,
        epoch=heartbeat.epoch or 0,
        log_end=heartbeat.log_end or 0,
        confirmed_to=heartbeat.confirmed_to or 0,
        priority=INT32_MAX if priority is None else priority,
        timeout_ms=timeout_ms,
        session=heartbeat.session_id or None,
        ha_address=heartbeat.ha_address or None,
        tables_gap=(heartbeat.tables_gap or "")[:MAX_TEXT_CHARS] or None,
        damage=(heartbeat.damage or "")[:MAX_TEXT_CHARS] or None,
        connection=connection,
        deadline_s=now_s + timeout_ms / 1000,
    )
