"""What the scrub found damaged, in words: the place, and the way out that this broker has."""

import logging

from tanist.broker.state import BrokerState
from tanist.ha.replicas import Replica
from tanist.store.scrub import Damage
from tanist.store.settings import REBUILD_INDEXES

_log = logging.getLogger(__name__)


def damage_lines(state: BrokerState) -> list[str]:
    """Each place that is known, with what to do."""
    return [f"{damage}; {_way_out(state, damage)}" for damage in state.scrub.damage]


def first_damage(state: BrokerState) -> str | None:
    """One place, for those who only have to know why this log is not to be relied on; None if it is sound."""
    return next(iter(damage_lines(state)), None)


def tell_damage(state: BrokerState, damage: Damage) -> None:
    """Say in the log that a place is damaged."""
    _log.critical("store is damaged %s; %s", damage, _way_out(state, damage))


def _way_out(state: BrokerState, damage: Damage) -> str:
    address = state.settings.address
    if damage.is_in_queue:
        return REBUILD_INDEXES
    if state.settings.is_slave:
        return f"fill this slave anew from its master: tanist admin rebuildSlave -b {address}"
    holder = _holder(state, damage.log_offset)
    if holder is None:
        return "no other replica that is in step has it: restore the file from a backup"
    if state.writer.reign is None:
        return f"slave {holder.peer} has it: stop both brokers, and restore the file from there"
    return (
        f"replica {holder.broker_id} has it: make that one master with tanist admin electMaster, and then "
        f"fill this one anew: tanist admin rebuildSlave -b {address}"
    )


def _holder(state: BrokerState, log_offset: int) -> Replica | None:
    """A slave that is in step and was sent what lies here."""
    replicas, reign = state.replication.replicas, state.writer.reign
    for replica in replicas:
        is_member = reign is None or replica.broker_id in reign.sync_state.members
        if is_member and replica.held_from <= log_offset < replica.acked_to:
            return replica
    return None
