"""What is answered to a request about a group, and how it changes the group's record.

Pure: record and request in, answer and changed record out. A request that can not be granted raises
ResponseError with RocketMQ's code for it, and changes nothing. The checks come in RocketMQ's order.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

import msgspec

from tanist.controller.group_record import FIRST_BROKER_ID, GroupRecord, Replica
from tanist.errors import ResponseError
from tanist.model.integers import INT64_MAX
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.replication import (
    ReplicaGroupView,
    ReplicaView,
    SyncStateSet,
)
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    AlterSyncStateSetResponse,
    ApplyBrokerIdRequest,
    ApplyBrokerIdResponse,
    CleanBrokerDataRequest,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    RegisterReplicaRequest,
    RegisterReplicaResponse,
    ReplicaInfoResponse,
)

MAX_GROUP_REPLICAS = 128
_MAX_TEXT_CHARS = 512
"""Of a name, an address or a check code: a record is small, and is written whole each time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to who asked."""

    code: int = ResponseCode.SUCCESS
    remark: str | None = None
    header: Header | None = None
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer, and the record that has to be committed before it is given; None if nothing changes."""

    answer: Answer
    record: GroupRecord | None = None
    is_election: bool = False
    is_unclean: bool = False


def require_cluster(record: GroupRecord, cluster: str | None) -> None:
    """Refuse who takes this group for one of another cluster."""
    if cluster is not None and cluster != record.cluster:
        raise ResponseError(
            ResponseCode.CONTROLLER_INVALID_REQUEST,
            f"{record.broker_name} belongs to the cluster {record.cluster}, not to {cluster}; mend"
            " brokerClusterName, or give the broker another brokerName",
        )


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
    _require_short(request.cluster_name, request.broker_name, request.register_check_code)
    wanted = request.applied_broker_id
    answer = Answer(
        header=ApplyBrokerIdResponse(cluster_name=request.cluster_name, broker_name=request.broker_name)
    )
    replica = Replica(
        address=request.register_check_code.partition(";")[0], check_code=request.register_check_code
    )
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
    if not FIRST_BROKER_ID <= wanted < INT64_MAX:
        raise _bad_id(request, f"ids begin with {FIRST_BROKER_ID}")
    if len(record.replicas) >= MAX_GROUP_REPLICAS:
        raise _bad_id(request, f"the group has {MAX_GROUP_REPLICAS} replicas; clean those that are gone")
    return Decision(answer, record.with_replica(wanted, replica))


def register(
    record: GroupRecord | None,
    request: RegisterReplicaRequest,
    *,
    is_master_there: bool,
    ha_address: str | None,
) -> Decision:
    """Take a replica for duty that has started: note where it is, and tell it who is master.

    A master without a session that registers has been started anew, so its reign is over. One with a session
    shows by its next heartbeat whether it is still the same.
    """
    if record is None or request.broker_id not in record.replicas:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
            f"{request.broker_name} has no replica {request.broker_id}; apply for an id first",
        )
    require_cluster(record, request.cluster_name)
    _require_short(request.broker_address)
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


def alter_set(
    record: GroupRecord | None,
    request: AlterSyncStateSetRequest,
    proposed: SyncStateSet,
    *,
    alive: Container[int],
) -> Decision:
    """Change who is in step, as the master of the current reign asks for."""
    failed = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    if record is None or not record.is_known:
        raise ResponseError(failed, f"no replica of {request.broker_name} is registered")
    members = proposed.broker_ids
    if members == record.sync_state_set:
        raise ResponseError(failed, f"the sync state set of {record.broker_name} is the same already")
    if record.master_id is None or record.master_id != request.master_broker_id:
        raise ResponseError(
            ResponseCode.CONTROLLER_INVALID_MASTER,
            f"{request.master_broker_id} is not master of {record.broker_name}, {record.master_id} is",
        )
    if request.master_epoch != record.epoch:
        raise ResponseError(
            ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
            f"{record.broker_name} is in epoch {record.epoch}, not {request.master_epoch}",
        )
    if proposed.epoch != record.set_epoch:
        raise ResponseError(
            ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
            f"the set of {record.broker_name} has the epoch {record.set_epoch}, not {proposed.epoch}",
        )
    for member in sorted(members):
        if member not in record.replicas:
            raise ResponseError(
                ResponseCode.CONTROLLER_INVALID_REPLICAS, f"{record.broker_name} has no replica {member}"
            )
        if member not in alive:
            raise ResponseError(
                ResponseCode.CONTROLLER_BROKER_NOT_ALIVE,
                f"replica {member} of {record.broker_name} sends no heartbeats",
            )
    if record.master_id not in members:
        raise ResponseError(failed, f"the master, {record.master_id}, has to be in the set")
    changed = msgspec.structs.replace(record, sync_state_set=members, set_epoch=record.set_epoch + 1)
    header = AlterSyncStateSetResponse(new_sync_state_set_epoch=changed.set_epoch)
    return Decision(Answer(header=header, body=set_body(changed)), changed)


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


def replica_info(record: GroupRecord | None, broker_name: str, *, ha_address: str | None) -> Decision:
    """Who is master, and who is in step."""
    if record is None or not record.is_known:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST, f"no replica of {broker_name} is registered"
        )
    header = ReplicaInfoResponse(
        master_broker_id=record.master_id,
        master_address=record.master_address,
        master_epoch=record.epoch,
        master_ha_address=ha_address,
    )
    return Decision(Answer(header=header, body=set_body(record)))


def group_view(record: GroupRecord, *, alive: Container[int]) -> ReplicaGroupView:
    """A group as operators see it."""
    views = {
        broker_id: ReplicaView(
            broker_name=record.broker_name,
            broker_id=broker_id,
            broker_address=replica.address,
            is_alive=broker_id in alive,
        )
        for broker_id, replica in sorted(record.replicas.items())
    }
    return ReplicaGroupView(
        master_broker_id=record.master_id,
        master_address=record.master_address,
        master_epoch=record.epoch,
        sync_state_set_epoch=record.set_epoch,
        in_sync_replicas=[view for broker_id, view in views.items() if broker_id in record.sync_state_set],
        not_in_sync_replicas=[
            view for broker_id, view in views.items() if broker_id not in record.sync_state_set
        ],
    )


def set_body(record: GroupRecord) -> bytes:
    return encode_body(SyncStateSet(broker_ids=record.sync_state_set, epoch=record.set_epoch))


def _new_group(cleaned: GroupRecord | None, request: ApplyBrokerIdRequest) -> GroupRecord:
    """A group that begins; if there was one of that name before, its epochs go on."""
    return GroupRecord(
        cluster=request.cluster_name,
        broker_name=request.broker_name,
        epoch=0 if cleaned is None else cleaned.epoch,
        set_epoch=0 if cleaned is None else cleaned.set_epoch,
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
        )
    kept = record if record.master_id in left else record.without_master()
    return msgspec.structs.replace(
        kept, replicas=dict(left), sync_state_set=record.sync_state_set & left.keys()
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


def _require_short(*texts: str) -> None:
    for text in texts:
        if not 0 < len(text) <= _MAX_TEXT_CHARS:
            raise ResponseError(
                ResponseCode.CONTROLLER_INVALID_REQUEST,
                f"names, addresses and check codes have 1 to {_MAX_TEXT_CHARS} characters, not {len(text)}",
            )
