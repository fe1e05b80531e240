"""Controllers played by a test: one group's record, asked by any address, and the faults of each address."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import cast

from tanist.errors import ConnectFailed, RequestTimeout
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.replication import ElectMasterAnswer, SyncStateSet
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    ControllerMetadataResponse,
    ElectMasterRequest,
    ElectMasterResponse,
    GetNextBrokerIdResponse,
    RegisterReplicaRequest,
    RegisterReplicaResponse,
    ReplicaInfoResponse,
)
from tanist.remoting import RemotingClient

_LATENCY_S = 0.001


class PlayedControllers:
    """Controllers that share a record, one of which leads. They stand in for a RemotingClient to them."""

    def __init__(self, *addresses: str, language: Language = Language.PYTHON) -> None:
        self.addresses = addresses or ("c1:9878",)
        self.leader: str | None = self.addresses[0]
        self.language = language
        self.down: set[str] = set()
        self.stuck: set[str] = set()
        self.believed: dict[str, str] = {}
        """Who leads, as a controller that is behind tells."""
        self.asked: list[tuple[float, str, Command]] = []
        self.open_count: Counter[str] = Counter()
        self.most_open: Counter[str] = Counter()
        self.on_disconnect: Callable[[str], None] = lambda _address: None
        self.is_closed = False
        self.given_up: list[str] = []
        # The record.
        self.ids: dict[int, str] = {}
        self.places: dict[int, str] = {}
        self.ha_addresses: dict[int, str] = {}
        self.beats: list[BrokerHeartbeatRequest] = []
        self.master_id: int | None = None
        self.epoch = 0
        self.set_epoch = 0
        self.members: frozenset[int] = frozenset()
        self.refusals: dict[int, list[int]] = {}
        """Codes to answer the next requests of a kind with, before they are served."""
        self.grants_leases = language is Language.PYTHON

    @property
    def client(self) -> RemotingClient:
        return cast("RemotingClient", self)

    def make_client(self, on_disconnect: Callable[[str], None]) -> RemotingClient:
        self.on_disconnect = on_disconnect
        return self.client

    def give_up(self, address: str, _reason: str) -> None:
        self.given_up.append(address)
        self.on_disconnect(address)

    async def close(self) -> None:
        self.is_closed = True

    def fail(self, address: str) -> None:
        """A controller's process ends."""
        self.down.add(address)
        self.on_disconnect(address)

    def choose(self, broker_id: int | None, members: Iterable[int] | None = None) -> None:
        """Another master, or none."""
        self.master_id = broker_id
        self.epoch += 1
        if broker_id is not None:
            self.members = frozenset(members or {broker_id})
            self.set_epoch += 1

    def times_of(self, code: RequestCode, address: str | None = None) -> list[float]:
        """When this was asked, of anybody or of one."""
        return [at for at, asked, command in self.asked if command.code == code and address in (None, asked)]

    async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
        loop = asyncio.get_running_loop()
        self.asked.append((loop.time(), address, command))
        self.open_count[address] += 1
        self.most_open[address] = max(self.most_open[address], self.open_count[address])
        try:
            if address in self.down:
                raise ConnectFailed(address, "refused")
            if address in self.stuck:
                await asyncio.sleep(timeout_s)
                raise RequestTimeout(address, command.code, timeout_s)
            await asyncio.sleep(_LATENCY_S)
            answer = self._answer(address, command)
            await asyncio.sleep(_LATENCY_S)
        finally:
            self.open_count[address] -= 1
        answer.language = self.language
        return answer

    def _answer(self, address: str, command: Command) -> Command:
        if command.code == RequestCode.CONTROLLER_GET_METADATA_INFO:
            leader = self.believed.get(address, self.leader)
            return command.reply(header=ControllerMetadataResponse(controller_leader_address=leader))
        if command.code == RequestCode.BROKER_HEARTBEAT:
            return command.reply(header=BrokerHeartbeatResponse(lease_epoch=self._lease(address, command)))
        if address != self.leader:
            return command.reply(ResponseCode.CONTROLLER_NOT_LEADER, remark="not the leader")
        if planned := self.refusals.get(command.code):
            return command.reply(planned.pop(0), remark="planned")
        serve = {
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: self._next_id,
            RequestCode.CONTROLLER_APPLY_BROKER_ID: self._apply,
            RequestCode.CONTROLLER_REGISTER_BROKER: self._register,
            RequestCode.CONTROLLER_ELECT_MASTER: self._elect,
            RequestCode.CONTROLLER_GET_REPLICA_INFO: self._info,
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: self._alter,
        }
        return serve[RequestCode(command.code)](command)

    def _lease(self, address: str, command: Command) -> int | None:
        beat = command.header(BrokerHeartbeatRequest)
        self.beats.append(beat)
        is_master = beat.broker_id == self.master_id
        return self.epoch if is_master and address == self.leader and self.grants_leases else None

    def _next_id(self, command: Command) -> Command:
        return command.reply(header=GetNextBrokerIdResponse(next_broker_id=max(self.ids, default=0) + 1))

    def _apply(self, command: Command) -> Command:
        request = command.header(ApplyBrokerIdRequest)
        code = self.ids.setdefault(request.applied_broker_id, request.register_check_code)
        if code != request.register_check_code:
            return command.reply(ResponseCode.CONTROLLER_BROKER_ID_INVALID, remark="it is another's")
        return command.reply()

    def _register(self, command: Command) -> Command:
        request = command.header(RegisterReplicaRequest)
        if request.broker_id not in self.ids:
            return command.reply(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark="unknown")
        self.places[request.broker_id] = request.broker_address
        if self.master_id is None:
            return command.reply(header=RegisterReplicaResponse(), body=self._set())
        header = RegisterReplicaResponse(
            master_broker_id=self.master_id,
            master_address=self.places.get(self.master_id),
            master_epoch=self.epoch,
            sync_state_set_epoch=self.set_epoch,
            master_ha_address=self.ha_addresses.get(self.master_id),
        )
        return command.reply(header=header, body=self._set())

    def _elect(self, command: Command) -> Command:
        request = command.header(ElectMasterRequest)
        code = ResponseCode.CONTROLLER_MASTER_STILL_EXIST
        if self.master_id is None:
            if self.members and request.broker_id not in self.members:
                return command.reply(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, remark="not in step")
            self.choose(request.broker_id)
            code = ResponseCode.SUCCESS
        assert self.master_id is not None
        header = ElectMasterResponse(
            master_broker_id=self.master_id,
            master_address=self.places.get(self.master_id),
            master_epoch=self.epoch,
            sync_state_set_epoch=self.set_epoch,
            master_ha_address=self.ha_addresses.get(self.master_id),
        )
        return command.reply(code, header, body=encode_body(ElectMasterAnswer(sync_state_set=self.members)))

    def _info(self, command: Command) -> Command:
        if not self.ids:
            return command.reply(ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST, remark="unknown group")
        header = ReplicaInfoResponse(master_epoch=self.epoch)
        if self.master_id is not None:
            header = ReplicaInfoResponse(
                master_broker_id=self.master_id,
                master_address=self.places.get(self.master_id),
                master_epoch=self.epoch,
                master_ha_address=self.ha_addresses.get(self.master_id),
            )
        return command.reply(header=header, body=self._set())

    def _alter(self, command: Command) -> Command:
        request = command.header(AlterSyncStateSetRequest)
        wanted = decode_java_json(command.body, SyncStateSet)
        if request.master_epoch != self.epoch:
            return command.reply(ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, remark="another epoch")
        if wanted.epoch != self.set_epoch:
            return command.reply(ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, remark="another set")
        self.members, self.set_epoch = wanted.broker_ids, self.set_epoch + 1
        return command.reply(body=self._set())

    def _set(self) -> bytes:
        return encode_body(SyncStateSet(broker_ids=self.members, epoch=self.set_epoch))
