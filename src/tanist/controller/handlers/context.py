"""What every handler of the controller works with, and how requests that fail are counted."""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tanist.clock import Clock
from tanist.controller.decisions import Answer
from tanist.controller.keeping import GroupKeeper
from tanist.controller.leading import Leading, NotLeading
from tanist.controller.refusals import Refusals
from tanist.controller.reigns import Reigns
from tanist.controller.remote_sessions import RemoteSessions
from tanist.controller.settings import LiveSettings
from tanist.errors import ResponseError
from tanist.protocol import Command, ResponseCode
from tanist.remoting import Connection, ServerLimits
from tanist.remoting.line_budget import LineBudget
from tanist.remoting.replies import frame_answer, frame_failure, is_expected

_MAX_WAITING = 1024
"""Requests that may wait for the registry at once."""

_log = logging.getLogger(__name__)

Handle: TypeAlias = "Callable[[Context, Command, Connection], Command | None]"
"""One request in, its answer out; None if the answer comes later."""


@dataclass(slots=True)
class Context:
    """The tables, the settings, and who owns what goes on in the background."""

    reigns: Reigns
    keeper: GroupKeeper
    leading: Leading
    settings: LiveSettings
    limits: ServerLimits
    clock: Clock
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    remote_sessions: RemoteSessions | None
    """None if our records are kept elsewhere, where brokers can go themselves."""
    refusals: Refusals = field(default_factory=Refusals)
    _lines: LineBudget = field(default_factory=LineBudget, init=False)
    _makings: set[Coroutine[Any, Any, Answer]] = field(
        default_factory=set[Coroutine[Any, Any, Answer]], init=False
    )
    """The answers that are being made, or will be."""

    def guard(self, handle: Handle, request: Command, connection: Connection) -> Command | None:
        """Have a request handled, and count it if that fails."""
        try:
            return handle(self, request, connection)
        except Exception as error:
            self._note(error, request, connection)
            raise

    def answer_later(
        self, request: Command, connection: Connection, making: Coroutine[Any, Any, Answer]
    ) -> None:
        """Send what ``making`` comes to when it is ready. Raises ResponseError if too many wait already."""
        if len(self._makings) >= _MAX_WAITING:
            making.close()
            raise ResponseError(ResponseCode.SYSTEM_BUSY, f"{_MAX_WAITING} requests wait for the registry")
        self._makings.add(making)
        self.spawn(self._answer(request.without_content(), connection, making))

    def close(self) -> None:
        """Let go of the answers that nobody has begun to make. The tasks that make others have ended."""
        for making in self._makings:
            making.close()
        self._makings.clear()

    async def _answer(
        self, request: Command, connection: Connection, making: Coroutine[Any, Any, Answer]
    ) -> None:
        try:
            answer = await making
            reply = request.reply(answer.code, header=answer.header, remark=answer.remark, body=answer.body)
            frame = frame_answer(request, reply)
        except Exception as error:
            self._note(error, request, connection)
            if not is_expected(error):
                _log.error("request failed peer=%s code=%d", connection.peer, request.code, exc_info=error)
            frame = frame_failure(request, error)
        finally:
            self._makings.discard(making)
        if frame is not None:
            connection.send(frame)

    def _note(self, error: Exception, request: Command, connection: Connection) -> None:
        refusal = self.refusals.note(
            error, peer=connection.peer, request_code=request.code, at_ms=self.clock.now_ms()
        )
        if not isinstance(error, ResponseError) or isinstance(error, NotLeading):
            return  # The first are told by remoting. And who looks for the leader asks one after the other.
        if (unwritten := self._lines.spend(self.clock.monotonic_s())) is not None:
            _log.warning(
                "request refused peer=%s code=%d kind=%s reason=%s unwritten=%d",
                *(refusal.peer, refusal.request_code, refusal.kind, refusal.reason, unwritten),
            )
