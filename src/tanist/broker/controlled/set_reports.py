"""Tells the controller who is in step with this master (1001), and what came of it.

A proposal whose answer is lost may have been taken, and may be taken yet, so it is not sent again here: the
master first counts with it. A refusal is one of a proposal that was sent once, and has changed nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tanist.broker.controlled.controllers import Controllers
from tanist.broker.controlled.group_view import GroupView, replica_info_view
from tanist.broker.controlled.identity import Identity
from tanist.errors import NoLeader, ProtocolError, RemotingError, ResponseError
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import BrokerNameRequest
from tanist.protocol.headers.controller import AlterSyncStateSetRequest


class Proposal(Protocol):
    """The set that a master wants, on top of one that it knows."""

    @property
    def members(self) -> frozenset[int]: ...
    @property
    def set_epoch(self) -> int:
        """Of the set that it replaces."""
        ...


@dataclass(frozen=True, slots=True)
class SetTaken:
    """The controller has this set now."""

    members: frozenset[int]
    set_epoch: int


@dataclass(frozen=True, slots=True)
class SetRefused:
    """The controller did not take the proposal, and keeps the set of ``view``."""

    code: int
    reason: str
    view: GroupView


@dataclass(frozen=True, slots=True)
class SetUnknown:
    """Nobody answered, or not well: the proposal may have been taken, or be taken yet."""

    reason: str


SetAnswer = SetTaken | SetRefused | SetUnknown


async def ask_replica_info(controllers: Controllers, broker_name: str) -> Command:
    """The leader's answer to who is master of a group (1004). Raises what ``Controllers.ask`` does."""
    header = BrokerNameRequest(broker_name=broker_name)
    return await controllers.ask(lambda: Command.request(RequestCode.CONTROLLER_GET_REPLICA_INFO, header))


class SetReports:
    """Reports of one master, one at a time."""

    def __init__(self, controllers: Controllers, identity: Identity, now_ms: Callable[[], int]) -> None:
        self._controllers = controllers
        self._identity = identity
        self._now_ms = now_ms
        self._turn = asyncio.Lock()

    async def report(self, proposal: Proposal, *, epoch: int) -> SetAnswer:
        """Propose a set as master of ``epoch``."""
        async with self._turn:
            try:
                answer = await self._controllers.ask(lambda: self._request(proposal, epoch), is_once=True)
                taken = decode_java_json(answer.body, SyncStateSet)
            except ResponseError as refusal:
                return await self._refused(refusal)
            except (RemotingError, NoLeader, ProtocolError) as error:
                return SetUnknown(str(error))
            return SetTaken(taken.broker_ids, taken.epoch)

    async def _refused(self, refusal: ResponseError) -> SetRefused | SetUnknown:
        """The controller may have another set than we know, by an earlier proposal whose answer was lost."""
        try:
            answer = await ask_replica_info(self._controllers, self._identity.broker_name)
            return SetRefused(refusal.code, str(refusal), replica_info_view(answer))
        except (RemotingError, NoLeader, ResponseError, ProtocolError) as error:
            return SetUnknown(f"{refusal}; then {error}")

    def _request(self, proposal: Proposal, epoch: int) -> Command:
        header = AlterSyncStateSetRequest(
            broker_name=self._identity.broker_name,
            master_broker_id=self._identity.broker_id,
            master_epoch=epoch,
            invoke_time_ms=self._now_ms(),
        )
        body = SyncStateSet(broker_ids=proposal.members, epoch=proposal.set_epoch)
        return Command.request(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body=encode_body(body))
