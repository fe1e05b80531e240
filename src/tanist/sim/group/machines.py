"""The classes and functions of production that decide in a simulated group.

Tests put others in their place, each with one rule left out, to see that it is found.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tanist.broker.controlled.role_orders import RoleOrders
from tanist.controller.decisions import Decision, alter_set
from tanist.controller.election import Situation, elect
from tanist.controller.group_record import GroupRecord
from tanist.controller.leases import Leases
from tanist.controller.live_table import Live, LiveTable
from tanist.ha.ack_right import AckRight
from tanist.ha.lease import Lease
from tanist.ha.master_link import MasterLink
from tanist.ha.slave_link import SlaveLink
from tanist.ha.sync_state import SyncState
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.headers.controller import AlterSyncStateSetRequest, ElectMasterRequest
from tanist.sim.group.disk import PlayedDisk


def _alter(
    record: GroupRecord | None,
    request: AlterSyncStateSetRequest,
    proposed: SyncStateSet,
    alive: Mapping[int, Live],
) -> Decision:
    return alter_set(record, request, proposed, alive=alive)


@dataclass(frozen=True, slots=True)
class Machines:
    """What decides, and the disk that remembers."""

    sync_state: type[SyncState] = SyncState
    lease: type[Lease] = Lease
    ack_right: type[AckRight] = AckRight
    master_link: type[MasterLink] = MasterLink
    slave_link: type[SlaveLink] = SlaveLink
    role_orders: type[RoleOrders] = RoleOrders
    live_table: type[LiveTable] = LiveTable
    leases: type[Leases] = Leases
    elect: Callable[[GroupRecord | None, ElectMasterRequest, Situation], Decision] = elect
    alter_set: Callable[
        [GroupRecord | None, AlterSyncStateSetRequest, SyncStateSet, Mapping[int, Live]], Decision
    ] = _alter
    disk: type[PlayedDisk] = PlayedDisk


PRODUCTION = Machines()
