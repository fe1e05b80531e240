"""Which replicas a group has: ids, registration, and forgetting those that are gone.

Pure, like ``decisions``.
"""

from collections.abc import Container, Mapping

import msgspec

from tanist.controller.decisions import Answer, Decision, require_cluster, set_body
from tanist.controller.group_record import (
    DEFAULT_LEASE_MS,
    FIRST_BROKER_ID,
    GroupRecord,
    Replica,
    require_short,
)
from tanist.controller.live_table import Live
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.controller import (
    ApplyBrokerIdRequest,
    ApplyBrokerIdResponse,
    BrokerHeartbeatRequest,
    CleanBrokerDataRequest,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    RegisterReplicaRequest,
    RegisterReplicaResponse,
)

MAX_GROUP_REPLICAS = 128


def next_id(record: GroupRecord | None, request: GetNextBrokerIdRequest) -> Decision:
    """The id a new replica should apply for."""
    if record is not None and record.is_known:
        require_cluster(record, request.cluster_name)
    free = FIRST_BROKER_ID if record is None or not record.is_known else record.next_id
    header = GetNextBrokerIdResponse(
        cluster_name=request.cluster_name, broker_name=request.broker_name, next_broker_id=free
    )
    return Decision(Answer(header=header))


def apply_id(record: GroupRecord | None, request: ApplyBrokerIdRequest) -> Decision:
    """Give an id to whoever applies for it first. Who shows the same check code again has it already."""
    address = request.register_check_code.partition(";")[0]
    require_short(request.cluster_name, request.broker_name, request.register_check_code, address)
    wanted = request.applied_broker_id
    answer = Answer(
        header=ApplyBrokerIdResponse(cluster_name=request.cluster_name, broker_name=request.broker_name)
    )
    replica = Replica(address=address, check_code=request.register_check_code)
    if record is None or not record.is_known:
        if wanted != FIRST_BROKER_ID:
            raise _bad_id(request, f"the first replica of a group has the id {FIRST_BROKER_ID}")
        record = _new_group(record, request)
        return Decision(answer, record.with_replica(wanted, replica))
    require_cluster(record, request.cluster_name)
    holder = record.replicas.get(wanted)
    if holder is not None:
        if holder.check_code != request.register_check_code:
            raise _bad_id(request, f"{holder.address} has it")
        return Decision(answer)
    last = record.next_id + MAX_GROUP_REPLICAS
    if not FIRST_BROKER_ID <= wanted <= last:
        # Far beyond the others it would leave none for the next.
        raise _bad_id(request, f"it is not within {FIRST_BROKER_ID} to {last}; {record.next_id} is free")
    if len(record.replicas) >= MAX_GROUP_REPLICAS:
        raise _bad_id(request, f"the group has {MAX_GROUP_REPLICAS} replicas; clean those that are gone")
    return Decision(answer, record.with_replica(wanted, replica))


def register(
    record: GroupRecord | None,
    request: RegisterReplicaRequest,
    *,
    held_by: Live | None,
    is_master_there: bool,
    ha_address: str | None,
) -> Decision:
    """Take a replica for duty that has started: note where it is, and tell it who is master.

    Two brokers must not have one id, as when one runs on a copy of the other's files: while ``held_by`` may
    be serving elsewhere nobody else is taken for it.

    A master without a session that registers has been started anew, so its reign is over. One with a session
    shows by its next heartbeat whether it is still the same.
    """
    if record is None or request.broker_id not in record.replicas:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
            f"{request.broker_name} has no replica {request.broker_id}; apply for an id first",
        )
    require_cluster(record, request.cluster_name)
    require_short(request.broker_address)
    if held_by is not None and held_by.session is not None and held_by.address != request.broker_address:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_ID_INVALID,
            f"replica {request.broker_id} of {request.broker_name} is alive at {held_by.address}: if it"
            " moved, wait until its heartbeats are missed; if this is a copy of it, delete brokerIdentity"
            " from the copy",
        )
    changed = record
    held = record.replicas[request.broker_id]
    if held.address != request.broker_address:
        moved = Replica(address=request.broker_address, check_code=held.check_code)
        changed = record.with_replica(request.broker_id, moved)
    if record.master_id == request.broker_id and record.master_session is None:
        changed = changed.without_master()
    header = RegisterReplicaResponse(cluster_name=request.cluster_name, broker_name=request.broker_name)
    if is_master_there and record.master_id != request.broker_id:
        header = msgspec.structs.replace(
            header,
            master_broker_id=record.master_id,
            master_address=record.master_address,
            master_epoch=record.epoch,
            sync_state_set_epoch=record.set_epoch,
            master_ha_address=ha_address,
        )
    answer = Answer(header=header, body=set_body(record))
    return Decision(answer, changed if changed is not record else None)


