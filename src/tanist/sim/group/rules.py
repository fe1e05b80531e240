"""What must hold in a group under a controller, whatever befalls it.

    S1   what was acknowledged is in the log of every master after that, at the offset that was told
    S2   no place of the log that was shown ever shows something else
    S3   an epoch has one master, and epochs only rise
    S4   what is confirmed never falls in an epoch, and all that may be elected hold it as safely as promised
    S5   nothing is shown that is not confirmed
    S7   whoever is elected was in the last set that was committed
    S8   nothing is acknowledged without the copies that were promised, or when another may be master by then
    S9   what was shown is never cut
    S10  a log that is opened is a beginning of what was left, so nothing that was cut comes back; it ends
         with a whole record, and so does the log that a master begins with
    C1   who grants a lease is the only controller that leads
    C2   only who leads changes the group's record

They are looked at when something happens that could break them, C1 by ``controllers`` and C2 by ``world``. S6
and L1 to L3 are looked at in the end: see ``world``.
"""

from collections.abc import Mapping

from tanist.controller.group_record import GroupRecord
from tanist.sim.broken import Broken
from tanist.sim.group.disk import PlayedDisk


class Rules:
    """The judge of one history. ``shown`` is all that any consumer may have seen."""

    def __init__(self, disks: Mapping[int, PlayedDisk], *, is_durable: bool) -> None:
        self._disks = disks
        self._is_durable = is_durable
        self.shown = bytearray()
        self.acked: list[tuple[int, bytes]] = []
        """Where each record lies that a producer was promised to be safe, and its bytes."""
        self.masters: dict[int, int] = {}
        """Who was elected in which epoch."""
        self.in_step: tuple[int, frozenset[int]] = (0, frozenset())
        """The epoch and the set that the controller has committed."""
        self._begun: set[int] = set()
        self._confirmed: dict[int, int] = {}

    def holds(self, broker_id: int, data: bytes | bytearray) -> bool:
        """Whether a replica has these bytes from the log's beginning, as safely as was promised."""
        disk = self._disks[broker_id]
        held = disk.held if self._is_durable else disk.log
        return held[: len(data)] == data

    def on_elected(self, old: GroupRecord, new: GroupRecord) -> None:
        assert new.master_id is not None
        if new.epoch in self.masters or any(epoch >= new.epoch for epoch in self.masters):
            raise Broken(f"S3: {new.master_id} is elected in epoch {new.epoch} after {self.masters}")
        if old.has_reigned and new.master_id not in old.sync_state_set:
            raise Broken(f"S7: {new.master_id} is elected, and in step were {sorted(old.sync_state_set)}")
        self.masters[new.epoch] = new.master_id

    def on_reign(self, broker_id: int, epoch: int) -> None:
        """A replica is about to take messages as master."""
        disk = self._disks[broker_id]
        if self.masters.get(epoch) != broker_id or epoch in self._begun:
            raise Broken(
                f"S3: {broker_id} reigns in epoch {epoch}, whose master is {self.masters.get(epoch)}"
            )
        self._begun.add(epoch)
        if disk.whole_to(disk.log_end) != disk.log_end:
            raise Broken(f"S10: {broker_id} begins to reign with a part of a record at its end")
        if epoch == max(self._begun):
            self.check_master(broker_id)

    def check_master(self, broker_id: int) -> None:
        """A master has all that was acknowledged and shown."""
        disk = self._disks[broker_id]
        for place, record in self.acked:
            if bytes(disk.log[place : place + len(record)]) != record:
                raise Broken(f"S1: what was acknowledged at {place} is not in the log of {broker_id}")
        if not disk.log.startswith(self.shown):
            raise Broken(f"S2: master {broker_id} has not all that was shown up to {len(self.shown)}")

    def on_confirmed(self, broker_id: int, epoch: int, confirmed_to: int, counted: frozenset[int]) -> None:
        """A master takes more for confirmed, or others for those that count."""
        before = self._confirmed.get(epoch, 0)
        if confirmed_to < before:
            raise Broken(f"S4: epoch {epoch} was confirmed up to {before}, and now to {confirmed_to}")
        self._confirmed[epoch] = confirmed_to
        if confirmed_to == before:
            return
        # Those that may be elected are not only those that the master knows of.
        set_epoch, members = self.in_step
        self._check_held(broker_id, confirmed_to, counted | members if set_epoch == epoch else counted)

    def on_committed(self, epoch: int, members: frozenset[int]) -> None:
        """The controller has another set."""
        self.in_step = epoch, members
        if epoch in self.masters:
            self._check_held(self.masters[epoch], self._confirmed.get(epoch, 0), members)

    def _check_held(self, broker_id: int, confirmed_to: int, members: frozenset[int]) -> None:
        ours = bytes(self._disks[broker_id].log[:confirmed_to])
        if len(ours) < confirmed_to:
            raise Broken(f"S4: master {broker_id} confirms {confirmed_to}, its log ends at {len(ours)}")
        for other in sorted(members):
            if not self.holds(other, ours):
                raise Broken(
                    f"S4: {broker_id} takes {confirmed_to} for confirmed, and {other} lacks some of it"
                )

    def on_shown(self, broker_id: int, confirmed_to: int) -> None:
        """A replica lets consumers see whole records up to here."""
        disk = self._disks[broker_id]
        end = disk.whole_to(min(confirmed_to, disk.log_end))
        common = min(end, len(self.shown))
        if disk.log[:common] != self.shown[:common]:
            raise Broken(f"S2: {broker_id} shows something else before {common}")
        if end > max(self._confirmed.values(), default=0):
            raise Broken(f"S5: {broker_id} shows {end}, and no master has confirmed that")
        self.shown += disk.log[len(self.shown) : end]

    def on_acknowledged(
        self, broker_id: int, place: int, record: bytes, *, confirmed_to: int, others: list[int], epoch: int
    ) -> None:
        """A producer is told that its message is safe: with all in step, or with one slave that holds it."""
        end = place + len(record)
        if end <= confirmed_to:
            self.acked.append((place, record))
            return
        if max(self.masters) > epoch:
            raise Broken(f"S8: {broker_id} acknowledges {end} in epoch {epoch}, and another is elected")
        ours = bytes(self._disks[broker_id].log[:end])
        if not any(self.holds(other, ours) for other in others):
            raise Broken(f"S8: {broker_id} acknowledges {end}, which nobody else holds")

    def on_cut(self, broker_id: int, log_offset: int) -> None:
        """A replica is about to cut its log."""
        disk = self._disks[broker_id]
        common = min(len(self.shown), disk.log_end)
        if log_offset < common and disk.log[:common] == self.shown[:common]:
            raise Broken(f"S9: {broker_id} cuts at {log_offset}, and up to {common} was shown")

    def on_opened(self, broker_id: int, left: bytes) -> None:
        """A replica has started, with a part of the log that its last process left: nothing comes back."""
        disk = self._disks[broker_id]
        if not left.startswith(bytes(disk.log)):
            raise Broken(f"S10: replica {broker_id} has what its last process had not")
        if disk.whole_to(disk.log_end) != disk.log_end:
            raise Broken(f"S10: the log of {broker_id} ends with a part of a record")
