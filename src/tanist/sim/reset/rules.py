"""What members took and where they were moved, and what must be true of it.

O1  where a group was ordered to is where all its members go on: each of them in broadcasting mode, one of
    them a queue in clustering mode; all from there on is taken, nothing before it any more in the end, an
    order that is told again moves nothing again, no queue is stuck, and a switch undoes no order that was
    acknowledged
O2  no other group, topic or queue is moved by it; who comes back may be sent to where the group stood since
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tanist.client.queues.queue_move import QueueMove
from tanist.model.route import MessageQueue
from tanist.sim.broken import Broken
from tanist.sim.clockwork import Clockwork


class Spot(NamedTuple):
    """A queue as one group reads it."""

    group: str
    topic: str
    queue_id: int


class Given(NamedTuple):
    """An order as one queue of it was applied."""

    order_id: str
    target: int
    at_s: float


class Rules:
    """Of one history. Told of everything as it happens."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork
        self.given: dict[Spot, list[Given]] = {}
        self._acknowledged: set[str] = set()
        """Orders of which somebody was told that they are given."""
        self.lost: set[str] = set()
        """Orders that a new master had not heard of, and that were not given again since."""
        self.quiet_since_s: float | None = None
        """From when on nothing may be taken any more that lies before the last order."""
        self._taken: dict[Spot, list[tuple[float, str, int]]] = {}
        self._stood: dict[Spot, set[int]] = {}
        """Where groups stood since their last order."""
        self._moves: Counter[tuple[tuple[str, int], Spot, int]] = Counter()

    def on_applied(
        self,
        order_id: str,
        group: str,
        topic: str,
        targets: Mapping[int, int],
        *,
        before: Mapping[str, Mapping[int, int]],
        after: Mapping[str, Mapping[int, int]],
    ) -> None:
        """A broker has applied an order: what groups' offsets it had before, and has now."""
        for key in before.keys() | after.keys():
            moved = dict(before.get(key, {}).items() ^ after.get(key, {}).items())
            if moved and (key != f"{topic}@{group}" or not moved.keys() <= targets.keys()):
                raise Broken(
                    f"O2: order {order_id} for {topic}@{group} moved queues {sorted(moved)} of {key}"
                )
        self.lost.discard(order_id)
        for queue_id, target in targets.items():
            spot = Spot(group, topic, queue_id)
            self.given.setdefault(spot, []).append(Given(order_id, target, self._clockwork.now_s))
            self._stood[spot] = set()

    def on_switch(self, knows: Callable[[str], bool]) -> None:
        """Another broker is master, which knows some orders: among them all that were acknowledged."""
        unknown = {each.order_id for spot in self.given.values() for each in spot if not knows(each.order_id)}
        if lost := sorted(unknown & self._acknowledged):
            raise Broken(f"O1: {lost[0]} was acknowledged, and the new master does not know it")
        self.lost |= unknown

    def on_acknowledged(self, order_id: str) -> None:
        """Somebody is told that an order is given."""
        if order_id in self.lost:
            raise Broken(f"O1: {order_id} is acknowledged, and was not given again since a switch undid it")
        self._acknowledged.add(order_id)

    def on_stands(self, spot: Spot, offset: int) -> None:
        """A group stands elsewhere than before."""
        if (stood := self._stood.get(spot)) is not None:
            stood.add(offset)

    def on_moved(self, group: str, life: tuple[str, int], moves: Iterable[QueueMove]) -> None:
        """A member has moved, as it was told."""
        for move in moves:
            spot = Spot(group, move.queue.topic, move.queue.queue_id)
            meant = sum(given.target == move.target for given in self.given.get(spot, ()))
            if not meant and move.target in self._stood.get(spot, ()):
                continue
            if not meant:
                raise Broken(f"O2: {life[0]} goes to {move.target} in {spot}, and no order says so")
            self._moves[life, spot, move.target] += 1
            if self._moves[life, spot, move.target] > meant:
                raise Broken(f"O1: {life[0]} goes to {move.target} in {spot} again, by {meant} orders")

    def on_taken(self, group: str, member: str, queue: MessageQueue, offset: int) -> None:
        """A member begins to work on a message."""
        spot, now_s = Spot(group, queue.topic, queue.queue_id), self._clockwork.now_s
        self._taken.setdefault(spot, []).append((now_s, member, offset))
        if self.quiet_since_s is not None and now_s > self.quiet_since_s and spot in self.given:
            last = self.given[spot][-1]
            if offset < last.target:
                raise Broken(f"O1: {member} takes {offset} in {spot}, which order {last.order_id} skipped")

    def missing(self, spot: Spot, end: int, *, since: Given | None, member: str | None) -> int | None:
        """The first message that was not taken: by this member, or by any; from an order on, or ever."""
        start, since_s = (0, -1.0) if since is None else (since.target, since.at_s)
        taken = {
            offset
            for at_s, who, offset in self._taken.get(spot, ())
            if at_s >= since_s and member in (None, who)
        }
        return next((offset for offset in range(start, end) if offset not in taken), None)
