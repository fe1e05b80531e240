"""A lane of C over a pair of sockets, with a log, a connection and a wire that are only pretended."""

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from tanist.protocol.frame import SEND_ANSWER_TEXTS

TOPIC, QUEUES, FIRST_OFFSET, NOW_MS = "TopicA", 4, 77, 1_700_000_000_123
HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
STAMP = b"CLUSTER\x01C"
LOG_START = 1 << 20
PLENTY = 1 << 30
FIELDS = {
    "a": "PG",
    "b": TOPIC,
    "c": "TBW102",
    "d": "4",
    "e": "1",
    "f": "0",
    "g": "1700000000000",
    "h": "3",
    "i": "UNIQ_KEY\x01AB12\x02TAGS\x01t",
    "j": "0",
    "k": "false",
    "l": "16",
    "m": "false",
    "n": "b",
}


def header_of(*, flag: int = 0, opaque: int = 9, **fields: str) -> bytes:
    """The header of a plain send, but for these fields."""
    rest = {"language": "JAVA", "opaque": opaque, "serializeTypeCurrentRPC": "JSON", "version": 479}
    header = {"code": 310, "extFields": {**FIELDS, **fields}, "flag": flag, **rest}
    return json.dumps(header, separators=(",", ":")).encode()


def frame_of(header: bytes, body: bytes) -> bytes:
    return (4 + len(header) + len(body)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


@dataclass
class PlayedLog:
    """What C knows of a log."""

    log_end: int = LOG_START + 100
    refusal: str | None = None
    busy: str | None = None
    cut_count: int = 0


@dataclass
class PlayedWire:
    """A transport that takes what it is given, and may have something in hand already."""

    written: bytearray = field(default_factory=bytearray)
    waiting_bytes: int = 0
    is_closed: bool = False

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def write(self, data: bytes) -> None:
        self.written += data
        self.waiting_bytes += len(data)


class PlayedConnection:
    """Keeps what it is handed. After that all is for it, as where the peer is slow, unless it keeps up."""

    def __init__(self) -> None:
        self.handed: list[bytes] = []
        self.faults: list[Exception] = []
        self.is_level = True
        self.keeps_up = False
        self.is_at_end = False
        self.peer = "10.0.0.7:40112"
        self.on_handed: Any = None

    def data_received(self, data: bytes) -> None:
        self.handed.append(data)
        self.is_level = self.keeps_up
        if self.on_handed is not None:
            self.on_handed()

    def on_stream_end(self) -> None:
        self.is_at_end = True

    def on_fault(self, error: Exception) -> None:
        self.faults.append(error)


class LaneScene:
    """One lane with a log of its own, and as many peers as are asked for."""

    def __init__(self, engine: Any, *, window_bytes: int = 1 << 16) -> None:
        self.log = PlayedLog()
        self.window = bytearray(window_bytes)
        self.offsets = {(TOPIC, queue_id): FIRST_OFFSET for queue_id in range(QUEUES)}
        self.plan = ({TOPIC: QUEUES}, self.offsets, HOST, STAMP, 1 << 14, SEND_ANSWER_TEXTS)
        self.asked_room = PLENTY
        self.asked_ms = NOW_MS
        self.on_asked: Callable[[], None] = lambda: None
        self.lane = engine.Lane(self._ask_room)
        self.lane.use(self.log, self.plan)
        self.lane.open(self.window, LOG_START, LOG_START + window_bytes, 0)
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lane.close()
        for one in self.sockets:
            one.close()

    def connect(self, *, lacking_bytes: int = 0) -> "Peer":
        near, far = socket.socketpair()
        near.setblocking(False)
        far.settimeout(5)
        self.sockets += [near, far]
        connection, wire = PlayedConnection(), PlayedWire()
        line = self.lane.join(connection, wire, near.fileno(), HOST, lacking_bytes)
        return Peer(near, far, connection, wire, line)

    def _ask_room(self) -> tuple[int, int]:
        self.on_asked()
        return self.asked_ms, self.asked_room

    def turn(self, room: int = PLENTY, *, is_waiting: bool = False) -> Any:
        """How many messages were taken, from where to where they are, and the answers that wait."""
        kept: list[Any] | None = [] if is_waiting else None
        return *self.lane.turn(NOW_MS, room, kept), kept

    @property
    def written(self) -> bytes:
        """What the log has got."""
        return bytes(self.window[100 : self.log.log_end - LOG_START])


@dataclass
class Peer:
    near: socket.socket
    far: socket.socket
    connection: PlayedConnection
    wire: PlayedWire
    line: Any

    def answers(self) -> bytes:
        """What has reached it."""
        self.far.setblocking(False)
        received = bytearray()
        try:
            while data := self.far.recv(1 << 16):
                received += data
        except BlockingIOError:
            pass
        return bytes(received)
