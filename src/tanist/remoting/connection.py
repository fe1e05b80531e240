"""One connection, on the server's or the client's side: the shell around FrameDecoder.

All frames of one read are handled before the next read, and their answers leave in one write. No
task and no future is made for a request of the peer's: a handler returns its answer, or None and
the answer follows later through ``send``.

Memory is bounded. A peer that does not take its answers is not read from until it does, so what
waits for it is at most the high-water mark, one more answer and one read. Only a server holds back
so: if both ends did, each would wait for the other for ever.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Protocol, TypeAlias, cast

from tanist.errors import ConnectionLost, LocalProtocolError, RemoteProtocolError, TooBusy
from tanist.model.host import pack_host
from tanist.protocol.codes import FLAG_RESPONSE
from tanist.protocol.command import Command
from tanist.protocol.frame import MAX_FRAME_BYTES, FrameDecoder, encode_command, first_request
from tanist.remoting.awaited import AwaitedAnswers
from tanist.remoting.replies import (
    Pieces,
    frame_answer,
    frame_failure,
    frame_unsupported,
    is_bad_input,
    is_expected,
    unsupported_remark,
)
from tanist.remoting.settings import ConnectionLimits
from tanist.remoting.watch import CloseCause, Seen, Watch

Handler: TypeAlias = Callable[[Command, "Connection"], Command | bytes | Pieces | None]
"""Answers a request at once, or returns None: for a one-way request, or to answer with ``send`` later."""

Express: TypeAlias = Callable[[bytes, "Connection"], bytes | None]
"""Offered each read before it is cut into frames. Its answer, empty if none is due now; None: not taken."""

MAX_WAITING_BYTES = 2 * MAX_FRAME_BYTES
"""What may wait for a peer at most, pushed requests and late answers included."""
# is_lingering, linger_s: a close that resets the connection
_NO_LINGER = struct.pack("ii", 1, 0)
_HELD_FROM_BYTES = 4096
"""Less than this is not worth counting among what slow peers hold."""
_LARGE_BYTES = 16 << 10
"""After a write of this size we look at once whether the peer took it; after smaller ones now and then.
What is smaller is put together for one write, what is larger goes out as it lies."""
_MAX_PIECES = 1024
"""The system takes no more at once."""
WRITE_BYTES = 64 << 10
"""So much is worth a write of its own: the peer can begin with it while we make more."""


class Wire(Protocol):
    """What a connection needs of a transport."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def is_closing(self) -> bool: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def get_write_buffer_size(self) -> int: ...


class Line(Protocol):
    """What a lane has of a connection for which it reads."""

    @property
    def partial_bytes(self) -> int: ...
    @property
    def read_count(self) -> int: ...
    @property
    def frame_count(self) -> int: ...
    @property
    def written_bytes(self) -> int: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...


class Lane(Protocol):
    """Reads for many connections at once and takes what needs no handler, its answer included.

    It calls ``data_received`` with anything else, and with everything while ``is_level`` is not so.
    """

    def join(
        self, connection: "Connection", wire: Wire, file_number: int, host: bytes, lacking_bytes: int
    ) -> Line | None:
        """Read for a connection from now on; None if that is not for this lane.

        Of what comes next ``lacking_bytes`` belong to a frame that the connection has the beginning of.
        """
        ...


class Keeper(Protocol):
    """Who keeps the connections: a server's or a client's table of them."""

    def admit(self, connection: "Connection", *, file_number: int) -> str | None:
        """Take a new connection in, or say why not. Its socket has this number among our open files."""
        ...

    def forget(self, connection: "Connection", cause: CloseCause, reason: str) -> None:
        """The connection is closed."""
        ...

    def note_held(self, connection: "Connection", size_bytes: int) -> None:
        """So much memory is held for the peer now, because it is slow."""
        ...

    def report_bad_input(self, connection: "Connection", request: Command, reason: str) -> None:
        """A request was refused because it is none."""
        ...

    def report_mistake(self, connection: "Connection", request: Command, error: Exception) -> None:
        """A handler raised what no handler should."""
        ...


