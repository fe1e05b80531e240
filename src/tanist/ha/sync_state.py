"""Which replicas are in step with a master of one epoch, and up to where all of them hold its log. Pure.

                 wish differs from members              confirmed by the controller
    settled ---------------Propose---------> open ---------------on_answer--------------> settled
                                              |---on_refused: withdrawn, tried again later-> settled
                                              `---on_unanswered: in doubt, asked again-----> settled

The set belongs to the controller, which elects a successor from it; the master proposes. While a proposal is
open the controller may have taken it already, so the replicas that count are those of the set and those of
the proposal. A replica that leaves counts until the controller has confirmed that, and one that joins counts
from before it is asked. So whoever may be elected always holds all up to ``confirmed_to``:

    confirmed_to <= acked_to of each replica that counts, at the moment in which it last rose

It never falls, and it stays where it is while a replica that counts has no connection. A proposal to which
no answer came may be taken at any time later, so the replicas it adds count until a newer set is known.

A replica joins when it is no learner and has acked all that is confirmed, the beginning of the epoch, and
what was the log's end at an earlier look. RocketMQ compares with the log's end at the last time it sent
something, which under load a replica that is always a frame behind never reaches.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tanist.protocol.codes import ResponseCode

RETRY_S = 1.0
"""So long after a proposal failed the next one is made."""
JOIN_AGAIN_S = 5.0
"""So long a replica that the controller does not know, or takes for dead, is not proposed again."""
_FIRST_ID = 1
_UNFIT = frozenset({ResponseCode.CONTROLLER_INVALID_REPLICAS, ResponseCode.CONTROLLER_BROKER_NOT_ALIVE})
_DECIDED = _UNFIT | {
    ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
    ResponseCode.CONTROLLER_INVALID_MASTER,
    ResponseCode.CONTROLLER_INVALID_REQUEST,
    ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
    ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
}
"""By these a controller says that it looked at the proposal and leaves the set as it is.

That there is a newer set by now is not one of them: a controller that lost its lead meanwhile may have made
it out of this very proposal, which was then sent to the next one.
"""
_UNCHANGED = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the controller to change the set with this epoch to these replicas; then tell what it said."""

    members: frozenset[int]
    set_epoch: int