def clean(
    record: GroupRecord | None,
    request: CleanBrokerDataRequest,
    *,
    alive: Container[int],
    is_lease_running: bool,
) -> Decision:
    """Forget replicas that are gone for good, or the whole group; its epochs are kept."""
    bad = ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
    if record is not None and record.is_known:
        require_cluster(record, request.cluster_name or None)
    ids: frozenset[int] | None = None
    if not request.is_clean_living_broker:
        ids = _ids_to_clean(request)
        if ids is None and record is not None and record.master_id is not None:
            raise ResponseError(bad, f"{request.broker_name} has a master, {record.master_id}")
        for broker_id in sorted(ids or ()):
            is_presumed = is_lease_running and record is not None and broker_id == record.master_id
            if broker_id in alive or is_presumed:
                raise ResponseError(bad, f"replica {broker_id} of {request.broker_name} is alive")
    if record is None or not record.is_known:
        raise ResponseError(bad, f"no replica of {request.broker_name} is registered")
    return Decision(Answer(), _without(record, ids))


def require_registered(record: GroupRecord | None, heartbeat: BrokerHeartbeatRequest) -> None:
    """Refuse the heartbeat of who is no replica of a group, or takes it for one of another cluster."""
    if record is None or heartbeat.broker_id not in record.replicas:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
            f"{heartbeat.broker_name} has no replica {heartbeat.broker_id}",
        )
    require_cluster(record, heartbeat.cluster_name)


def _new_group(cleaned: GroupRecord | None, request: ApplyBrokerIdRequest) -> GroupRecord:
    """A group that begins; if there was one of that name before, its epochs go on."""
    return GroupRecord(
        cluster=request.cluster_name,
        broker_name=request.broker_name,
        epoch=0 if cleaned is None else cleaned.epoch,
        set_epoch=0 if cleaned is None else cleaned.set_epoch,
        lease_ms=DEFAULT_LEASE_MS if cleaned is None else cleaned.lease_ms,
    )


def _without(record: GroupRecord, ids: frozenset[int] | None) -> GroupRecord:
    left: Mapping[int, Replica] = {
        broker_id: replica
        for broker_id, replica in record.replicas.items()
        if ids is not None and broker_id not in ids
    }
    if not left:
        return GroupRecord(
            cluster=record.cluster,
            broker_name=record.broker_name,
            epoch=record.epoch,
            set_epoch=record.set_epoch,
            # A master that was alive may build on its lease.
            lease_ms=record.lease_ms,
        )
    kept = record if record.master_id in left else record.without_master()
    sessions = {each: session for each, session in record.member_sessions.items() if each in left}
    return msgspec.structs.replace(
        kept,
        replicas=dict(left),
        sync_state_set=record.sync_state_set & left.keys(),
        member_sessions=sessions,
    )


def _ids_to_clean(request: CleanBrokerDataRequest) -> frozenset[int] | None:
    text = (request.broker_ids or "").strip()
    if not text:
        return None
    try:
        return frozenset(int(part) for part in text.split(";"))
    except ValueError:
        raise ResponseError(
            ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
            f"brokerControllerIdsToClean={text!r}: ids stand with ; between them, as in 1;2",
        ) from None


def _bad_id(request: ApplyBrokerIdRequest, why: str) -> ResponseError:
    return ResponseError(
        ResponseCode.CONTROLLER_BROKER_ID_INVALID,
        f"id {request.applied_broker_id} of {request.broker_name} can not be had: {why}",
    )
