"""Brokers and operators: ids, registration, who is master, who is in step. Only the leader answers."""

from collections.abc import Callable

from tanist.controller import decisions, registering
from tanist.controller.decisions import Answer, Decision
from tanist.controller.election import ha_address_of
from tanist.controller.group_record import GroupRecord
from tanist.controller.handlers.context import Context, Handle
from tanist.controller.keeping import MAX_GROUPS
from tanist.errors import ResponseError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.replication import SyncStateData, SyncStateSet
from tanist.protocol.headers.common import BrokerNameRequest
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    GetNextBrokerIdRequest,
    RegisterReplicaRequest,
)
from tanist.remoting import Connection


def next_id(context: Context, request: Command, connection: Connection) -> None:
    header = request.header(GetNextBrokerIdRequest)
    making = _looked(context, header.broker_name, lambda record: registering.next_id(record, header))
    context.answer_later(request, connection, making)


def apply_id(context: Context, request: Command, connection: Connection) -> None:
    header = request.header(ApplyBrokerIdRequest)
    making = _decided(context, header.broker_name, lambda record: registering.apply_id(record, header))
    context.answer_later(request, connection, making)


def register(context: Context, request: Command, connection: Connection) -> None:
    header = request.header(RegisterReplicaRequest)
    context.answer_later(request, connection, _registered(context, header))


def elect(context: Context, request: Command, connection: Connection) -> None:
    context.answer_later(request, connection, context.reigns.elect(request.header(ElectMasterRequest)))


def alter_set(context: Context, request: Command, connection: Connection) -> None:
    header = request.header(AlterSyncStateSetRequest)
    proposed = decode_java_json(request.body, SyncStateSet)

    def decide(record: GroupRecord | None) -> Decision:
        alive = context.reigns.live.members(header.broker_name)
        return decisions.alter_set(record, header, proposed, alive=alive)

    context.answer_later(request, connection, _decided(context, header.broker_name, decide))


def replica_info(context: Context, request: Command, connection: Connection) -> None:
    name = request.header(BrokerNameRequest).broker_name

    def decide(record: GroupRecord | None) -> Decision:
        return decisions.replica_info(
            record,
            name,
            is_master_there=record is not None and context.reigns.is_master_there(record),
            ha_address=_ha_address(context, record),
        )

    context.answer_later(request, connection, _looked(context, name, decide))


def sync_state_data(context: Context, request: Command, connection: Connection) -> None:
    # Whoever names one a million times is answered once, and nobody has a million.
    names = set(decode_java_json(request.body, list[str])) if request.body else set[str]()
    if len(names) > MAX_GROUPS:
        raise ResponseError(
            ResponseCode.CONTROLLER_INVALID_REQUEST,
            f"{len(names)} groups are asked for, there are {MAX_GROUPS} at most",
        )
    context.answer_later(request, connection, _viewed(context, names))


def clean(context: Context, request: Command, connection: Connection) -> None:
    header = request.header(CleanBrokerDataRequest)

    def decide(record: GroupRecord | None) -> Decision:
        situation = context.reigns.situation(record)
        return registering.clean(
            record, header, alive=situation.alive, is_lease_running=situation.is_lease_running
        )

    context.answer_later(request, connection, _decided(context, header.broker_name, decide))


async def _decided(
    context: Context, broker_name: str, decide: Callable[[GroupRecord | None], Decision]
) -> Answer:
    return (await context.keeper.change(broker_name, decide)).answer


async def _looked(
    context: Context, broker_name: str, decide: Callable[[GroupRecord | None], Decision]
) -> Answer:
    """A decision that never changes anything."""
    decision = decide(await context.keeper.get(broker_name))
    assert decision.record is None
    return decision.answer


async def _registered(context: Context, header: RegisterReplicaRequest) -> Answer:
    had_master = False

    def decide(record: GroupRecord | None) -> Decision:
        nonlocal had_master
        had_master = record is not None and record.master_id is not None
        return registering.register(
            record,
            header,
            held_by=context.reigns.live.members(header.broker_name).get(header.broker_id),
            is_master_there=record is not None and context.reigns.is_master_there(record),
            ha_address=_ha_address(context, record),
        )

    decision = await context.keeper.change(header.broker_name, decide)
    is_reign_over = had_master and decision.record is not None and decision.record.master_id is None
    context.reigns.on_registered(header.broker_name, header.broker_id, is_reign_over=is_reign_over)
    return decision.answer


async def _viewed(context: Context, names: set[str]) -> Answer:
    views = {
        name: decisions.group_view(record, alive=context.reigns.live.members(name))
        for name in names
        if (record := await context.keeper.get(name)) is not None and record.is_known
    }
    return Answer(body=encode_body(SyncStateData(groups=views)))


def _ha_address(context: Context, record: GroupRecord | None) -> str | None:
    return None if record is None else ha_address_of(record, context.reigns.live.members(record.broker_name))


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: next_id,
    RequestCode.CONTROLLER_APPLY_BROKER_ID: apply_id,
    RequestCode.CONTROLLER_REGISTER_BROKER: register,
    RequestCode.CONTROLLER_ELECT_MASTER: elect,
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: alter_set,
    RequestCode.CONTROLLER_GET_REPLICA_INFO: replica_info,
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: sync_state_data,
    RequestCode.CLEAN_BROKER_DATA: clean,
}
