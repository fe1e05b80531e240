"""Who becomes master.

Pure. Only a member of the sync state set can be elected, for it has all that was acknowledged; unless unclean
election is on and no member is alive. A member that was started since it came to be in step may have lost the
end of its log. It is not elected before one with a longer log; and if it lacks what was confirmed, only when
all members are back and none has more. So too a member that says that its log is damaged: not before all are
back and none is sound. Nobody is elected while the lease of the last master may be running.
An election that fails ends the reign at most, and uses no epoch up.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tanist.controller.decisions import Answer, Decision, require_cluster
from tanist.controller.group_record import DEFAULT_LEASE_MS, GroupRecord
from tanist.controller.leases import is_in_office
from tanist.controller.live_table import Live
from tanist.errors import ResponseError
from tanist.model.route import BrokerMemberGroup
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.replication import ElectMasterAnswer
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.controller import (
    ElectMasterRequest,
    ElectMasterResponse,
    NotifyRoleChangedRequest,
)

BY_CONTROLLER = -1
"""The id of who asks if it is the controller."""
_MAX_TOLD_EPOCH = 1 << 30
"""Nobody uses up the epochs there are by telling of one that was never reached."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known beside the record when an election is asked for."""

    alive: Mapping[int, Live]
    lease_end_s: float
    now_s: float
    allows_unclean: bool = False
    confirmed_to: int = 0
    """How far the log was confirmed in this epoch when the master told last; 0 if we did not hear of it."""

    @property
    def is_lease_running(self) -> bool:
        return self.now_s < self.lease_end_s


class LeaseRunning(ResponseError):
    """Nobody can be elected before the last master's lease is over."""

    def __init__(self, record: GroupRecord, situation: Situation) -> None:
        rest_s = situation.lease_end_s - situation.now_s
        super().__init__(
            ResponseCode.CONTROLLER_ELECT_MASTER_FAILED,
            f"the lease of the last master of {record.broker_name}, epoch {record.epoch}, may run for another"
            f" {rest_s:.1f} s; an election follows by itself",
        )
        self.end_s = situation.lease_end_s


def elect(record: GroupRecord | None, request: ElectMasterRequest, situation: Situation) -> Decision:
    """Elect a master, or say that there is one. Raises ResponseError, LeaseRunning among them."""
    if record is None or not record.is_known:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
            f"no replica of {request.broker_name} is registered",
        )
    require_cluster(record, request.cluster_name)
    alive = _own(record, situation.alive)
    if _stays(record, request, alive, situation):
        return _still_there(record, alive)
    chosen, is_unclean = _choose(record, request, alive, situation)
    if chosen is None and request.broker_id != BY_CONTROLLER:
        raise ResponseError(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, _nobody(record, alive))
    if situation.is_lease_running:
        raise LeaseRunning(record, situation)
    if chosen is None:
        ended = None if record.master_id is None else record.without_master()
        return Decision(
            Answer(ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE, remark=_nobody(record, alive)), ended
        )
    return _elected(record, chosen, alive, is_unclean=is_unclean)


def needs_election(record: GroupRecord, situation: Situation) -> bool:
    """Whether a group has no master in office although somebody could be, now or when a lease is over."""
    alive = _own(record, situation.alive)
    if not record.has_reigned or is_in_office(record, alive):
        return False
    candidates = alive if situation.allows_unclean else _members(record, alive, situation)
    return record.master_id is not None or bool(candidates)


def is_presumed(record: GroupRecord, situation: Situation) -> bool:
    """Whether the master was not heard of since we lead, and may well be there."""
    return (
        situation.is_lease_running
        and record.master_id is not None
        and record.master_id not in situation.alive
    )


def role_change(record: GroupRecord, alive: Mapping[int, Live]) -> NotifyRoleChangedRequest:
    """What the replicas are told of a new master."""
    return NotifyRoleChangedRequest(
        master_address=record.master_address,
        master_epoch=record.epoch,
        sync_state_set_epoch=record.set_epoch,
        master_broker_id=record.master_id,
        master_ha_address=ha_address_of(record, alive),
    )


def ha_address_of(record: GroupRecord, alive: Mapping[int, Live]) -> str | None:
    """Where slaves find the master's log, if it told."""
    master = None if record.master_id is None else alive.get(record.master_id)
    return None if master is None else master.ha_address


def _own(record: GroupRecord, alive: Mapping[int, Live]) -> dict[int, Live]:
    """Those who are registered, and not of another cluster with the same names."""
    return {
        broker_id: live
        for broker_id, live in alive.items()
        if broker_id in record.replicas and live.cluster == record.cluster
    }


def _stays(
    record: GroupRecord, request: ElectMasterRequest, alive: Mapping[int, Live], situation: Situation
) -> bool:
    if record.master_id is None or (request.is_designated and request.broker_id != record.master_id):
        return False
    if is_in_office(record, alive):
        return True
    # A master that asks has been started anew: what it acknowledged last is not known to be on its disk.
    # And we ourselves ask in order to know when to ask again.
    return is_presumed(record, situation) and request.broker_id not in {record.master_id, BY_CONTROLLER}


