"""Tells the controllers that a broker's process has ended: they need not wait for its lease to run out.

The connections are opened long before, so that a report is one write to each controller.
"""

import asyncio
import logging
import random

from tanist.backoff import Backoff
from tanist.errors import ConnectFailed, ConnectionLost, RemotingError
from tanist.log import ToldFailures
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import ReportDeadBrokerRequest
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)

_KEEP_S = 1.0
"""How often each controller is asked something, which opens a connection that was lost."""
_ANSWER_S = 1.0
_REPORT_S = 1.0
"""How long a report is tried. Not much later the lease is over anyway."""


class DeathReport:
    """What is to be told, and whom. ``keep_ready`` runs beforehand."""

    def __init__(
        self, report: ReportDeadBrokerRequest, controllers: tuple[str, ...], client: RemotingClient
    ) -> None:
        self._report = report
        self._controllers = controllers
        self._client = client
        self._failures = ToldFailures()

    async def keep_ready(self) -> None:
        """Keep a connection to each controller, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for controller in self._controllers:
                tasks.create_task(self._keep(controller))

    async def send(self) -> None:
        """Tell all controllers at once, and wait for their answers, a second at most.

        Not all have to be reached: the one that leads is enough, and without it the lease runs out.
        """
        async with asyncio.TaskGroup() as tasks:
            for controller in self._controllers:
                tasks.create_task(self._tell(controller))

    async def _keep(self, controller: str) -> None:
        while True:
            try:
                await self._client.request(
                    controller,
                    Command.request(RequestCode.CONTROLLER_GET_METADATA_INFO),
                    timeout_s=_ANSWER_S,
                )
                self._failures.is_over(controller)
            except RemotingError as error:
                if self._failures.is_news(controller, str(error)):
                    _log.warning("controller not reached controller=%s error=%s", controller, error)
            await asyncio.sleep(_KEEP_S)

    async def _tell(self, controller: str) -> None:
        deadline_s = asyncio.get_running_loop().time() + _REPORT_S
        backoff = Backoff()
        while True:
            left_s = deadline_s - asyncio.get_running_loop().time()
            try:
                request = Command.request(RequestCode.CONTROLLER_REPORT_DEAD_BROKER, self._report)
                answer = await self._client.request(controller, request, timeout_s=left_s)
            except RemotingError as error:
                pause_s = backoff.next_s(random.random())  # noqa: S311
                # A connection that is closed may be one that was, and the controller back meanwhile.
                if isinstance(error, ConnectFailed | ConnectionLost) and pause_s < left_s:
                    await asyncio.sleep(pause_s)
                    continue
                _log.warning("death not reported controller=%s error=%s", controller, error)
            else:
                if answer.code == ResponseCode.SUCCESS:
                    _log.info("death reported controller=%s", controller)
                else:
                    _log.info("death reported in vain controller=%s answer=%s", controller, answer.remark)
            return
