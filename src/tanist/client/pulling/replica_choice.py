"""Which replica of a broker a queue is read from. Pure: the caller says what happened, and when.

    MASTER --refused, lost, or gone from the route--> another replica, the one with the least id first
    MASTER --suggests a slave--> that slave
    SLAVE --suggests the master; or the master is new in the route, or has rested--> MASTER

A replica that refused or was lost rests: it is not asked for a while, a longer one each time, unless
all others rest too. Its rest ends early if the route gives it a new address, and a refusal's also if
another replica refuses in favour of it: who may be read has changed then. A suggestion that comes with an
answer ends no rest, because a slave of RocketMQ suggests its master whatever became of that. Where a
coordinator says who is read, that one has the master's place, and rests no more when it is named.

``choose`` names one replica. That no two are read at a time is the caller's part: a queue has one fetch
under way at most, and the next replica is chosen when that one is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tanist.model.route import MASTER_ID

FIRST_REST_S = 1.0
MOST_REST_S = 30.0

_NO_REPLICAS: Mapping[int, str] = {}


@dataclass(slots=True)
class _Rest:
    """Why and until when a replica is not asked."""

    until_s: float
    length_s: float
    is_lost: bool


@dataclass(slots=True)
class ReplicaChoice:
    """The choice for one queue. Begins with the master."""

    _wanted: int = field(default=MASTER_ID, init=False)
    _replicas: Mapping[int, str] = field(default_factory=lambda: _NO_REPLICAS, init=False)
    _rests: dict[int, _Rest] = field(default_factory=dict[int, _Rest], init=False)

    def choose(self, now_s: float) -> int | None:
        """The id of the replica to read from now; None if the route has none."""
        if self._wanted in self._replicas and not self._rests:
            return self._wanted
        awake = [broker_id for broker_id in self._replicas if not self._is_resting(broker_id, now_s)]
        if self._wanted in awake:
            return self._wanted
        if awake:
            return min(awake)
        return min(self._replicas, key=lambda resting: (self._rests[resting].until_s, resting), default=None)

    def on_route(self, replicas: Mapping[int, str]) -> None:
        """The route names these replicas, by id and address. What is new in it, or moved, rests no more."""
        before = self._replicas
        if replicas is before or replicas == before:
            return
        self._replicas = replicas
        for broker_id in [known for known in self._rests if replicas.get(known) != before.get(known)]:
            del self._rests[broker_id]
        if replicas.get(MASTER_ID) != before.get(MASTER_ID):
            self._wanted = MASTER_ID

    def on_answer(self, broker_id: int, suggested: int) -> None:
        """A replica answered, and said which one to read from next."""
        self._rests.pop(broker_id, None)
        self._wanted = suggested

    def on_reader(self) -> None:
        """It is known again who may be read, and that one is in the master's place."""
        self._rests.pop(MASTER_ID, None)
        self._wanted = MASTER_ID

    def on_refused(self, broker_id: int, suggested: int | None, now_s: float) -> None:
        """A replica does not let us read; it may have said which one does."""
        self._rest(broker_id, now_s, is_lost=False)
        if suggested is None or suggested == broker_id:
            self._wanted = MASTER_ID
            return
        self._wanted = suggested
        rest = self._rests.get(suggested)
        if rest is not None and not rest.is_lost:
            del self._rests[suggested]

    def on_lost(self, broker_id: int, now_s: float) -> None:
        """A replica can not be reached, or does not answer."""
        self._rest(broker_id, now_s, is_lost=True)
        if self._wanted == broker_id:
            self._wanted = MASTER_ID

    def _is_resting(self, broker_id: int, now_s: float) -> bool:
        rest = self._rests.get(broker_id)
        return rest is not None and now_s < rest.until_s

    def _rest(self, broker_id: int, now_s: float, *, is_lost: bool) -> None:
        before = self._rests.get(broker_id)
        length_s = FIRST_REST_S if before is None else min(MOST_REST_S, before.length_s * 2)
        self._rests[broker_id] = _Rest(now_s + length_s, length_s, is_lost)
