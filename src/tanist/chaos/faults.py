"""What can be broken, in which clusters, and what the design promises to go on meanwhile. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from tanist.chaos.modes import Mode


class Fault(StrEnum):
    """One way to break a cluster."""

    KILL_MASTER = "kill-master"
    KILL_SLAVE = "kill-slave"
    KILL_BOTH = "kill-both"
    FREEZE_MASTER = "freeze-master"
    FREEZE_SLAVE = "freeze-slave"
    CUT_MASTER = "cut-master"
    """The cable of its machine is pulled."""
    CUT_SLAVE = "cut-slave"
    CUT_REGISTRY = "cut-registry"
    """Nothing passes between the brokers and the controller, and nobody is told."""
    KILL_REGISTRY = "kill-registry"
    CUT_REPLICATION = "cut-replication"
    """Nothing passes between master and slave, and nobody is told."""
    FLAKY_REPLICATION = "flaky-replication"
    """What passes is late, loses its connection now and then, and has bits flipped."""
    RESTART_ALL = "rolling-restart"
    HOSTILE_PEERS = "hostile-peers"
    """Strangers say to every port what no peer would."""

    @property
    def needs_hosts(self) -> bool:
        """Whether the brokers need machines of their own."""
        return self in {Fault.CUT_MASTER, Fault.CUT_SLAVE}


_OFFSETS_KEPT_S = 6.0
"""Brokers write the offsets of their groups down every 5 s."""
_OF_THE_REGISTRY = {Fault.CUT_REGISTRY, Fault.KILL_REGISTRY}
_OF_THE_LINK = {Fault.CUT_REPLICATION, Fault.FLAKY_REPLICATION}


def faults_of(mode: Mode) -> list[Fault]:
    """The faults that a mode can have. Elected masters are followed where they say, not through a proxy."""
    return [
        fault
        for fault in Fault
        if (mode.has_registry or fault not in _OF_THE_REGISTRY)
        and (mode.has_fixed_roles or fault not in _OF_THE_LINK)
    ]


@dataclass(frozen=True, slots=True)
class Promise:
    """What goes on while something is broken, after a pause at most."""

    sends: bool
    reads: bool


def promise_of(mode: Mode, fault: Fault) -> Promise:
    """What the design says. A send that is stored without its slave is no success, so it does not count."""
    waits_for_slave = mode in {Mode.CLASSIC_SYNC, Mode.SLAVE_CONSUMPTION}
    match fault:
        case Fault.KILL_MASTER | Fault.FREEZE_MASTER | Fault.CUT_MASTER:
            is_elected = not mode.has_fixed_roles
            return Promise(sends=is_elected, reads=is_elected or mode is Mode.SLAVE_CONSUMPTION)
        case Fault.KILL_SLAVE | Fault.FREEZE_SLAVE | Fault.CUT_SLAVE | Fault.CUT_REPLICATION:
            return Promise(sends=not waits_for_slave, reads=True)
        case Fault.CUT_REGISTRY | Fault.KILL_REGISTRY:
            # A group with fixed roles goes on as it is; the lease of an elected master runs out.
            return Promise(sends=mode.has_fixed_roles, reads=True)
        case Fault.FLAKY_REPLICATION:
            return Promise(sends=not waits_for_slave, reads=True)
        case Fault.HOSTILE_PEERS:
            return Promise(sends=True, reads=True)
        case Fault.KILL_BOTH | Fault.RESTART_ALL:
            return Promise(sends=False, reads=False)


def forgotten_s(mode: Mode, fault: Fault) -> float:
    """For how long before a fault what was confirmed of offsets may be gone with the process that knew it.

    Where another replica goes on it has them, and nothing is forgotten.
    """
    classic = mode in {Mode.CLASSIC_ASYNC, Mode.CLASSIC_SYNC}
    is_forgotten = fault is Fault.KILL_BOTH or (fault is Fault.KILL_MASTER and classic)
    return _OFFSETS_KEPT_S if is_forgotten else 0.0
