"""A replica group as the controller tells it, whichever answer it comes in."""

from dataclasses import dataclass

from tanist.broker.master_place import MasterPlace
from tanist.model.host import is_host_and_port
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import ElectMasterAnswer, SyncStateSet
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import (
    ElectMasterResponse,
    RegisterReplicaResponse,
    ReplicaInfoResponse,
)


@dataclass(frozen=True, slots=True)
class GroupView:
    """Who is master, of which epoch, and who is in step with it."""

    epoch: int
    master_id: int | None = None
    """None while there is no master."""
    master_address: str | None = None
    master_ha_address: str | None = None
    """Tanist's controllers tell it."""
    sync_state_set: frozenset[int] = frozenset()
    set_epoch: int = 0

    @property
    def master(self) -> MasterPlace | None:
        """Where the master is; None if that is not wholly known."""
        if self.master_address is None or not is_host_and_port(self.master_ha_address or ""):
            return None
        return MasterPlace(self.master_address, self.master_ha_address or "")


def registered_view(answer: Command) -> GroupView:
    """What the answer to CONTROLLER_REGISTER_BROKER tells. Raises RemoteProtocolError."""
    header = answer.header(RegisterReplicaResponse)
    return _view(header, _told_set(answer), header.sync_state_set_epoch)


def elected_view(answer: Command) -> GroupView:
    """What the answer to CONTROLLER_ELECT_MASTER tells. Raises RemoteProtocolError."""
    header = answer.header(ElectMasterResponse)
    told = decode_java_json(answer.body, ElectMasterAnswer) if answer.body else ElectMasterAnswer()
    return _view(header, SyncStateSet(broker_ids=told.sync_state_set), header.sync_state_set_epoch)


def replica_info_view(answer: Command) -> GroupView:
    """What the answer to CONTROLLER_GET_REPLICA_INFO tells. Raises RemoteProtocolError."""
    return _view(answer.header(ReplicaInfoResponse), _told_set(answer), None)


def _told_set(answer: Command) -> SyncStateSet:
    return decode_java_json(answer.body, SyncStateSet) if answer.body else SyncStateSet()


def _view(
    header: RegisterReplicaResponse | ElectMasterResponse | ReplicaInfoResponse,
    told: SyncStateSet,
    set_epoch: int | None,
) -> GroupView:
    # RocketMQ takes a group for one without a master as well if an address is missing.
    is_named = header.master_broker_id is not None and is_host_and_port(header.master_address or "")
    return GroupView(
        epoch=header.master_epoch or 0,
        master_id=header.master_broker_id if is_named else None,
        master_address=header.master_address if is_named else None,
        master_ha_address=header.master_ha_address if is_named else None,
        sync_state_set=told.broker_ids,
        set_epoch=told.epoch if set_epoch is None else set_epoch,
    )
