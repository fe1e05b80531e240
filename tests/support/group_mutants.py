"""Planted bugs of a group under a controller, each as the machines of a simulation that has to find it."""

from collections.abc import Iterable
from dataclasses import replace

from tanist.broker.controlled.group_view import GroupView
from tanist.broker.controlled.role_orders import Order, RoleOrders
from tanist.controller.decisions import Decision
from tanist.controller.election import Situation, elect
from tanist.controller.group_record import GroupRecord
from tanist.controller.leases import Leases
from tanist.ha.actions import SlaveAction
from tanist.ha.master_link import MasterLink
from tanist.ha.slave_link import SlaveLink, SlaveState
from tanist.model.epochs import Epoch, EpochHistory
from tanist.protocol.headers.controller import ElectMasterRequest
from tanist.sim.group.disk import PlayedDisk


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


class WaitsForNoLease(Leases):
    """A controller that begins to lead does not know that leases may run, and elects at once."""

    def begin(self, records: Iterable[GroupRecord], *, now_s: float) -> None:
        super().begin([], now_s=now_s)


class StaysInItsReign(RoleOrders):
    """A master that is elected again reigns on as it did."""

    __slots__ = ()

    def on_view(self, view: GroupView, *, log_epoch: int) -> Order | None:
        if view.master_id == self.master_id == self.broker_id and view.epoch > self.epoch:
            self.epoch = view.epoch
            return None
        return super().on_view(view, log_epoch=log_epoch)


def elect_anybody(record: GroupRecord | None, request: ElectMasterRequest, situation: Situation) -> Decision:
    """Whoever is alive may be master if nobody of the set is."""
    return elect(record, request, replace(situation, allows_unclean=True))