class Connection(asyncio.Protocol):
    """A peer. ``owner_state`` is its user's to set, and is never looked at here."""

    __slots__ = (
        *(
            "_awaited",
            "_backlog",
            "_cause",
            "_decoder",
            "_file_number",
            "_frame_count",
            "_handlers",
            "_held_bytes",
            "_holds_back",
        ),
        *(
            "_has_room",
            "_is_flush_due",
            "_is_given_up",
            "_is_lost",
            "_is_paused",
            "_is_serving",
            "_keeper",
            "_lane",
            "_limits",
            "_line",
            "_loop",
            "_read_count",
            "_reason",
        ),
        *("_socket", "_unsent", "_unsent_bytes", "_watch", "_wire", "_written_bytes"),
        *("express", "owner_state", "peer", "peer_host"),
    )

    _wire: Wire

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        limits: ConnectionLimits,
        keeper: Keeper,
        *,
        holds_back: bool,
        lane: Lane | None = None,
    ) -> None:
        self.peer = "?"
        self.peer_host = b""
        self.owner_state: object | None = None
        self.express: Express | None = None
        """Takes what needs no handler, as long as nothing of an earlier read waits."""
        self._handlers = handlers
        self._limits = limits
        self._keeper = keeper
        self._holds_back = holds_back
        self._decoder = FrameDecoder()
        self._loop = asyncio.get_running_loop()
        self._watch = Watch(self._loop.time())
        # Made when we ask for the first time: on few of a server's connections we ever do.
        self._awaited: AwaitedAnswers | None = None
        self._socket: socket.socket | None = None
        self._file_number = -1
        self._lane = lane
        self._line: Line | None = None
        self._unsent: Pieces = []
        self._backlog: Iterator[Command] | None = None
        self._cause: CloseCause | None = None
        self._reason = ""
        # Made when somebody waits for the peer to take what was sent.
        self._has_room: asyncio.Event | None = None
        self._is_serving = self._is_paused = self._is_given_up = self._is_lost = self._is_flush_due = False
        self._unsent_bytes = 0
        self._read_count = self._frame_count = self._written_bytes = self._held_bytes = 0

    # For the users of a connection.

    @property
    def is_open(self) -> bool:
        return self._cause is None

    @property
    def is_awaiting(self) -> bool:
        """Whether somebody waits for an answer here."""
        return self._awaited is not None and len(self._awaited) > 0

    @property
    def is_behind(self) -> bool:
        """Whether more waits for the peer than it should; ``caught_up`` waits for a better time."""
        return self._is_paused

    @property
    def unsent_bytes(self) -> int:
        """What waits for the end of this turn of the event loop to be written."""
        return self._unsent_bytes

    async def caught_up(self) -> None:
        """Wait until the peer has taken most of what was sent, or the connection is gone."""
        if self._is_paused and not self._is_lost:
            if self._has_room is None:
                self._has_room = asyncio.Event()
            await self._has_room.wait()

    def send(self, data: bytes | Pieces | Command) -> None:
        """Send a frame: a late answer, or a one-way request. On a closed connection it is dropped.

        A peer for which far too much waits already is closed: it stopped reading, and holding more
        for it would take the memory of all.
        """
        if self._cause is not None:
            return
        frame = encode_command(data) if isinstance(data, Command) else data
        if self._is_paused and (waiting := self._wire.get_write_buffer_size()) > MAX_WAITING_BYTES:
            self.give_up(CloseCause.NOT_READING, f"{waiting} bytes wait for it")
            return
        self._keep(frame)
        if not self._is_serving:
            self._flush()

    def send_soon(self, frame: bytes) -> None:
        """Send a frame together with those that come within the same turn of the event loop.

        A write costs far more than the bytes in it: a thousand requests at once leave in a few writes.
        """
        if self._cause is not None:
            return
        self._keep(frame)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._on_turn)

    def keep(self, frame: bytes) -> None:
        """Have a frame leave with the next ``flush``. For who has many answers at once, also for others."""
        if self._cause is None:
            self._unsent.append(frame)
            self._unsent_bytes += len(frame)

    def flush(self) -> None:
        """Send what was kept, in one write."""
        if not self._is_serving:
            self._flush()

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Send a request; await what is returned for its answer.

        Raises TooBusy or ConnectionLost if it was not sent, RequestTimeout or ConnectionLost later.
        """
        if self._cause is not None:
            raise ConnectionLost(self.peer, self._reason)
        if self._awaited is None:
            self._awaited = AwaitedAnswers(self.peer, self._limits.max_outstanding)
        if self._is_paused and (waiting := self._wire.get_write_buffer_size()) > MAX_WAITING_BYTES:
            raise TooBusy(self.peer, f"{waiting} bytes wait to be sent")
        answer = self._awaited.enter(command, timeout_s)
        try:
            frame = encode_command(command)
        except LocalProtocolError:
            self._awaited.withdraw(command)
            raise
        if self._awaited.is_one and not self._is_serving:
            # Who asks one at a time need not wait for others that would ask within the same turn.
            self._keep(frame)
            self._flush()
            return answer
        self.send_soon(frame)
        if self._unsent_bytes > WRITE_BYTES and not self._is_serving:
            self._flush()
        return answer

    def withdraw(self, command: Command) -> None:
        """Nobody waits for the answer to this request any more: it takes no room of others."""
        if self._awaited is not None:
            self._awaited.withdraw(command)

    def close(self, reason: str) -> None:
        """Close it once all that was sent has left. The reason is for logs and for whoever waits here."""
        self.end(CloseCause.OURS, reason)

    # For the keeper, and for the TLS layer below.

    def end(self, cause: CloseCause, reason: str) -> None:
        """Take nothing more in, let what was sent leave, then close."""
        if self._cause is not None:
            return
        self._cause, self._reason = cause, reason
        self._backlog = None
        self._leave_lane()
        # A handler that closes its connection has an answer to give yet; then _serve closes.
        if not self._is_serving:
            self._flush()
            self._wire.close()

    def give_up(self, cause: CloseCause, reason: str) -> None:
        """Close at once. What was sent and has not left is lost."""
        if self._cause is None:
            self._cause, self._reason = cause, reason
            self._backlog = None
        self._leave_lane()
        if not (self._is_given_up or self._is_lost):
            self._drop_sent()
        self._is_given_up = True
        self._wire.abort()

    def measure_held(self) -> int:
        """How many bytes we keep for the peer now: its frame that is not whole, and what it does not take."""
        held_bytes = len(self._decoder.partial) + self._wire.get_write_buffer_size()
        if self._line is not None:
            held_bytes += self._line.partial_bytes
        self._held_bytes = held_bytes if held_bytes >= _HELD_FROM_BYTES else 0
        return self._held_bytes

    def look(self, now_s: float) -> None:
        """Close the connection if it has kept us waiting for too long."""
        self._note_held()
        waiting_bytes = self._wire.get_write_buffer_size()
        line = self._line
        seen = Seen(
            read_count=self._read_count + (line.read_count if line is not None else 0),
            frame_count=self._frame_count + (line.frame_count if line is not None else 0),
            taken_bytes=self._written_bytes + (line.written_bytes if line is not None else 0) - waiting_bytes,
            waiting_bytes=waiting_bytes,
            # While we do not read, the rest of a frame cannot come, and that is no fault of the peer's.
            is_mid_frame=bool(self._decoder.partial or (line is not None and line.partial_bytes))
            and not self._is_paused,
        )
        verdict = self._watch.on_look(seen, self._limits, now_s=now_s)
        if verdict is not None:
            self.give_up(verdict.cause, verdict.reason)

    def use_wire(self, wire: Wire) -> None:
        """Read and write through ``wire`` from now on, which has TLS between us and the socket."""
        self._wire = wire
        self._file_number = -1

    # For the lane that reads for us.

    @property
    def is_level(self) -> bool:
        """Whether no frame waits that was read, nor much for the peer."""
        return self._backlog is None and not self._held_bytes

    def on_stream_end(self) -> None:
        """The lane has seen the end of the stream, and reads no more: the transport finds it again."""
        self._line = None
        if self._cause is None:
            self._wire.resume_reading()

    def on_fault(self, error: Exception) -> None:
        """What the lane asked of us failed: that ends this connection, as if the transport had asked."""
        context = {"message": "a read was not served", "exception": error, "protocol": self}
        self._loop.call_exception_handler(context)
        self.give_up(CloseCause.OURS, f"a read was not served: {error}")

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)
        self._wire = transport
        self.peer, self.peer_host = _peer_of(transport)
        transport.set_write_buffer_limits(self._limits.high_water_bytes, self._limits.low_water_bytes)
        self._socket = transport.get_extra_info("socket")
        self._set_buffers()
        file_number = -1 if self._socket is None else self._socket.fileno()
        if transport.get_extra_info("sslcontext") is None:
            self._file_number = file_number
        refusal = self._keeper.admit(self, file_number=file_number)
        if refusal is not None:
            self.give_up(CloseCause.REFUSED, refusal)

    def data_received(self, data: bytes) -> None:
        if self._cause is not None:
            return
        self._read_count += 1
        is_begun = self._decoder.partial or not self.is_level
        if self.express is not None and not is_begun and (answer := self._ask_express(data)) is not None:
            self._frame_count += 1
            if answer:
                self._keep(answer)
                self._flush()
        else:
            self._take_in(data)
        if self._lane is not None and self.is_level and not self._is_paused:
            # Not before something came: uvloop begins to read when a connection is made, paused or not.
            self._join_lane(self._lane)

    def pause_writing(self) -> None:
        self._is_paused = True
        if self._holds_back and self._cause is None:
            (self._line.pause if self._line is not None else self._wire.pause_reading)()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._let_on()
        self._note_held()
        if not self._holds_back or self._cause is not None:
            return
        backlog, self._backlog = self._backlog, None
        if backlog is not None:
            self._serve(backlog)
        if not self._is_paused and self._cause is None:
            (self._line.resume if self._line is not None else self._wire.resume_reading)()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._file_number = -1
        self._leave_lane()
        if self._cause is None:
            self._cause, self._reason = CloseCause.PEER, str(exc) if exc else "the peer closed it"
        self._backlog = None
        self._let_on()
        if self._awaited is not None:
            self._awaited.fail_all(self._reason)
        self._keeper.forget(self, self._cause, self._reason)

    # The work.

    def _take_in(self, data: bytes) -> None:
        frames = self._decoder.feed(data)
        if self._backlog is None:
            self._serve(frames)
        else:
            # Some transports hand over what they had read before they were told to pause.
            self._backlog = chain(self._backlog, frames)
        if self._held_bytes or self._decoder.partial:
            self._note_held()

    def _serve(self, frames: Iterator[Command]) -> None:
        """Handle ``frames`` and write their answers together, or keep the rest while the peer is behind."""
        self._is_serving = True
        try:
            for command in frames:
                self._frame_count += 1
                if command.flag & FLAG_RESPONSE:
                    if self._awaited is not None:
                        self._awaited.resolve(command)
                    continue
                answer = self._answer(command)
                if answer is not None:
                    self._keep(answer)
                    if self._unsent_bytes > self._limits.low_water_bytes:
                        self._flush()
                        if self._is_paused and self._holds_back and self._cause is None:
                            self._backlog = frames
                            break
                if self._cause is not None:
                    break
        except RemoteProtocolError as error:
            self.end(CloseCause.BAD_FRAME, str(error))
        finally:
            self._is_serving = False
        self._flush()
        if self._cause is not None:
            self._wire.close()

    def _ask_express(self, data: bytes) -> bytes | None:
        assert self.express is not None
        try:
            return self.express(data, self)
        except Exception as error:
            request = first_request(data)
            assert request is not None, "what is taken at once begins with a request"
            return self._failure(request, error) or b""

    def _join_lane(self, lane: Lane) -> None:
        """Leave reading to the lane, if this is a plain connection and not one through TLS."""
        lacking_bytes = self._decoder.lacking_bytes
        if lacking_bytes is None:
            return
        self._lane = None
        if self._file_number < 0 or self._wire.is_closing():
            return
        with contextlib.suppress(OSError):  # The system watches no more files for us: the transport reads on.
            self._line = lane.join(self, self._wire, self._file_number, self.peer_host, lacking_bytes)
        if self._line is not None:
            self._wire.pause_reading()

    def _leave_lane(self) -> None:
        """Before the transport closes the file: its number may be another's then."""
        self._lane = None
        if self._line is not None:
            self._line.close()
            self._line = None

    def _answer(self, request: Command) -> bytes | Pieces | None:
        handler = self._handlers.get(request.code)
        if handler is None:
            self._keeper.report_bad_input(self, request, unsupported_remark(request))
            return frame_unsupported(request)
        try:
            return frame_answer(request, handler(request, self))
        except Exception as error:
            return self._failure(request, error)

    def _failure(self, request: Command, error: Exception) -> bytes | None:
        """What a request is answered that ran into this; an operator hears of it where that is due."""
        if not is_expected(error):
            self._keeper.report_mistake(self, request, error)
        elif is_bad_input(error):
            self._keeper.report_bad_input(self, request, str(error))
        return frame_failure(request, error)

    def _set_buffers(self) -> None:
        """Have the kernel keep no more for the peer than the settings say, if they do."""
        for option, size_bytes in (
            (socket.SO_SNDBUF, self._limits.send_buffer_bytes),
            (socket.SO_RCVBUF, self._limits.receive_buffer_bytes),
        ):
            if size_bytes and self._socket is not None:
                self._socket.setsockopt(socket.SOL_SOCKET, option, size_bytes)

    def _drop_sent(self) -> None:
        """Have the kernel forget what the peer does not take: megabytes that it would keep for minutes."""
        if self._socket is not None:
            with contextlib.suppress(OSError, ValueError):  # It may be closed already.
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)

    def _on_turn(self) -> None:
        self._is_flush_due = False
        self._flush()

    def _let_on(self) -> None:
        """Those who wait for the peer need not wait any longer."""
        if self._has_room is not None:
            self._has_room.set()
            self._has_room = None

    def _keep(self, frame: bytes | Pieces) -> None:
        """Keep a frame for the next write."""
        if isinstance(frame, bytes):
            self._unsent.append(frame)
            self._unsent_bytes += len(frame)
        else:
            self._unsent += frame
            self._unsent_bytes += sum(map(len, frame))

    def _flush(self) -> None:
        unsent = self._unsent
        if not unsent or self._is_given_up or self._is_lost:
            return
        size_bytes = self._unsent_bytes
        self._unsent = []
        self._unsent_bytes = 0
        self._written_bytes += size_bytes
        is_large = size_bytes > _LARGE_BYTES
        data = self._write_now(unsent, size_bytes) if is_large else b"".join(unsent)
        if data:
            self._wire.write(data)
        # Most large writes are taken at once, and nothing is held before or after them.
        if (is_large and (data or self._held_bytes)) or self._is_paused:
            self._note_held()

    def _write_now(self, pieces: Pieces, size_bytes: int) -> bytes:
        """Hand the system what it takes at once, as it lies; a copy of the rest, which is for the transport.

        So no view of the log outlives this call: what the peer has yet to take may be cut from the log.
        """
        sent = 0
        # What the transport keeps from earlier goes first. One that is closing may have closed the file
        # already, before it tells us, and the number may be that of another peer's by now.
        is_ours = self._file_number >= 0 and not self._wire.is_closing()
        if is_ours and not self._wire.get_write_buffer_size():
            try:
                sent = os.writev(self._file_number, pieces[:_MAX_PIECES])
            except OSError:
                # The transport will meet the same reason, and sees to it.
                sent = 0
        if sent == size_bytes:
            return b""
        for number, piece in enumerate(pieces):
            if sent < len(piece):
                return b"".join((piece[sent:], *pieces[number + 1 :]))
            sent -= len(piece)
        return b""

    def _note_held(self) -> None:
        before_bytes = self._held_bytes
        if self._cause is None and self.measure_held() != before_bytes:
            self._keeper.note_held(self, self._held_bytes)


def _peer_of(transport: asyncio.BaseTransport) -> tuple[str, bytes]:
    """The peer as text and in packed form. An IPv4 peer of an IPv6 listener is an IPv4 peer."""
    name = transport.get_extra_info("peername")
    if name is None:  # It went away before we looked.
        return "?", b""
    address = ipaddress.ip_address(name[0])
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    text = f"[{address}]" if address.version == 6 else str(address)
    return f"{text}:{name[1]}", pack_host(str(address), name[1])