def _choose(
    record: GroupRecord, request: ElectMasterRequest, alive: Mapping[int, Live], situation: Situation
) -> tuple[int | None, bool]:
    asked = None if request.broker_id == BY_CONTROLLER and not request.is_designated else request.broker_id
    if asked is not None and asked not in record.replicas:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
            f"no replica {asked} of {record.broker_name} is registered",
        )
    if not record.has_reigned and asked is not None and (asked in alive or not request.is_designated):
        return _first(asked, request, alive), False
    designated = asked if request.is_designated else None
    members = _members(record, alive, situation)
    if members or not situation.allows_unclean:
        are_whole = all(_is_whole(record, live) for live in members.values())
        chosen = _best(members, designated, are_whole=are_whole)
        return chosen, chosen is not None and _is_cut(record, members[chosen], situation)
    return _best(alive, designated, are_whole=False), True


def _first(asked: int, request: ElectMasterRequest, alive: Mapping[int, Live]) -> int:
    """Who begins: whoever asks, as with RocketMQ, but not over a longer log.

    There are logs before the first election if the registry was lost, or the group had no controller before.
    """
    if asked not in alive or request.is_designated:
        return asked
    return max(
        alive,
        key=lambda each: (alive[each].epoch, alive[each].log_end, alive[each].damage is None, each == asked),
    )


def _members(record: GroupRecord, alive: Mapping[int, Live], situation: Situation) -> dict[int, Live]:
    """Those who are in step, alive and fit to be master."""
    present = {broker_id: alive[broker_id] for broker_id in record.sync_state_set & alive.keys()}
    all_are_back = len(present) == len(record.sync_state_set)
    uncut = {each: live for each, live in present.items() if not _is_cut(record, live, situation)}
    # What none of them has is lost; before that, somebody who is away may have it.
    whole = uncut if uncut or not all_are_back else present
    sound = {each: live for each, live in whole.items() if live.damage is None}
    return sound if sound or not all_are_back else whole


def _is_cut(record: GroupRecord, live: Live, situation: Situation) -> bool:
    """Whether a member has surely lost what was confirmed.

    Of one that is whole, or has no session, the last heartbeat may just be older than that of the master.
    """
    is_new_start = live.session is not None and not _is_whole(record, live)
    return is_new_start and live.log_end < situation.confirmed_to


def _is_whole(record: GroupRecord, live: Live) -> bool:
    """Whether a member is the start of a broker that came to be in step, so that it has lost nothing."""
    return live.session is not None and live.session == record.member_sessions.get(live.broker_id)


def _best(candidates: Mapping[int, Live], designated: int | None, *, are_whole: bool) -> int | None:
    if designated is not None:
        return designated if designated in candidates else None

    def rank(broker_id: int) -> tuple[int, ...]:
        live = candidates[broker_id]
        has_tables = live.tables_gap is None
        log = (live.epoch, live.log_end)
        # If all have what was acknowledged tables decide first; else the log does. The smaller number has
        # priority, and of equals the smaller id: the choice depends on no chance.
        order = (live.damage is None, *((has_tables, *log) if are_whole else (*log, has_tables)))
        return (*order, -live.priority, -broker_id)

    return max(candidates, key=rank, default=None)


def _still_there(record: GroupRecord, alive: Mapping[int, Live]) -> Decision:
    remark = f"{record.master_id} is master of {record.broker_name} in epoch {record.epoch}"
    body = encode_body(ElectMasterAnswer(sync_state_set=record.sync_state_set))
    code = ResponseCode.CONTROLLER_MASTER_STILL_EXIST
    return Decision(Answer(code, remark=remark, header=_header(record, alive), body=body))


def _nobody(record: GroupRecord, alive: Mapping[int, Live]) -> str:
    members = ", ".join(map(str, sorted(record.sync_state_set))) or "nobody"
    damaged = [
        f"; replica {each} is damaged: {alive[each].damage}"
        for each in sorted(record.sync_state_set & alive.keys())
        if alive[each].damage is not None
    ]
    return (
        f"of the sync state set of {record.broker_name} ({members}) nobody fit to be master is alive"
        f"{''.join(damaged)}"
    )


def _elected(record: GroupRecord, broker_id: int, alive: Mapping[int, Live], *, is_unclean: bool) -> Decision:
    live = alive.get(broker_id)
    elected = record.with_master(
        broker_id,
        epoch=_next_epoch(record, alive),
        session=None if live is None else live.session,
        lease_ms=DEFAULT_LEASE_MS if live is None else live.timeout_ms,
    )
    addresses = {each: replica.address for each, replica in record.replicas.items()}
    body = ElectMasterAnswer(
        broker_member_group=BrokerMemberGroup(
            cluster=record.cluster, broker_name=record.broker_name, broker_addrs=addresses
        ),
        sync_state_set=elected.sync_state_set,
    )
    answer = Answer(header=_header(elected, alive), body=encode_body(body))
    return Decision(answer, elected, is_election=True, is_unclean=is_unclean)


def _next_epoch(record: GroupRecord, alive: Mapping[int, Live]) -> int:
    """One beyond every epoch that there was, also if the registry was lost or is a copy of an older day.

    The logs then know of later reigns than we do, and a replica follows nobody into the past.
    """
    told = [live.epoch for live in alive.values() if live.epoch <= _MAX_TOLD_EPOCH]
    return max(record.epoch, *told, 0) + 1


def _header(record: GroupRecord, alive: Mapping[int, Live]) -> ElectMasterResponse:
    return ElectMasterResponse(
        master_broker_id=record.master_id,
        master_address=record.master_address,
        master_epoch=record.epoch,
        sync_state_set_epoch=record.set_epoch,
        master_ha_address=ha_address_of(record, alive),
    )
