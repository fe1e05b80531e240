"""Who may follow a master, and from where in its log. Pure.

A slave is let in if its log is the beginning of the master's: files of the same size, same incarnation (or
none yet), an end that lies within the master's log, and the same bytes before that end. Whoever is not gets
the reason and the way out in words. The text goes over the wire, so it is short.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    NO_INCARNATION,
    Accepted,
    MasterHello,
    Refusal,
    Refused,
    SlaveHello,
    SlaveProof,
)

MASTER_ID = 0
TAIL_BYTES = 1 << 20
"""How much before its end a slave shows to be the same."""
REBUILD = "run tanist admin rebuildSlave"

CrcBefore = Callable[[int, int], int]
"""The CRC-32 of so many bytes (second) of a log before an offset (first)."""


@dataclass(frozen=True, slots=True)
class MasterLog:
    """What a master's log is when it judges a slave."""

    incarnation: bytes
    log_start: int
    log_end: int
    file_bytes: int
    is_last_file_first: bool
    """Whether an empty slave begins with the newest file (``syncFromLastFile``)."""
    crc_before: CrcBefore

    @property
    def first_for_empty(self) -> int:
        """Where a slave begins that has nothing."""
        last_file = self.log_end - self.log_end % self.file_bytes
        return max(self.log_start, last_file) if self.is_last_file_first else self.log_start


def judge_hello(hello: SlaveHello, *, group: str, own_id: int = MASTER_ID) -> Refused | None:
    """Whether who calls belongs here at all. ``own_id`` is what a controller calls this master."""
    if hello.group != group:
        return Refused(Refusal.WRONG_GROUP, f"this is {group}; brokerName of a slave is its master's")
    if hello.broker_id in (MASTER_ID, own_id):
        return Refused(
            Refusal.UNKNOWN_REPLICA, f"brokerId {hello.broker_id} is the master's; give slaves others"
        )
    return None


def judge_epoch(proof: SlaveProof, epoch: int) -> Refused | None:
    """Whether a slave may follow the master of this epoch: not if it was told of a newer one."""
    if proof.epoch > epoch:
        return stale_epoch(master=epoch, told=proof.epoch)
    return None


def stale_epoch(*, master: int, told: int) -> Refused:
    """The verdict on a master that is none any more."""
    return Refused(
        Refusal.STALE_EPOCH,
        f"the master is of epoch {master} and the slave was told of {told}: it is replaced",
    )


def judge_store(proof: SlaveProof, log: MasterLog) -> Refused | None:
    """Whether a slave's log can be the master's at all, wherever it ends."""
    if proof.file_bytes != log.file_bytes:
        return Refused(
            Refusal.OTHER_FILE_SIZE,
            f"mappedFileSizeCommitLog is {proof.file_bytes} there and {log.file_bytes} here; set the same",
        )
    if proof.log_end and proof.incarnation not in (NO_INCARNATION, log.incarnation):
        return Refused(
            Refusal.OTHER_INCARNATION, f"its log is of another master, or of one redeployed: {REBUILD}"
        )
    return None


def judge_log(proof: SlaveProof, log: MasterLog) -> Accepted | Refused:
    """From where a slave is served, or why it is not."""
    if (refused := judge_store(proof, log)) is not None:
        return refused
    if proof.log_end == 0:
        return Accepted(LogOffset(log.first_for_empty))
    if proof.log_end > log.log_end:
        return Refused(
            Refusal.AHEAD_OF_MASTER,
            f"it has {proof.log_end - log.log_end} bytes more than the master's {log.log_end}: {REBUILD}",
        )
    if proof.log_end < log.log_start:
        return deleted_before(proof.log_end)
    return _judge_tail(proof, log)


def deleted_before(log_offset: int) -> Refused:
    """The verdict on a slave whose log ends before the master's begins, or that was too slow to follow."""
    return Refused(Refusal.BEFORE_LOG_START, f"the master has deleted what follows {log_offset}: {REBUILD}")


def _judge_tail(proof: SlaveProof, log: MasterLog) -> Accepted | Refused:
    tail_start = proof.log_end - proof.tail_bytes
    if tail_start < log.log_start:
        # Nothing of it can be compared any more: then only the same incarnation tells.
        is_same = proof.incarnation == log.incarnation
    else:
        is_same = log.crc_before(proof.log_end, proof.tail_bytes) == proof.tail_crc
    if is_same:
        return Accepted(proof.log_end)
    return Refused(
        Refusal.DIVERGED_LOG, f"the last {proof.tail_bytes} bytes before {proof.log_end} differ: {REBUILD}"
    )


def tail_bytes(master: MasterHello, *, log_start: int, log_end: int) -> int:
    """How much before its end a slave shows: what both have, as far as there is anything."""
    both_start = max(log_start, master.log_start, log_end - TAIL_BYTES)
    return max(min(log_end - both_start, log_end - log_start), min(1, log_end - log_start))
