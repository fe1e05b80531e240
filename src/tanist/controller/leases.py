"""Until when the master of each group may acknowledge, so that no other one is elected before.

Pure. A lease is renewed by a heartbeat of the elected start of a broker. The master counts it from when it
sent the heartbeat and gives it up a little early, we count it from when we received it: it is always over on
the master's side first. Who has just begun to lead does not know which leases run, so every master is given
one in full.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tanist.controller.group_record import GroupRecord
from tanist.controller.live_table import Live

_HANDOVER_SHARE = 0.95
"""The part of a lease that is waited for when an operator replaces a master, who gives it up after 90 %. For
all of it, 3 s by default, ``mqadmin`` would not wait."""


@dataclass(slots=True)
class _Lease:
    epoch: int
    began_s: float
    length_s: float

    @property
    def end_s(self) -> float:
        return self.began_s + self.length_s


class Leases:
    """The leases of all groups that may be running."""

    def __init__(self) -> None:
        self._leases: dict[str, _Lease] = {}
        self._closing: set[str] = set()

    def begin(self, records: Iterable[GroupRecord], *, now_s: float) -> None:
        """We lead from now on; what others granted before may be running for its whole length.

        A reign that ended had no lease any more, but for that of a group which was cleaned away by force.
        """
        self._closing.clear()
        self._leases = {
            record.broker_name: _Lease(record.epoch, now_s, record.lease_ms / 1000)
            for record in records
            if record.master_id is not None or (record.epoch and not record.has_reigned)
        }

    def renew(self, record: GroupRecord, live: Live, *, now_s: float) -> int | None:
        """The epoch for which this heartbeat renews the lease; None if its sender has none.

        A master that wants to be silent for longer than the record says gets no lease: a new leader would
        not wait as long.
        """
        name = record.broker_name
        if not is_in_office(record, {live.broker_id: live}):
            return None
        if live.session is None or live.timeout_ms > record.lease_ms or name in self._closing:
            return None
        held = self._leases.get(name)
        renewed = _Lease(record.epoch, now_s, live.timeout_ms / 1000)
        # Who wants a shorter one from now on may still build on the one it had.
        if held is None or held.epoch != record.epoch or held.end_s < renewed.end_s:
            self._leases[name] = renewed
        return record.epoch

    def end_s(self, record: GroupRecord) -> float:
        """When the lease of the last master in this record is over; 0 if none is known to run."""
        lease = self._leases.get(record.broker_name)
        if lease is None or lease.epoch != record.epoch:
            return 0.0
        share = _HANDOVER_SHARE if record.broker_name in self._closing else 1.0
        return lease.began_s + lease.length_s * share

    def void(self, broker_name: str) -> None:
        """The master is known to be gone: nobody acknowledges any more."""
        self._leases.pop(broker_name, None)

    def close(self, broker_name: str) -> bool:
        """Renew this group's lease no more: an operator wants another master. False if one does already."""
        if broker_name in self._closing:
            return False
        self._closing.add(broker_name)
        return True

    def reopen(self, broker_name: str) -> None:
        """The master, whoever it is now, may have its lease renewed again."""
        self._closing.discard(broker_name)


def is_in_office(record: GroupRecord, alive: Mapping[int, Live]) -> bool:
    """Whether the start of the broker that was elected is alive.

    One that was started anew must be elected anew: what it had not on disk is gone, and a slave may have it
    under the same epoch.
    """
    if record.master_id is None:
        return False
    master = alive.get(record.master_id)
    return master is not None and master.session == record.master_session
