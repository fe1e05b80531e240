"""What can be broken, in which clusters, and what the design promises to go on meanwhile. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from tanist.chaos.lots import Victim
from tanist.chaos.modes import Mode
from tanist.up.plan import BROKERS, CONTROLLER


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

    ONE_WAY_CUT = "one-way-cut"
    """What a machine says is lost, and it hears all that is said to it."""
    SLOW_REPLICATION = "slow-replication"
    """The slave reads what its master sends by the trickle."""
    FULL_DISK = "full-disk"
    SLOW_DISK = "slow-disk"
    """What a broker writes reaches its disk by the trickle, and it waits for that before it acknowledges."""
    CLOCK_JUMP = "clock-jump"
    """The wall clock of a broker's machine is an hour ahead at once."""
    MEMORY_CAP = "memory-cap"
    """A broker gets no more memory than it has."""
    KILL_MASTER_AND_REGISTRY = "kill-master-and-registry"
    POWER_LOSS = "power-loss"
    """Both machines lose their power at once, and their disks what was not synced."""
    KILL_ZOOKEEPER_LEADER = "kill-zookeeper-leader"
    FREEZE_ZOOKEEPER_LEADER = "freeze-zookeeper-leader"

    @property
    def needs_hosts(self) -> bool:
        """Whether the brokers need machines of their own."""
        return self in {Fault.CUT_MASTER, Fault.CUT_SLAVE, Fault.ONE_WAY_CUT}

    @property
    def is_of_zookeeper(self) -> bool:
        """Whether it strikes what other runs may be using too."""
        return self in {Fault.KILL_ZOOKEEPER_LEADER, Fault.FREEZE_ZOOKEEPER_LEADER}

    @property
    def ends_by_itself(self) -> bool:
        """Whether all is mended when the stroke is over."""
        return self is Fault.RESTART_ALL


_OFFSETS_KEPT_S = 6.0
"""Brokers write the offsets of their groups down every 5 s."""
_FELT_BY_NOBODY = {
    Fault.HOSTILE_PEERS,
    Fault.CLOCK_JUMP,
    Fault.SLOW_DISK,
    Fault.KILL_ZOOKEEPER_LEADER,
    Fault.FREEZE_ZOOKEEPER_LEADER,
}
_OF_THE_REGISTRY = {Fault.CUT_REGISTRY, Fault.KILL_REGISTRY, Fault.KILL_MASTER_AND_REGISTRY}


def faults_of(mode: Mode) -> list[Fault]:
    """The faults that a mode can have."""
    return [
        fault
        for fault in Fault
        if (mode.has_registry or fault not in _OF_THE_REGISTRY)
        and (mode is Mode.AUTO_SWITCH_ZOOKEEPER or not fault.is_of_zookeeper)
        # With fixed roles consumers are given what is not on the disk yet, as in RocketMQ. When that is
        # lost, an offset that they have read gets another message, and no acknowledgement was broken.
        and not (fault is Fault.POWER_LOSS and mode.has_fixed_roles)
    ]


def struck_by(fault: Fault, *, master: str, victim: Victim) -> list[str]:
    """The processes that a fault strikes, in their order, a slave before its master; links are nobody's."""
    slave = next(name for name in BROKERS if name != master)
    match fault:
        case Fault.KILL_MASTER | Fault.FREEZE_MASTER | Fault.CUT_MASTER:
            names = [master]
        case Fault.KILL_SLAVE | Fault.FREEZE_SLAVE | Fault.CUT_SLAVE:
            names = [slave]
        case Fault.KILL_BOTH | Fault.RESTART_ALL | Fault.POWER_LOSS:
            names = [slave, master]
        case Fault.KILL_REGISTRY:
            names = [CONTROLLER]
        case Fault.KILL_MASTER_AND_REGISTRY:
            names = [CONTROLLER, master]
        case Fault.ONE_WAY_CUT | Fault.FULL_DISK | Fault.SLOW_DISK | Fault.CLOCK_JUMP | Fault.MEMORY_CAP:
            names = [master if victim is Victim.MASTER else slave]
        case _:
            names = []
    return names


@dataclass(frozen=True, slots=True)
class Promise:
    """What goes on while something is broken, after a pause at most."""

    sends: bool
    reads: bool


def promise_of(mode: Mode, fault: Fault, victim: Victim = Victim.MASTER) -> Promise:
    """What the design says. A send that is stored without its slave is no success, so it does not count."""
    match fault:
        case Fault.KILL_MASTER | Fault.FREEZE_MASTER | Fault.CUT_MASTER:
            promise = _without_master(mode)
        case Fault.ONE_WAY_CUT if victim is Victim.MASTER:
            promise = _without_master(mode)
        case Fault.FULL_DISK if victim is Victim.MASTER:
            # A master without room keeps what it has, and is no worse a master for those who read.
            promise = Promise(sends=False, reads=True)
        case Fault.CUT_REGISTRY | Fault.KILL_REGISTRY:
            # A group with fixed roles goes on as it is; the lease of an elected master runs out.
            promise = Promise(sends=mode.has_fixed_roles, reads=True)
        case Fault.RESTART_ALL:
            # One after the other: while the slave is away the master works, and the other way round.
            promise = Promise(sends=mode is Mode.CLASSIC_ASYNC or not mode.has_fixed_roles, reads=True)
        case _ if fault in _FELT_BY_NOBODY:
            promise = Promise(sends=True, reads=True)
        case Fault.KILL_BOTH | Fault.KILL_MASTER_AND_REGISTRY | Fault.MEMORY_CAP | Fault.POWER_LOSS:
            promise = Promise(sends=False, reads=False)
        case _:
            promise = _without_slave(mode)
    return promise


def _without_master(mode: Mode) -> Promise:
    is_elected = not mode.has_fixed_roles
    return Promise(sends=is_elected, reads=is_elected or mode is Mode.SLAVE_CONSUMPTION)


def _without_slave(mode: Mode) -> Promise:
    waits_for_slave = mode in {Mode.CLASSIC_SYNC, Mode.SLAVE_CONSUMPTION}
    return Promise(sends=not waits_for_slave, reads=True)


def forgotten_s(mode: Mode, fault: Fault) -> float:
    """For how long before a fault what was confirmed of offsets may be gone with the process that knew it.

    Where another replica goes on it has them, and nothing is forgotten.
    """
    classic = mode in {Mode.CLASSIC_ASYNC, Mode.CLASSIC_SYNC}
    ends_alone = fault in {Fault.KILL_MASTER, Fault.MEMORY_CAP} and classic
    ends_with_others = fault in {Fault.KILL_BOTH, Fault.KILL_MASTER_AND_REGISTRY, Fault.POWER_LOSS}
    return _OFFSETS_KEPT_S if ends_alone or ends_with_others else 0.0
