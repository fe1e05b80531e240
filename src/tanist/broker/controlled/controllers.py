"""Asks the controller that leads, and finds it: any of them knows which one that is.

The leader is kept until it says that it leads no more (2007), is silent, or its connection is gone; then all
are asked at once and the first that names another one is believed. What is asked of a controller may be
asked again without harm: epochs, set epochs and check codes see to that. RocketMQ's controllers do as well
as ours, one or several.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence

from tanist.backoff import Backoff
from tanist.errors import ConnectionLost, MQError, NoLeader, RemotingError, RequestTimeout, ResponseError
from tanist.model.host import is_host_and_port
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import ControllerMetadataResponse
from tanist.protocol.response_errors import error_of
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)

DEADLINE_S = 3.0
_FIRST_TRY_S = 1.0
"""A leader that is silent for so long may be frozen: another one may lead by now."""
_FIND_S = 1.0
_MOST_TRIES = 5
_PAUSE_S = 0.2
"""At most, between tries: while controllers choose their leader nobody can say who it is."""


class Controllers:
    """The controllers of one broker."""

    def __init__(
        self, client: RemotingClient, addresses: Sequence[str], *, chance: Callable[[], float] = random.random
    ) -> None:
        self._client = client
        self.addresses = tuple(addresses)
        self._chance = chance
        self.leader: str | None = None
        """Who led when it was last asked."""
        self._told_leader: str | None = None

    def forget(self, address: str) -> None:
        """A controller is gone, or does not lead: if it did, the leader is looked for when next asked."""
        if self.leader == address:
            self.leader = None

    async def ask(
        self,
        make_request: Callable[[], Command],
        *,
        passing: frozenset[int] = frozenset(),
        is_once: bool = False,
    ) -> Command:
        """The leader's answer, within 3 s. Raises NoLeader or a RemotingError if there is none.

        An answer that says no is raised as a ResponseError, unless its code is one of ``passing``. With
        ``is_once`` a request that may have been taken is not sent a second time.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + DEADLINE_S
        backoff = Backoff(most_s=_PAUSE_S)
        failed: str | None = None
        for tries_left in reversed(range(_MOST_TRIES)):
            try:
                leader = self.leader or await self.find_leader(not_wanted=failed)
                try:
                    left_s = max(0.001, deadline_s - loop.time())
                    timeout_s = left_s if failed == leader else min(left_s, _FIRST_TRY_S)
                    answer = await self._client.request(leader, make_request(), timeout_s=timeout_s)
                    if answer.code == ResponseCode.CONTROLLER_NOT_LEADER:
                        raise error_of(answer)
                except MQError:
                    failed = leader
                    self.forget(leader)
                    raise
            except (RemotingError, NoLeader, ResponseError) as error:
                pause_s = backoff.next_s(self._chance())
                is_in_doubt = is_once and isinstance(error, ConnectionLost | RequestTimeout)
                if is_in_doubt or not tries_left or loop.time() + pause_s >= deadline_s:
                    raise
                await asyncio.sleep(pause_s)
                continue
            if answer.code != ResponseCode.SUCCESS and answer.code not in passing:
                raise error_of(answer)
            return answer
        raise AssertionError("unreachable")

    async def find_leader(self, *, not_wanted: str | None = None) -> str:
        """Ask all who leads, and keep the first that is named. Raises NoLeader.

        ``not_wanted`` has failed just now: it is believed only if nobody names another one.
        """
        found: str | None = None
        reasons: list[str] = []
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(self._named_by(address)) for address in self.addresses]
            for answer in asyncio.as_completed(asked):
                named, reason = await answer
                if named is None:
                    reasons.append(reason)
                    continue
                found = named
                if named != not_wanted:
                    break
            for task in asked:
                task.cancel()
        if found is None:
            raise NoLeader("; ".join(sorted(reasons)))
        if found != self._told_leader:
            _log.info("controller leads address=%s", found)
        self.leader = self._told_leader = found
        return found

    async def _named_by(self, address: str) -> tuple[str | None, str]:
        """The leader as one controller names it, or why it does not."""
        try:
            answer = await self._client.request(
                address, Command.request(RequestCode.CONTROLLER_GET_METADATA_INFO), timeout_s=_FIND_S
            )
            if answer.code != ResponseCode.SUCCESS:
                raise error_of(answer)
            named = answer.header(ControllerMetadataResponse).controller_leader_address or ""
        except MQError as error:
            return None, f"{address}: {error}"
        return (named, "") if is_host_and_port(named) else (None, f"{address} knows of none")
