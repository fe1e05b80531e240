"""Heartbeats to every controller, each on its own: one that is stuck delays no other.

All of them are told because any may lead next, and each keeps its own table of who lives. A heartbeat that
the leader answers renews the master's lease, counted from when it was sent. A connection that is lost is
opened again at once, and one on which nothing was answered for the whole timeout is given up for another.
"""

import asyncio
import logging
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from tanist.broker.controlled.controllers import Controllers
from tanist.clock import Clock
from tanist.errors import MQError, RequestTimeout, ResponseError
from tanist.log import ToldFailures
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tanist.protocol.response_errors import error_of
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)

SESSION_VARIABLE = "TANIST_SESSION_ID"
"""Whoever starts a broker may choose its session here, and so be able to tell that it died."""
_SESSION_BYTES = 16
_TRIES_IN_TIME = 3
"""So many heartbeats in a row may go unanswered in the time after which a controller takes us for gone."""
_LEAST_GAP_S = 0.1
"""Between two heartbeats to one controller, however often it is wished for."""


def session_id() -> str:
    """The name of this run of the broker: another one each time it starts, known to no stranger."""
    return os.environ.get(SESSION_VARIABLE) or secrets.token_hex(_SESSION_BYTES)


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    """One controller has answered a heartbeat, with yes or no."""

    address: str
    sent_s: float
    """When the heartbeat was sent, on the monotonic clock."""
    lease_epoch: int | None
    """The epoch whose master may acknowledge; None if it is not us, or this controller does not lead."""


class Heartbeats:
    """The heartbeats of one broker while ``run`` runs."""

    def __init__(
        self,
        client: RemotingClient,
        controllers: Controllers,
        make_header: Callable[[], BrokerHeartbeatRequest],
        on_answer: Callable[[BeatAnswer], None],
        *,
        interval_s: float,
        timeout_s: float,
        clock: Clock,
    ) -> None:
        self._client = client
        self._make_header = make_header
        self._on_answer = on_answer
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._answer_s = max(interval_s, timeout_s / _TRIES_IN_TIME)
        self._clock = clock
        self._failures = ToldFailures()
        self._wishes = {address: asyncio.Event() for address in controllers.addresses}
        self._answered = asyncio.Event()
        self._silent_since_s: dict[str, float] = {}

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for address, wish in self._wishes.items():
                tasks.create_task(self._keep_beating(address, wish))

    def soon(self, address: str | None = None) -> None:
        """Send the next one now, to one controller or to all: a role has changed, or a connection is lost."""
        for known, wish in self._wishes.items():
            if address is None or address == known:
                wish.set()

    async def wait_answered(self) -> None:
        """Return when a controller has answered one: it knows that we live."""
        await self._answered.wait()

    async def _keep_beating(self, address: str, wish: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun_s = loop.time()
            wish.clear()
            await self._beat(address)
            try:
                async with asyncio.timeout_at(begun_s + self._interval_s):
                    await wish.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(max(0.0, begun_s + _LEAST_GAP_S - loop.time()))

    async def _beat(self, address: str) -> None:
        request = Command.request(RequestCode.BROKER_HEARTBEAT, self._make_header())
        sent_s = self._clock.monotonic_s()
        try:
            answer = await self._client.request(address, request, timeout_s=self._answer_s)
            if answer.code != ResponseCode.SUCCESS:
                raise error_of(answer)
            lease_epoch = answer.header(BrokerHeartbeatResponse).lease_epoch
        except MQError as error:
            if self._failures.is_news(address, str(error)):
                _log.warning("controller takes no heartbeat address=%s reason=%s", address, error)
            if isinstance(error, RequestTimeout):
                self._on_silence(address, sent_s)
            elif isinstance(error, ResponseError):
                self._on_answer(BeatAnswer(address, sent_s, None))
            return
        self._silent_since_s.pop(address, None)
        if self._failures.is_over(address):
            _log.info("controller takes heartbeats again address=%s", address)
        self._answered.set()
        self._on_answer(BeatAnswer(address, sent_s, lease_epoch))

    def _on_silence(self, address: str, sent_s: float) -> None:
        """By then the controller takes us for gone anyway, so that nothing is lost with the connection."""
        since_s = self._silent_since_s.setdefault(address, sent_s)
        silent_s = self._clock.monotonic_s() - since_s
        if silent_s >= self._timeout_s:
            del self._silent_since_s[address]
            self._client.give_up(address, f"no heartbeat was answered for {silent_s:.1f} s")
