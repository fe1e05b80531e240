"""What the controller has a replica do, and who carries it out."""

from dataclasses import dataclass
from typing import Protocol

from tanist.broker.master_place import MasterPlace


@dataclass(frozen=True, slots=True)
class MasterOrder:
    """This replica is master of ``epoch``. One that is master already begins the new reign in place."""

    epoch: int
    sync_state_set: frozenset[int]
    """The ids of the replicas in step, this one included."""
    set_epoch: int


@dataclass(frozen=True, slots=True)
class SlaveOrder:
    """This replica follows the master of ``epoch``."""

    epoch: int
    master_id: int
    master: MasterPlace | None
    """None if the controller did not tell the port for slaves, as RocketMQ's do not: name servers know it."""
    master_address: str | None = None
    """The master's own port. What a name server tells of another broker is from before this order."""


@dataclass(frozen=True, slots=True)
class SetOrder:
    """The set of the replicas in step is another one now, as this master of ``epoch`` is told."""

    epoch: int
    sync_state_set: frozenset[int]
    set_epoch: int


RoleOrder = MasterOrder | SlaveOrder


class RoleSwitch(Protocol):
    """Changes what a running broker is. One order at a time; each returns when the role is held."""

    async def become_master(self, order: MasterOrder) -> None:
        """Take writes under this epoch, once everything that was confirmed can be read."""
        ...

    async def become_slave(self, order: SlaveOrder) -> None:
        """Take no writes, and follow the master."""
        ...

    def fence(self, reason: str) -> None:
        """Refuse writes from now on, and tell why."""
        ...
