"""What a decision about a group is, and those about who is in step and what is shown.

Pure: record and request in, answer and changed record out. A request that can not be granted raises
ResponseError with RocketMQ's code for it, and changes nothing. The checks come in RocketMQ's order.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

import msgspec

from tanist.controller.group_record import GroupRecord
from tanist.controller.live_table import Live
from tanist.errors import ResponseError
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
    ReplicaInfoResponse,
)


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


def alter_set(
    record: GroupRecord | None,
    request: AlterSyncStateSetRequest,
    proposed: SyncStateSet,
    *,
    alive: Mapping[int, Live],
) -> Decision:
    """Change who is in step, as the master of the current reign asks for.

    RocketMQ refuses the set that is there already. From a master that knows its epoch it is taken here: it
    then has a new epoch, and no proposal that is still on its way can be taken any more.
    """
    failed = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    if record is None or not record.is_known:
        raise ResponseError(failed, f"no replica of {request.broker_name} is registered")
    members = proposed.broker_ids
    is_current = proposed.epoch == record.set_epoch and request.master_epoch == record.epoch
    if members == record.sync_state_set and not is_current:
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
    changed = msgspec.structs.replace(
        record,
        sync_state_set=members,
        member_sessions={each: session for each in members if (session := alive[each].session) is not None},
        set_epoch=record.set_epoch + 1,
    )
    header = AlterSyncStateSetResponse(new_sync_state_set_epoch=changed.set_epoch)
    return Decision(Answer(header=header, body=set_body(changed)), changed)


def replica_info(
    record: GroupRecord | None, broker_name: str, *, is_master_there: bool, ha_address: str | None
) -> Decision:
    """Who is master, and who is in step.

    A master that was started anew is not told that it is master: it would reign on in an epoch in which it
    may have lost records that others have.
    """
    if record is None or not record.is_known:
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST, f"no replica of {broker_name} is registered"
        )
    header = ReplicaInfoResponse(master_epoch=record.epoch)
    if is_master_there:
        header = msgspec.structs.replace(
            header,
            master_broker_id=record.master_id,
            master_address=record.master_address,
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
