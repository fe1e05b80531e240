"""Controllers: who leads them, who is master of each group, and changing that by hand."""

from collections.abc import Iterable, Sequence

import msgspec

from tanist.admin.cluster import broker_epochs, cluster_info
from tanist.admin.parallel import Told, ask_each
from tanist.admin.refused import NotThere
from tanist.admin.rows import Row
from tanist.client.session.wire import Wire
from tanist.model.route import ClusterInfo
from tanist.protocol.bodies.config_text import decode_config, encode_config
from tanist.protocol.bodies.replication import (
    OPEN_END,
    ElectMasterAnswer,
    EpochCache,
    ReplicaGroupView,
    SyncStateData,
)
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import (
    CleanBrokerDataRequest,
    ControllerMetadataResponse,
    ElectMasterRequest,
    ElectMasterResponse,
)
from tanist.protocol.java_json import decode_java_json

_ELECTION_TIMEOUT_S = 15.0


class ReplicaRow(Row, frozen=True, kw_only=True):
    """One replica as the controller sees it."""

    broker_name: str
    broker_id: int
    addr: str
    is_master: bool
    is_in_sync: bool
    is_alive: bool
    master_epoch: int
    sync_state_set_epoch: int


class EpochRow(Row, frozen=True, kw_only=True):
    """One epoch in the log of one replica; the last one has no end yet."""

    broker_name: str
    broker_id: int
    addr: str
    epoch: int
    start_offset: int
    end_offset: int | None


class Elected(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who is master after an election."""

    broker_name: str
    master_broker_id: int | None
    master_address: str | None
    master_epoch: int | None
    sync_state_set_epoch: int | None
    sync_state_set: list[int]


async def controller_metadata(wire: Wire, controller: str) -> ControllerMetadataResponse:
    """Who leads the controllers, and who they are."""
    answer = await wire.ask(controller, Command.request(RequestCode.CONTROLLER_GET_METADATA_INFO))
    return answer.header(ControllerMetadataResponse)


async def leader_of(wire: Wire, controllers: Sequence[str]) -> str:
    """The controller that leads, as the first that answers says."""
    told = await ask_each(controllers, lambda address: controller_metadata(wire, address))
    for each in told:
        if each.value is not None and each.value.controller_leader_address:
            return each.value.controller_leader_address
    failure = next((each.failure for each in told if each.failure is not None), None)
    raise failure or NotThere(f"{', '.join(controllers)} name no controller that leads")


async def controller_config(wire: Wire, controllers: Sequence[str]) -> list[Told[dict[str, str]]]:
    """The settings that each controller runs with."""

    async def look(address: str) -> dict[str, str]:
        answer = await wire.ask(address, Command.request(RequestCode.GET_CONTROLLER_CONFIG))
        return decode_config(answer.body)

    return await ask_each(controllers, look)


async def update_controller_config(
    wire: Wire, controllers: Sequence[str], changes: dict[str, str]
) -> list[Told[None]]:
    """Change settings of controllers while they run."""

    async def update(address: str) -> None:
        command = Command.request(RequestCode.UPDATE_CONTROLLER_CONFIG, body=encode_config(changes))
        await wire.ask(address, command)

    return await ask_each(controllers, update)


async def sync_state(
    wire: Wire, controllers: Sequence[str], names: Iterable[str]
) -> dict[str, ReplicaGroupView]:
    """Who is master of these groups, who is in step with it, and who is not."""
    body = msgspec.json.encode(sorted(names))
    command = Command.request(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, body=body)
    answer = await wire.ask(await leader_of(wire, controllers), command)
    return decode_java_json(answer.body, SyncStateData).groups


def replica_rows(groups: dict[str, ReplicaGroupView]) -> list[ReplicaRow]:
    """Groups as a table with a row a replica."""
    return [
        ReplicaRow(
            broker_name=name,
            broker_id=replica.broker_id,
            addr=replica.broker_address,
            is_master=replica.broker_id == group.master_broker_id,
            is_in_sync=is_in_sync,
            is_alive=replica.is_alive,
            master_epoch=group.master_epoch,
            sync_state_set_epoch=group.sync_state_set_epoch,
        )
        for name, group in sorted(groups.items())
        for is_in_sync, replicas in ((True, group.in_sync_replicas), (False, group.not_in_sync_replicas))
        for replica in sorted(replicas, key=lambda each: each.broker_id)
    ]


async def groups_named(
    wire: Wire, name_server: str, *, broker_name: str | None, cluster: str | None
) -> ClusterInfo:
    """The replica groups of that name, or of that cluster, or all. Raises NotThere if there is none."""
    info = await cluster_info(wire, name_server)
    found = {
        name: group
        for name, group in info.broker_addr_table.items()
        if broker_name in (None, name) and cluster in (None, group.cluster)
    }
    if not found:
        known = ", ".join(sorted(info.broker_addr_table)) or "none"
        raise NotThere(
            f"{name_server} knows no brokers {broker_name or f'of cluster {cluster}'}; it knows {known}"
        )
    return msgspec.structs.replace(info, broker_addr_table=found)


async def epoch_rows(wire: Wire, info: ClusterInfo) -> list[Told[list[EpochRow]]]:
    """The epochs in the logs of all replicas of these groups."""

    async def look(address: str) -> list[EpochRow]:
        return _rows(address, await broker_epochs(wire, address))

    addresses = [
        address
        for _, group in sorted(info.broker_addr_table.items())
        for _, address in sorted(group.broker_addrs.items())
    ]
    return await ask_each(addresses, look)


async def elect_master(
    wire: Wire, controllers: Sequence[str], *, cluster: str, broker_name: str, broker_id: int
) -> Elected:
    """Have this replica become master of its group. Raises ResponseError if it must not."""
    header = ElectMasterRequest(
        cluster_name=cluster, broker_name=broker_name, broker_id=broker_id, is_designated=True
    )
    answer = await wire.ask(
        await leader_of(wire, controllers),
        Command.request(RequestCode.CONTROLLER_ELECT_MASTER, header),
        timeout_s=_ELECTION_TIMEOUT_S,
    )
    told = answer.header(ElectMasterResponse)
    body = decode_java_json(answer.body, ElectMasterAnswer) if answer.body else ElectMasterAnswer()
    return Elected(
        broker_name=broker_name,
        master_broker_id=told.master_broker_id,
        master_address=told.master_address,
        master_epoch=told.master_epoch,
        sync_state_set_epoch=told.sync_state_set_epoch,
        sync_state_set=sorted(body.sync_state_set),
    )


async def clean_broker_metadata(
    wire: Wire,
    controllers: Sequence[str],
    *,
    cluster: str | None,
    broker_name: str,
    broker_ids: str | None,
    are_living_too: bool,
) -> None:
    """Have the controllers forget replicas that do not come back, or a whole group."""
    header = CleanBrokerDataRequest(
        cluster_name=cluster,
        broker_name=broker_name,
        broker_ids=broker_ids,
        is_clean_living_broker=are_living_too,
    )
    await wire.ask(await leader_of(wire, controllers), Command.request(RequestCode.CLEAN_BROKER_DATA, header))


def _rows(address: str, cache: EpochCache) -> list[EpochRow]:
    return [
        EpochRow(
            broker_name=cache.broker_name,
            broker_id=cache.broker_id,
            addr=address,
            epoch=each.epoch,
            start_offset=each.start,
            end_offset=None if each.end == OPEN_END else each.end,
        )
        for each in cache.epochs
    ]
