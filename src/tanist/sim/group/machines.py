"""The classes and functions of production that decide in a simulated group.

Tests put others in their place, each with one rule left out, to see that it is found.
"""

from dataclasses import dataclass

from tanist.broker.controlled.role_orders import RoleOrders
from tanist.controller.keeping import GroupKeeper
from tanist.controller.leading import Leading
from tanist.controller.reigns import Reigns
from tanist.coord.zookeeper_registry import ZooKeeperRegistry
from tanist.ha.ack_right import AckRight
from tanist.ha.lease import Lease
from tanist.ha.master_link import MasterLink
from tanist.ha.slave_link import SlaveLink
from tanist.ha.sync_state import SyncState
from tanist.sim.group.disk import PlayedDisk
from tanist.sim.group.zookeeper import PlayedZooKeeper


@dataclass(frozen=True, slots=True)
class Machines:
    """What decides, and the disk and the registry that remember."""

    sync_state: type[SyncState] = SyncState
    lease: type[Lease] = Lease
    ack_right: type[AckRight] = AckRight
    master_link: type[MasterLink] = MasterLink
    slave_link: type[SlaveLink] = SlaveLink
    role_orders: type[RoleOrders] = RoleOrders
    leading: type[Leading] = Leading
    keeper: type[GroupKeeper] = GroupKeeper
    reigns: type[Reigns] = Reigns
    registry: type[ZooKeeperRegistry] = ZooKeeperRegistry
    zookeeper: type[PlayedZooKeeper] = PlayedZooKeeper
    disk: type[PlayedDisk] = PlayedDisk


PRODUCTION = Machines()
