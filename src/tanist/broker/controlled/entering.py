"""The questions by which a replica joins its group: each is one step of ``Joining``, and says how it went."""

import asyncio

from tanist.broker.controlled.controllers import Controllers
from tanist.broker.controlled.group_view import (
    GroupView,
    elected_view,
    registered_view,
    replica_info_view,
)
from tanist.broker.controlled.identity import AppliedIdentity, Identity, IdentityFiles
from tanist.broker.controlled.joining import Joining
from tanist.broker.controlled.set_reports import ask_replica_info
from tanist.clock import Clock
from tanist.errors import RemoteProtocolError, ResponseError
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import (
    ApplyBrokerIdRequest,
    ElectMasterRequest,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    RegisterReplicaRequest,
)

_STILL_MASTER = frozenset({int(ResponseCode.CONTROLLER_MASTER_STILL_EXIST)})


class Entering:
    """Asks for one replica. Files are written off the event loop."""

    def __init__(
        self,
        controllers: Controllers,
        files: IdentityFiles,
        address: str,
        clock: Clock,
        joining: Joining,
    ) -> None:
        self._controllers = controllers
        self._files = files
        self._address = address
        self._clock = clock
        self._joining = joining

    async def find_leader(self) -> None:
        await self._controllers.find_leader()
        self._joining.on_leader()

    async def ask_for_id(self) -> None:
        """Ask which id is free (1012), and write it down before it is applied for."""
        mine = self._files.identity(0)
        header = GetNextBrokerIdRequest(cluster_name=mine.cluster, broker_name=mine.broker_name)
        answer = await self._controllers.ask(
            lambda: Command.request(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, header)
        )
        broker_id = answer.header(GetNextBrokerIdResponse).next_broker_id
        if broker_id is None or broker_id < 1:
            raise RemoteProtocolError(f"the controller gives the id {broker_id}, and ids begin at 1")
        code = f"{self._address};{self._clock.now_ms()}"
        applied = AppliedIdentity(self._files.identity(broker_id), code)
        await asyncio.to_thread(self._files.apply_for, applied)
        self._joining.on_next_id(applied)

    async def apply(self) -> None:
        """Apply for the id (1013). If it is another's it is forgotten, and the ResponseError is raised."""
        applied = self._joining.applied
        assert applied is not None
        identity = applied.identity
        header = ApplyBrokerIdRequest(
            cluster_name=identity.cluster,
            broker_name=identity.broker_name,
            applied_broker_id=identity.broker_id,
            register_check_code=applied.check_code,
        )
        try:
            await self._controllers.ask(
                lambda: Command.request(RequestCode.CONTROLLER_APPLY_BROKER_ID, header)
            )
        except ResponseError as refusal:
            if refusal.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID:
                await asyncio.to_thread(self._files.give_up)
            raise
        await asyncio.to_thread(self._files.keep, identity)
        self._joining.on_applied(identity)

    async def register(self) -> GroupView:
        """Tell the controller where this replica is (1003). Raises a ResponseError that tells the way out."""
        identity = self._identity
        header = RegisterReplicaRequest(
            cluster_name=identity.cluster,
            broker_name=identity.broker_name,
            broker_id=identity.broker_id,
            broker_address=self._address,
            invoke_time_ms=self._clock.now_ms(),
        )
        try:
            answer = await self._controllers.ask(
                lambda: Command.request(RequestCode.CONTROLLER_REGISTER_BROKER, header)
            )
        except ResponseError as refusal:
            if refusal.code != ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED:
                raise
            remark = (
                f"the controller does not know replica {identity.broker_id} of {identity.broker_name}: it "
                "was cleaned away, or this is another controller; point controllerAddr to the one that gave "
                "the id, or delete brokerIdentity and be given another"
            )
            raise ResponseError(refusal.code, remark) from refusal
        self._joining.on_registered()
        return registered_view(answer)

    async def elect(self) -> GroupView:
        """Offer this replica as master (1002): the controller chooses. It may say who is master already."""
        identity = self._identity
        header = ElectMasterRequest(
            cluster_name=identity.cluster,
            broker_name=identity.broker_name,
            broker_id=identity.broker_id,
            is_designated=False,
            invoke_time_ms=self._clock.now_ms(),
        )
        answer = await self._controllers.ask(
            lambda: Command.request(RequestCode.CONTROLLER_ELECT_MASTER, header), passing=_STILL_MASTER
        )
        return elected_view(answer)

    async def replica_info(self) -> tuple[GroupView, Language]:
        """Who is master (1004), and what the controller that told it is written in."""
        answer = await ask_replica_info(self._controllers, self._identity.broker_name)
        return replica_info_view(answer), answer.language

    @property
    def _identity(self) -> Identity:
        identity = self._joining.identity
        assert identity is not None
        return identity
