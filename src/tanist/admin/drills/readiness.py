"""Whether a failover of a group would go well now, and to whom. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from tanist.model.route import MASTER_ID
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.bodies.slave_consume import SlaveConsumeStatus

MAX_LAG_BYTES = 1 << 20
"""A slave further behind than this is not in step, however fast it comes closer."""


class Member(NamedTuple):
    """One replica as it answered, or why it did not."""

    broker_id: int
    address: str
    status: HARuntimeInfo | None
    failure: str | None = None


class Readiness(NamedTuple):
    """What was found before anything is changed."""

    is_controlled: bool
    """Whether a controller can move mastership. If not only the slaves' readiness is checked."""
    master: Member | None
    successor: Member | None
    objections: list[str]
    """Why it would be unsafe; nothing if it would not."""

    @property
    def controller(self) -> str | None:
        status = None if self.master is None else self.master.status
        return None if status is None or status.controlled is None else status.controlled.controller


def judge(members: list[Member]) -> Readiness:
    """Who would take over, and what speaks against it."""
    objections = [
        f"{each.address} does not answer: {each.failure}" for each in members if each.status is None
    ]
    master = next((each for each in members if each.broker_id == MASTER_ID), None)
    if master is None or master.status is None:
        return Readiness(
            is_controlled=False,
            master=master,
            successor=None,
            objections=["the group has no master that answers", *objections],
        )
    status = master.status
    if not status.is_master:
        objections.append(f"{master.address} is listed as master and says that it is none; look again soon")
    slaves = [each for each in members if each.broker_id != MASTER_ID and each.status is not None]
    if not slaves:
        objections.append("the group has no slave that answers: nobody could take over")
    objections += [text for slave in slaves for text in _slave_objections(slave)]
    objections += [
        f"{each.address} is damaged: {text}"
        for each in members
        if each.status is not None
        for text in each.status.damage
    ]
    objections += [f"{link.addr} is not in step" for link in status.slaves if not link.is_in_sync]
    successor = _successor(status, slaves)
    if status.controlled is not None:
        objections += [f"{master.address}: {reason}" for reason in status.controlled.reasons]
        if slaves and successor is None:
            objections.append(
                f"no slave is in the sync state set {sorted(status.controlled.sync_state_set)}; wait for one"
            )
    return Readiness(
        is_controlled=status.controlled is not None,
        master=master,
        successor=successor,
        objections=list(dict.fromkeys(objections)),
    )


def judge_readers(statuses: Mapping[str, SlaveConsumeStatus]) -> list[str]:
    """With fixed roles: why a slave would not be read if its master died."""
    objections: list[str] = []
    for address, status in sorted(statuses.items()):
        if not status.is_linked:
            objections.append(f"{address} and its partner are not connected: {status.reason}")
        if status.permission == "NONE":
            objections.append(f"{address} may do nothing: {status.reason}")
    return objections


def _slave_objections(slave: Member) -> list[str]:
    assert slave.status is not None
    client = slave.status.client
    found: list[str] = []
    if client.is_refused:
        found.append(f"{slave.address} is refused by its master: {client.reason}")
    elif client.reason is not None:
        found.append(f"{slave.address} has no link: {client.reason}")
    if client.lag_bytes is not None and client.lag_bytes > MAX_LAG_BYTES:
        found.append(f"{slave.address} is {client.lag_bytes} bytes behind")
    return found


def _successor(status: HARuntimeInfo, slaves: list[Member]) -> Member | None:
    """The slave to become master: one in the sync state set, or the first where there is no such set."""
    if status.controlled is None:
        return slaves[0] if slaves else None
    in_set = set(status.controlled.sync_state_set)
    return next((slave for slave in slaves if replica_id(slave) in in_set), None)


def replica_id(member: Member) -> int | None:
    """The id that the controller knows a replica by."""
    if member.status is None or member.status.controlled is None:
        return None
    return member.status.controlled.replica_id
