"""One client's way through a broker that is not read to the one that is.

    OPENING --the other broker may be read--> OPEN --its connection is lost--> ENDED
       |                                       `-----end-----------------------> ENDED
       `------not reached, or not read in time, or end--> ENDED

The other broker has a connection for each client, so it counts its members and reaches them. The first thing
it hears there is that a broker asks, which is not relayed any further; the next is the client's heartbeat,
so that it knows what the client wants before it pulls.

Every request gets an answer. What waits when the relay ends is served here, or refused; what the other broker
has not answered is to be asked again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from tanist.broker.late import send_failure, send_late, serve_late
from tanist.broker.slave_consume.relay_rules import (
    PULLS,
    RETURNED,
    WaitingRequests,
    owned,
    pull_again,
)
from tanist.errors import (
    ConnectionLost,
    MQError,
    RemoteProtocolError,
    RemotingError,
    ResponseError,
    TooBusy,
)
from tanist.model.reading import NONE, permission_of
from tanist.model.topics import READ
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.reading import ReadStandingRequest, ReadStandingResponse
from tanist.protocol.response_errors import NotReadable, error_of
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)

OPEN_S = 2.0
"""So long a client waits for the other broker to be read. Handing back takes some tens of milliseconds."""
ANSWER_S = 60.0
"""Longer than any stock client waits for the answer to a pull."""
_RETURNED_ANSWER_S = 10.0
SHORT_S = 1.0
"""A client whose relay was lost sooner is not told to come again at once: it might do so without end."""

Dial = Callable[[str, Mapping[int, Handler]], Awaitable[Connection]]


class Relay:
    """One client's, to the broker at ``target``."""

    def __init__(self, client: Connection, target: str, *, own: str, dial: Dial) -> None:
        self.target = target
        self.used_s = asyncio.get_running_loop().time()
        """When the client last asked for something that only the other broker can answer."""
        self._client = client
        self._own = own
        self._dial = dial
        self._waiting: WaitingRequests[tuple[Command, Handler]] = WaitingRequests()
        self._upstream: Connection | None = None
        self._opened_s = 0.0
        self._is_ended = self._may_come_again = False

    @property
    def is_over(self) -> bool:
        return self._is_ended or (self._upstream is not None and not self._upstream.is_open)

    async def open(self, heartbeat: Command | None) -> None:
        """Find the other broker ready, and pass on what has waited for that."""
        try:
            async with asyncio.timeout(OPEN_S):
                upstream = await self._connect()
        except (MQError, TimeoutError) as error:
            _log.debug(
                "relay not opened client=%s reader=%s reason=%s", self._client.peer, self.target, error
            )
            self.end("the broker that is read is not ready")
            return
        if self._is_ended:
            upstream.close("the relay has ended")
            return
        _log.debug("relay open client=%s reader=%s", self._client.peer, self.target)
        self._upstream = upstream
        self._opened_s = asyncio.get_running_loop().time()
        if heartbeat is not None:
            self._introduce(upstream, heartbeat)
        for command, handler in self._waiting.drain():
            self._forward(upstream, command, handler)

    def pass_on(self, command: Command, handler: Handler) -> None:
        """Have the other broker answer; if that can not be, ``handler`` does."""
        if self._upstream is not None:
            self._forward(self._upstream, command, handler)
        elif self._is_ended or not self._waiting.add((owned(command), handler), len(command.body)):
            serve_late(handler, command, self._client)

    def end(self, reason: str, *, may_come_again: bool = True) -> None:
        """Relay nothing more. Clients whose pulls wait are told to pull again at once, if they may."""
        if self._is_ended:
            return
        self._is_ended = True
        self._may_come_again = may_come_again
        if self._upstream is not None:
            # Whatever is not answered yet fails with it.
            self._upstream.close(reason)
        for command, handler in self._waiting.drain():
            serve_late(handler, command, self._client)

    async def _connect(self) -> Connection:
        upstream = await self._dial(self.target, dict.fromkeys(RETURNED, self._return))
        question = ReadStandingRequest(
            wait_ms=int(OPEN_S * 1000), known_reader=self._own, relayed_for=self._client.peer
        )
        try:
            answer = await upstream.request(Command.request(RequestCode.GET_READ_STANDING, question), OPEN_S)
            if answer.code != ResponseCode.SUCCESS:
                raise error_of(answer)
            standing = answer.header(ReadStandingResponse)
            if not (permission_of(standing.permission) or NONE) & READ:
                raise ResponseError(ResponseCode.NO_PERMISSION, standing.reason)
        except BaseException:
            upstream.close("it is not read")
            raise
        return upstream

    def _introduce(self, upstream: Connection, heartbeat: Command) -> None:
        try:
            answer = upstream.request(heartbeat, ANSWER_S)
        except RemotingError:
            return  # What is passed on next meets the same, and is answered.
        answer.add_done_callback(_drop)

    def _forward(self, upstream: Connection, command: Command, handler: Handler) -> None:
        if upstream.is_behind:
            send_failure(command, self._client, _busy(self.target))
        elif command.is_one_way:
            upstream.send_soon(encode_command(command))
        else:
            kept = command.without_content()
            offset = _offset_of(command)
            try:
                answer = upstream.request(command, ANSWER_S)
            except TooBusy:
                send_failure(kept, self._client, _busy(self.target))
            except ConnectionLost:
                serve_late(handler, owned(command), self._client)
            else:
                answer.add_done_callback(partial(self._on_answer, kept, offset))

    def _on_answer(self, kept: Command, queue_offset: int | None, done: asyncio.Future[Command]) -> None:
        if done.cancelled():
            return
        answer = done.result() if done.exception() is None else None
        if answer is not None and not (_is_not_readable(answer) and queue_offset is not None):
            answer.opaque = kept.opaque
            send_late(kept, self._client, answer)
            return
        age_s = asyncio.get_running_loop().time() - self._opened_s
        self.end("the other broker is not read any more", may_come_again=age_s >= SHORT_S)
        if queue_offset is not None and self._may_come_again:
            self._client.send(pull_again(kept, queue_offset))
        else:
            send_failure(kept, self._client, _busy(self.target))

    def _return(self, command: Command, upstream: Connection) -> None:
        """The other broker tells or asks the client something."""
        if command.is_one_way:
            self._client.send(command)
            return
        kept = command.without_content()
        answer = self._client.request(owned(command), _RETURNED_ANSWER_S)

        def on_answer(done: asyncio.Future[Command]) -> None:
            if not done.cancelled() and done.exception() is None:
                said = done.result()
                said.opaque = kept.opaque
                send_late(kept, upstream, said)

        answer.add_done_callback(on_answer)


def _drop(answer: asyncio.Future[Command]) -> None:
    """The client has its own answer to this heartbeat for long."""
    if not answer.cancelled():
        answer.exception()


def _is_not_readable(answer: Command) -> bool:
    return answer.code == ResponseCode.NO_PERMISSION and isinstance(error_of(answer), NotReadable)


def _offset_of(command: Command) -> int | None:
    """Where a pull begins; None if it is none, or none that the other broker will take."""
    if command.code not in PULLS:
        return None
    try:
        return command.header(PullMessageRequest).queue_offset
    except RemoteProtocolError:
        return None


def _busy(target: str) -> ResponseError:
    return ResponseError(ResponseCode.SYSTEM_BUSY, f"{target}, which is read, did not answer; ask again")
