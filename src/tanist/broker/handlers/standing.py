"""GET_READ_STANDING: whether this broker may be read, and who of its group is.

A client that lost its broker asks all others of the group, and waits in such questions until one may be read.
They are answered when what is permitted changes, when their time is over, and when the broker stops.
"""

import asyncio
from dataclasses import dataclass

from tanist.broker.late import send_late
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.reading import NONE, permission_name
from tanist.model.topics import READ
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reading import MAX_WAIT_MS, ReadStandingRequest, ReadStandingResponse
from tanist.remoting import Connection, Handler

MAX_WAITING_PER_CONNECTION = 8
"""A client has one connection to a broker, and one question to it at a time."""


@dataclass(slots=True, eq=False)
class _Question:
    command: Command
    connection: Connection
    known_reader: str | None
    timer: asyncio.TimerHandle | None = None


class StandingHandler:
    """Answers for one broker, and keeps the questions that wait."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._waiting: dict[Connection, dict[_Question, None]] = {}

    def routes(self) -> dict[int, Handler]:
        return {RequestCode.GET_READ_STANDING: self.get}

    def get(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(ReadStandingRequest)
        if not 0 <= request.wait_ms <= MAX_WAIT_MS:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"waitMillis={request.wait_ms} is not allowed; use 0 to {MAX_WAIT_MS}",
            )
        found, can_change = self._standing(), self._state.read_right is not None
        may_wait = request.wait_ms and can_change and not command.is_one_way
        if not may_wait or self._is_news(found, request.known_reader):
            return self._answer(command, found)
        self._wait(_Question(command.without_content(), connection, request.known_reader), request.wait_ms)
        return None

    def on_permitted(self, found: Permitted) -> None:
        """What this broker may do has changed: whoever waited for that is told."""
        for question in self._all():
            if self._is_news(found, question.known_reader):
                self._finish(question, found)

    def on_lost(self, connection: Connection) -> None:
        """A connection was closed: nobody waits on it."""
        for question in self._waiting.pop(connection, {}):
            if question.timer is not None:
                question.timer.cancel()

    def close(self) -> None:
        """Let nobody wait any more, because the broker stops."""
        for question in self._all():
            self._finish(question, self._standing())

    def _wait(self, question: _Question, wait_ms: int) -> None:
        waiting = self._waiting.setdefault(question.connection, {})
        if len(waiting) >= MAX_WAITING_PER_CONNECTION:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD] {len(waiting)} questions wait on this connection already",
            )
        waiting[question] = None
        question.timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._expire, question)

    def _expire(self, question: _Question) -> None:
        self._finish(question, self._standing())

    def _finish(self, question: _Question, found: Permitted) -> None:
        waiting = self._waiting[question.connection]
        del waiting[question]
        if not waiting:
            del self._waiting[question.connection]
        if question.timer is not None:
            question.timer.cancel()
        send_late(question.command, question.connection, self._answer(question.command, found))

    def _all(self) -> list[_Question]:
        return [question for waiting in self._waiting.values() for question in waiting]

    def _is_news(self, found: Permitted, known_reader: str | None) -> bool:
        """Whether this broker may be read, or names one that the asker has not lost."""
        own = self._state.settings.address
        return bool(found.permission & READ) or found.reader not in (None, own, known_reader)

    def _standing(self) -> Permitted:
        right, settings = self._state.read_right, self._state.settings
        if right is not None:
            return right.look()
        if not settings.is_slave:
            return Permitted(settings.broker_permission, "it is the master", settings.address)
        master = self._state.replication.master_address
        if settings.slave_read_enable:
            return Permitted(settings.broker_permission & READ, "it is a slave, and slaves are read", master)
        return Permitted(NONE, "it is a slave, and slaves are not read: see slaveReadEnable", master)

    def _answer(self, command: Command, found: Permitted) -> Command:
        header = ReadStandingResponse(
            permission=permission_name(found.permission),
            is_coordinated=self._state.read_right is not None,
            reader_address=found.reader,
            read_term=found.term,
            reason=found.reason,
        )
        return command.reply(header=header)