class SyncState:
    """The sync state set of one master, for as long as its epoch lasts."""

    def __init__(
        self,
        own_id: int,
        *,
        epoch: int,
        epoch_start: int,
        members: Iterable[int],
        set_epoch: int,
        confirmed_to: int,
        max_behind_s: float,
        now_s: float,
    ) -> None:
        self.own_id = own_id
        self.epoch = epoch
        self.members = frozenset(members)
        """Those that the controller has confirmed."""
        self.set_epoch = set_epoch
        self.counted = self.members
        """Those that may be in the controller's set; this master is always among them."""
        self.confirmed_to = confirmed_to
        """All that may be elected hold the log up to here."""
        self.is_linked = False
        """Whether all others that count are connected, so that all of them can ack what is written now."""
        self._epoch_start = epoch_start
        self._max_behind_s = max_behind_s
        self._begun_s = now_s
        self._held_to = confirmed_to
        self._peers: dict[int, _Peer] = {}
        self._lost: set[int] = set()
        self._others: tuple[int, ...] = ()
        self._proposed: frozenset[int] | None = None
        self._doubtful: frozenset[int] = frozenset()
        self._is_asking = False
        self._next_s = now_s
        self._join_s: dict[int, float] = {}
        self._recount()

    @property
    def missing(self) -> list[int]:
        """Which of those that count have no connection."""
        return [broker_id for broker_id in self._others if self._counted_peer(broker_id) is None]

    # What happens to the log and to the links.

    def on_held(self, held_to: int) -> None:
        """This master's own log reaches so far, on the disk where its broker flushes before it answers."""
        if held_to > self._held_to:
            self._held_to = held_to
            self._confirm()

    def on_joined(
        self,
        broker_id: int | None,
        *,
        acked_to: int,
        log_end: int,
        now_s: float,
        held_from: int = 0,
        is_learner: bool = False,
    ) -> Propose | None:
        """A replica is connected, and holds the log up to ``acked_to``."""
        if broker_id is None or broker_id < _FIRST_ID or broker_id == self.own_id:
            return None
        self._peers[broker_id] = peer = _Peer(acked_to, held_from, is_learner, log_end, now_s)
        peer.look(log_end, now_s)
        self._lost.discard(broker_id)
        self._recount()
        return self._propose(now_s)

    def on_left(self, broker_id: int | None, *, now_s: float) -> Propose | None:
        """A replica's connection is closed."""
        if broker_id is None or self._peers.pop(broker_id, None) is None:
            return None
        self._join_s.pop(broker_id, None)
        self._lost.add(broker_id)
        self._recount()
        return self._propose(now_s)

    def on_ack(self, broker_id: int | None, acked_to: int, *, log_end: int, now_s: float) -> Propose | None:
        """A replica has acked on its connection. That it can not be more than was sent, its link sees to."""
        peer = None if broker_id is None else self._peers.get(broker_id)
        if peer is None:
            return None
        peer.acked_to = max(peer.acked_to, acked_to)
        peer.look(log_end, now_s)
        self._confirm()
        return None if broker_id in self.members else self._propose(now_s)

    def on_tick(self, *, log_end: int, now_s: float) -> Propose | None:
        """Look who has been behind for too long; to be called a few times in that time, and each second."""
        for peer in self._peers.values():
            peer.look(log_end, now_s)
        return self._propose(now_s)

    # What the controller says.

    def on_answer(self, members: Iterable[int], set_epoch: int, *, now_s: float) -> Propose | None:
        """The proposal is confirmed."""
        self._is_asking = False
        self._take(frozenset(members), set_epoch)
        self._withdraw()
        return self._propose(now_s)

    def on_refused(self, code: int, *, now_s: float) -> None:
        """The proposal is refused. The caller then asks which set is in force.

        With a code that tells of a fault on the way it is as good as unanswered: one that lost the lead, or
        its registry, does not know what became of what it was about to write.
        """
        if not self._is_asking:
            return
        if code not in _DECIDED:
            self.on_unanswered(now_s=now_s)
            return
        proposed = self._proposed
        if proposed is not None and code in _UNFIT:
            self._join_s.update(dict.fromkeys(proposed - self.members, now_s + JOIN_AGAIN_S))
        if code == _UNCHANGED and proposed == self.members:
            # RocketMQ's controller refuses the set that it has. So it has this one, and we know.
            self._doubtful = frozenset()
        self._is_asking = False
        self._next_s = now_s + RETRY_S
        self._withdraw()

    def on_unanswered(self, *, now_s: float) -> None:
        """No answer came: the proposal may have been taken, or may be later."""
        if not self._is_asking:
            return
        if self._proposed is not None:
            self._doubtful |= self._proposed - self.members
        self._is_asking = False
        self._next_s = now_s + RETRY_S
        self._withdraw()

    def on_set_told(self, members: Iterable[int], set_epoch: int, *, now_s: float) -> Propose | None:
        """The controller tells the set of this epoch; only a newer one is news."""
        if self._take(frozenset(members), set_epoch):
            self._next_s = now_s
        return self._propose(now_s)

    # Inside

    def _take(self, members: frozenset[int], set_epoch: int) -> bool:
        if set_epoch <= self.set_epoch:
            return False
        self.members, self.set_epoch = members, set_epoch
        # What was proposed for an older set can not be taken any more.
        self._doubtful = frozenset()
        self._withdraw()
        return True

    def _withdraw(self) -> None:
        self._proposed = None
        self._recount()

    def _propose(self, now_s: float) -> Propose | None:
        """Ask for the set as it should be now, if nothing is asked already."""
        if self._is_asking or now_s < self._next_s:
            return None
        wish = self._wish(now_s)
        # In doubt the same set is proposed: if the controller takes it, what came before can not be taken.
        if wish == self.members and not self._doubtful:
            return None
        self._is_asking = True
        self._proposed = wish
        self._recount()
        return Propose(wish, self.set_epoch)

    def _wish(self, now_s: float) -> frozenset[int]:
        kept = {broker_id for broker_id in self.members if not self._is_to_leave(broker_id, now_s)}
        kept.add(self.own_id)
        # One at a time, so that one whom the controller does not know keeps no other out.
        joining = [broker_id for broker_id in self._peers if self._may_join(broker_id, now_s)]
        kept.update(sorted(joining, key=lambda broker_id: self._join_s.get(broker_id, 0.0))[:1])
        return frozenset(kept)

    def _is_to_leave(self, broker_id: int, now_s: float) -> bool:
        peer = self._peers.get(broker_id)
        if peer is None:
            # One that was never here may be on its way; one whose connection closed had it until now.
            return broker_id in self._lost or now_s - self._begun_s > self._max_behind_s
        if peer.is_learner:
            return True
        return peer.behind_since_s is not None and now_s - peer.behind_since_s > self._max_behind_s

    def _may_join(self, broker_id: int, now_s: float) -> bool:
        peer = self._peers[broker_id]
        return (
            broker_id not in self.members
            and not peer.is_learner
            and peer.has_been_level
            and peer.held_from <= self.confirmed_to
            and peer.acked_to >= max(self.confirmed_to, self._epoch_start)
            and now_s >= self._join_s.get(broker_id, now_s)
        )

    def _counted_peer(self, broker_id: int) -> "_Peer | None":
        peer = self._peers.get(broker_id)
        return None if peer is None or peer.is_learner else peer

    def _recount(self) -> None:
        self.counted = self.members | (self._proposed or frozenset()) | self._doubtful | {self.own_id}
        self._others = tuple(sorted(self.counted - {self.own_id}))
        self._lost &= self.counted
        self.is_linked = not self.missing
        self._confirm()

    def _confirm(self) -> None:
        """Raise ``confirmed_to`` to what all that count hold, if all of them are there."""
        if not self.is_linked:
            return
        held_to = self._held_to
        for broker_id in self._others:
            held_to = min(held_to, self._peers[broker_id].acked_to)
        self.confirmed_to = max(self.confirmed_to, held_to)


class _Peer:
    """One connected replica. From time to time it is noted where the log ends, to see it get there."""

    def __init__(self, acked_to: int, held_from: int, is_learner: bool, log_end: int, now_s: float) -> None:
        self.acked_to = acked_to
        self.held_from = held_from
        self.is_learner = is_learner
        self.has_been_level = False
        """Whether it ever had all that was the log's end at an earlier look."""
        self.behind_since_s: float | None = now_s
        """Since when it lacks something, as looks have shown it; None if it lacked nothing at the last."""
        self._mark = log_end
        self._marked_s = now_s

    def look(self, log_end: int, now_s: float) -> None:
        if self.acked_to >= log_end:
            self.behind_since_s = None
        elif self.behind_since_s is None:
            self.behind_since_s = now_s
        elif self.acked_to >= self._mark:
            # When that was noted it was the log's end: what it lacks now came later.
            self.behind_since_s = self._marked_s
        if self.acked_to >= self._mark:
            self.has_been_level = True
            self._mark, self._marked_s = log_end, now_s
