"""Answers that come later than their handler returns: made in turns, or waited for."""

import asyncio
import logging
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from tanist.clock import Clock
from tanist.errors import LocalProtocolError, ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler
from tanist.remoting.replies import frame_answer, frame_failure, is_expected

_log = logging.getLogger(__name__)

_TURN_S = 0.004
"""How long one turn may take. Sends and pulls wait that long at most for somebody's long answer."""
_MAX_WAITING = 64

Steps: TypeAlias = Generator[None, None, Command]
"""Makes an answer and yields wherever it may be interrupted, about every millisecond."""


@dataclass(frozen=True, slots=True)
class _Unfinished:
    steps: Steps
    request: Command
    connection: Connection


class LongAnswers:
    """Makes answers that may take long, one short turn after the other.

    Between two turns the event loop serves everybody else. Whoever asks for a little gets it at once,
    unless others are in the queue: many questions in one read would else be many turns in a row.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unfinished: deque[_Unfinished] = deque()

    def make(self, request: Command, connection: Connection, steps: Steps) -> Command | None:
        """The answer if one turn is enough; None if it will be sent later, or nobody waits for it.

        What ``steps`` hold of the request is kept as long: they are to reply to it without its content.
        """
        if request.is_one_way:
            return None
        if not self._unfinished and (answer := self._take_turn(steps)) is not None:
            return answer
        if len(self._unfinished) >= _MAX_WAITING:
            steps.close()
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD] too many long questions at once")
        self._unfinished.append(_Unfinished(steps, request.without_content(), connection))
        if len(self._unfinished) == 1:
            asyncio.get_running_loop().call_soon(self._go_on)
        return None

    def _go_on(self) -> None:
        """Give the first one a turn, and let it queue up again if it needs another."""
        first = self._unfinished.popleft()
        # Who has gone asks no more; the store may be gone with them.
        if first.connection.is_open:
            try:
                answer = self._take_turn(first.steps)
            except Exception as error:
                send_failure(first.request, first.connection, error)
            else:
                if answer is None:
                    self._unfinished.append(first)
                else:
                    send_late(first.request, first.connection, answer)
        if self._unfinished:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _take_turn(self, steps: Steps) -> Command | None:
        """The answer, or None when the turn is over before it is made."""
        deadline_s = self._clock.monotonic_s() + _TURN_S
        try:
            while True:
                next(steps)
                if self._clock.monotonic_s() >= deadline_s:
                    return None
        except StopIteration as finished:
            answer: Command = finished.value
            return answer


def send_late(request: Command, connection: Connection, answer: Command) -> None:
    """Send an answer to who still waits for it. Nothing escapes: there is nobody to tell."""
    try:
        frame = frame_answer(request, answer)
    except LocalProtocolError as error:
        send_failure(request, connection, error)
    else:
        if frame is not None:
            connection.send(frame)


def send_failure(request: Command, connection: Connection, error: Exception) -> None:
    """Answer a request with the error that it ran into."""
    if not is_expected(error):
        _log.error("late answer failed peer=%s code=%d", connection.peer, request.code, exc_info=error)
    if (frame := frame_failure(request, error)) is not None:
        connection.send(frame)


def serve_late(handler: Handler, request: Command, connection: Connection) -> None:
    """Have a request that waited served, as if it came now. Who has gone asks no more."""
    if not connection.is_open:
        return
    try:
        frame = frame_answer(request, handler(request, connection))
    except Exception as error:
        send_failure(request, connection, error)
    else:
        if frame is not None:
            connection.send(frame)
