"""Planted bugs of a group under a controller, each as the machines of a simulation that has to find it."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from tanist.broker.controlled.group_view import GroupView
from tanist.broker.controlled.role_orders import Order, RoleOrders
from tanist.controller.election import Situation
from tanist.controller.group_record import GroupRecord
from tanist.controller.leading import Leading
from tanist.controller.leases import Leases
from tanist.controller.reigns import Reigns
from tanist.coord import Check, SessionState
from tanist.coord.zookeeper_registry import ZooKeeperRegistry
from tanist.coord.zookeeper_watch import ZooKeeperWatch
from tanist.ha.actions import SlaveAction
from tanist.ha.master_link import MasterLink
from tanist.ha.slave_link import SlaveLink, SlaveState
from tanist.model.epochs import Epoch, EpochHistory
from tanist.sim.group.disk import PlayedDisk
from tanist.sim.group.zookeeper import Connection, Node, PlayedZooKeeper


class BelievesAnyAck(MasterLink):
    """What a slave acks is taken as it comes."""

    __slots__ = ()

    def _fault(self, frame: object) -> str | None:
        return None


class CutsWithoutNote(PlayedDisk):
    """A cut only forgets: the bytes stay on the disk, and nothing tells where the log ends."""

    def begin_cut(self, log_offset: int) -> None:
        self._cut(log_offset)

    def finish_cut(self) -> None:
        self.note = None


class ForgetsItsEpoch(PlayedDisk):
    """The newest epoch is not on the disk when its bytes are."""

    def recover(self) -> None:
        super().recover()
        self.epochs = EpochHistory(self.epochs.epochs[:-1])


class SaysFlushedBefore(PlayedDisk):
    """What is not on the disk counts as if it were."""

    def flush(self, log_offset: int) -> None:
        self.flushed_to = max(self.flushed_to, min(log_offset, self.log_end))


class GoesOnInTheOldEpoch(PlayedDisk):
    """A reign that begins where the last one wrote nothing keeps the number of that."""

    def begin_epoch(self, epoch: int, start: int) -> None:
        last = self.epochs.last
        if last is None or last.start != start:
            super().begin_epoch(epoch, start)


class CutsNothing(SlaveLink):
    """It says that its log is cut, and keeps it."""

    __slots__ = ()

    def _on_align_first(self, epochs: tuple[Epoch, ...]) -> list[SlaveAction]:
        actions = super()._on_align_first(epochs)
        return [*actions[:-1], *self.on_truncated()] if self.state is SlaveState.CUTTING else actions


class KnowsItsFirstEpochOnly(SlaveLink):
    """It looks for the place where both logs agree among too few epochs."""

    __slots__ = ()

    def _on_align_first(self, epochs: tuple[Epoch, ...]) -> list[SlaveAction]:
        self.log = replace(self.log, epochs=EpochHistory(self.log.epochs.epochs[:1]))
        return super()._on_align_first(epochs)


class _NoLeases(Leases):
    def begin(self, records: Iterable[GroupRecord], *, now_s: float) -> None:
        super().begin([], now_s=now_s)


class WaitsForNoLease(Reigns):
    """A controller that begins to lead does not know that leases may run, and elects at once."""

    def on_begin(self) -> None:
        self._leases = _NoLeases()
        super().on_begin()


class ElectsAnybody(Reigns):
    """Whoever is alive may be master if nobody of the set is."""

    def situation(self, record: GroupRecord | None) -> Situation:
        return replace(super().situation(record), allows_unclean=True)


class ElectsAtOnce(Reigns):
    """A master that is silent is replaced although its lease may run."""

    def situation(self, record: GroupRecord | None) -> Situation:
        return replace(super().situation(record), lease_end_s=0.0)


class BelievesItsSession(Leading):
    """It leads as long as nobody has told it that its session is over."""

    @property
    def is_leading(self) -> bool:
        return self._has_begun and self._registry is not None


class WritesUnfenced(Leading):
    """What it writes is not checked against who leads."""

    @property
    def fence(self) -> tuple[Check, Check]:
        return Check("/", -1), Check("/", -1)  # Whatever version it has.


class HeldForTooLong(ZooKeeperRegistry):
    """It counts on its session for longer than the registry waits for it."""

    @property
    def held_until_s(self) -> float:
        return super().held_until_s + self.timeout_s


class WatchesOnce(ZooKeeperRegistry):
    """Its watches are set once, and again when the connection is back, but not after an event."""

    def watch(self, path: str, listener: Callable[[], None]) -> ZooKeeperWatch:
        watch = super().watch(path, listener)
        watch._on_event = lambda _event: None
        return watch


class WatchesOneConnection(ZooKeeperRegistry):
    """Its watches are not set again on a new connection."""

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            super()._on_session(state)


class OutlivesItsSession(PlayedZooKeeper):
    """What is ephemeral stays when its session ends."""

    def _goes(self, node: Node, session: int) -> bool:
        return False


class DiesWithItsConnection(PlayedZooKeeper):
    """What is ephemeral goes with the connection, and not with the session."""

    def hang_up(self, connection: Connection) -> None:
        super().hang_up(connection)
        if connection.session in self._sessions:
            self.end(connection.session)

    def connect(self, connection: Connection, session: int) -> int | None:
        if session in self._sessions:
            nodes = {path: node for path, node in self.nodes.items() if node.owner != session}
            if len(nodes) < len(self.nodes):
                self._change(nodes, None)
        return super().connect(connection, session)


class StaysInItsReign(RoleOrders):
    """A master that is elected again reigns on as it did."""

    __slots__ = ()

    def on_view(self, view: GroupView, *, log_epoch: int) -> Order | None:
        if view.master_id == self.master_id == self.broker_id and view.epoch > self.epoch:
            self.epoch = view.epoch
            return None
        return super().on_view(view, log_epoch=log_epoch)
