"""What this replica has to do, as the controller's answers tell. Pure.

The controller decides who is master, and a broker never promotes itself: a role changes only by a view with a
greater epoch than the one held, and than any in our own log. A view with a lower epoch comes from a
controller that is behind, or that has lost its records. It is refused, counted and told.

    view.epoch < held or < log    refused
    no master                     Elect: offer ourselves, the controller chooses; our log decides nothing here
    view.epoch > held             MasterOrder or SlaveOrder; the same master may begin a new reign
    view.epoch = held             SetOrder if we are master and the set is a newer one
"""

from dataclasses import dataclass, field

from tanist.broker.controlled.group_view import GroupView
from tanist.broker.controlled.orders import MasterOrder, RoleOrder, SetOrder, SlaveOrder


@dataclass(frozen=True, slots=True)
class Elect:
    """The group has no master: ask the controller to choose one."""


Order = RoleOrder | SetOrder | Elect


@dataclass(slots=True)
class RoleOrders:
    """One replica's. A new process holds no role, whatever it was before."""

    broker_id: int
    epoch: int = field(default=0, init=False)
    """The epoch of the last order."""
    master_id: int | None = field(default=None, init=False)
    set_epoch: int = field(default=0, init=False)
    refused_count: int = field(default=0, init=False)
    refusal: str | None = field(default=None, init=False)
    """Why the last view was refused; None if it was not."""

    @property
    def is_master(self) -> bool:
        return self.master_id == self.broker_id

    def on_view(self, view: GroupView, *, log_epoch: int) -> Order | None:
        """What a view means. ``log_epoch`` is the last epoch of our own log, 0 if there is none."""
        self.refusal = self._refusal(view, log_epoch)
        if self.refusal is not None:
            self.refused_count += 1
            return None
        if view.master_id is None:
            return Elect()
        if view.epoch > self.epoch:
            return self._take_role(view)
        if self.is_master and view.set_epoch > self.set_epoch:
            self.set_epoch = view.set_epoch
            return SetOrder(view.epoch, view.sync_state_set, view.set_epoch)
        return None

    def on_set_altered(self, set_epoch: int) -> None:
        """The controller took a set from us as master."""
        self.set_epoch = max(self.set_epoch, set_epoch)

    def _refusal(self, view: GroupView, log_epoch: int) -> str | None:
        if view.master_id is None:
            # Who registers while there is no master may be told no epoch at all.
            return self._behind("epoch", view.epoch, self.epoch) if view.epoch else None
        if behind := self._behind("epoch", view.epoch, self.epoch):
            return behind
        if view.epoch < log_epoch:
            return (
                f"the controller tells epoch {view.epoch} and our log has {log_epoch}: its records are not "
                "those of this log; use the controller that gave it, or another store"
            )
        if view.master_id == self.broker_id and self.broker_id not in view.sync_state_set:
            return f"the controller tells us master, and the set {sorted(view.sync_state_set)} without us"
        if view.epoch == self.epoch and view.master_id != self.master_id:
            return (
                f"the controller tells master {view.master_id} of epoch {view.epoch}, which was "
                f"{self.master_id} before: there are two records of this group"
            )
        is_ours = self.is_master and view.epoch == self.epoch
        return self._behind("set epoch", view.set_epoch, self.set_epoch) if is_ours else None

    @staticmethod
    def _behind(what: str, told: int, held: int) -> str | None:
        return f"the controller tells {what} {told} after {held}: it is behind" if told < held else None

    def _take_role(self, view: GroupView) -> RoleOrder:
        assert view.master_id is not None
        self.epoch, self.master_id, self.set_epoch = view.epoch, view.master_id, view.set_epoch
        if self.is_master:
            return MasterOrder(view.epoch, view.sync_state_set, view.set_epoch)
        return SlaveOrder(view.epoch, view.master_id, view.master, view.master_address)
