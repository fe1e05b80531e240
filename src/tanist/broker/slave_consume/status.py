"""How master and slave stand, as operators are told. Pure."""

from enum import StrEnum

from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.slave_standing import SlaveStanding
from tanist.model.reading import NONE, Assigned, Assignment, GroupRole, permission_name
from tanist.protocol.bodies.slave_consume import (
    AdoptedView,
    ChecksView,
    RegistrySessionView,
    SlaveConsumeStatus,
)

_LONG_S = 86_400.0


class MasterState(StrEnum):
    """What a master does, in a word or two."""

    STARTING = "starting"
    """It has not read the registry yet."""
    SERVING = "serving"
    WAITING = "waiting for its slave"
    """A slave is read, or was and its offsets are not here yet."""
    GIVEN_UP = "given up"


def master_status(
    standing: MasterStanding, *, group: str, now_s: float, now_ms: int, session: str, is_linked: bool
) -> SlaveConsumeStatus:
    """``session`` is how it stands to the registry. What may be consumed twice, the caller adds."""
    found = standing.permitted(now_s)
    return SlaveConsumeStatus(
        group=group,
        address=standing.address,
        role=GroupRole.MASTER,
        state=_master_state(standing, found),
        permission=permission_name(found.permission),
        configured_permission=_configured(standing.own),
        reason=found.reason,
        record=standing.record,
        brokers=_brokers(standing.assignment),
        is_linked=is_linked,
        registry=_session(session, standing.held_until_s() - now_s),
        at_ms=now_ms,
        given_up=standing.given_up,
        adopted=AdoptedView(term=standing.adopted.term, round=standing.adopted.round),
    )


def slave_status(
    standing: SlaveStanding, *, group: str, now_s: float, now_ms: int, session: str
) -> SlaveConsumeStatus:
    """``session`` is how it stands to the registry."""
    found, trigger = standing.permitted(now_s), standing.trigger
    checks = ChecksView(needed=trigger.checks, count=trigger.count, conditions=list(trigger.conditions))
    return SlaveConsumeStatus(
        group=group,
        address=standing.address,
        role=GroupRole.SLAVE,
        state=standing.state.value,
        permission=permission_name(found.permission),
        configured_permission=_configured(standing.own),
        reason=found.reason,
        record=standing.record,
        brokers=_brokers(standing.assignment),
        is_linked=standing.is_linked,
        registry=_session(session, standing.held_until_s() - now_s),
        at_ms=now_ms,
        checks=checks,
    )


def alarm(status: SlaveConsumeStatus) -> str | None:
    """Why an operator is needed, and what to do; None if nobody is."""
    way_out = f"bring the slave back, or: tanist admin endSlaveConsume -b {status.address}"
    if status.given_up is not None:
        return f"this master has given up: {status.given_up}; {way_out}"
    is_waiting = status.role is GroupRole.MASTER and status.reader is not None and not status.is_linked
    if is_waiting:
        return f"{status.reader} is read and does not connect to hand back; {way_out}"
    return None


def _configured(own: Assigned | None) -> str | None:
    return None if own is None else permission_name(own.permission)


def _brokers(assignment: Assignment | None) -> list[Assigned]:
    return [] if assignment is None else list(assignment.brokers)


def _master_state(standing: MasterStanding, found: Permitted) -> MasterState:
    if standing.record is None:
        return MasterState.STARTING
    if standing.record.reader is not None:
        return MasterState.WAITING
    if standing.given_up is not None:
        return MasterState.GIVEN_UP
    is_assigned = standing.own is not None and standing.own.permission != NONE
    return MasterState.WAITING if is_assigned and found.permission == NONE else MasterState.SERVING


def _session(state: str, held_for_s: float) -> RegistrySessionView:
    # Without a session it is held for less than nothing.
    return RegistrySessionView(state=state, held_for_ms=int(min(max(0.0, held_for_s), _LONG_S) * 1000))
