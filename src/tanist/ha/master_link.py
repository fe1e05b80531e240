"""One slave of Tanist's, as its master sees it.

    HELLO --hello--> PROOF --proof, its log fits--> TRANSFER
        any state --what can not be true, silence--> CLOSED

Pure. acceptor.py owns the socket: it feeds what came and carries the actions out. Before TRANSFER no byte
of the log is sent and no offset is believed. In TRANSFER, acked_to <= sent_to <= the log's end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import CloseKind, CloseLink, MasterAction, SendBytes, StartTransfer, TakeAck
from tanist.ha.admission import MasterLog, judge_hello, judge_log
from tanist.ha.keys import HaKeys
from tanist.ha.link_times import LinkTimes
from tanist.ha.replicas import Dialect
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    GREETING,
    HELLO_S,
    Accepted,
    HelloReader,
    MasterHello,
    Refused,
    SlaveHello,
    SlaveProof,
    decode_slave_hello,
    decode_slave_proof,
    encode_master_hello,
    encode_verdict,
)
from tanist.protocol.ha_link import (
    FROM_SLAVE,
    Ack,
    Heartbeat,
    decode_frames,
    encode_data_header,
    encode_heartbeat,
)


class MasterState(Enum):
    HELLO = "hello"
    PROOF = "proof"
    TRANSFER = "transfer"
    CLOSED = "closed"


@dataclass(slots=True)
class MasterLink:
    """The master's end of one link."""

    keys: HaKeys
    nonce: bytes
    """Fresh and random."""
    look_at_log: Callable[[], MasterLog]
    """The master's log as it is now."""
    now_s: float
    heartbeat_s: float
    silence_s: float
    dialect: Dialect = field(default=Dialect.TANIST, init=False)
    max_body_bytes: int = field(default=256 << 10, init=False)
    """A third of a millisecond of the event loop's time."""
    state: MasterState = field(default=MasterState.HELLO, init=False)
    hello: SlaveHello | None = field(default=None, init=False)
    proof: SlaveProof | None = field(default=None, init=False)
    acked_to: int = field(default=0, init=False)
    sent_to: int = field(default=0, init=False)
    _has_greeted: bool = field(default=False, init=False)
    _reader: HelloReader = field(default_factory=HelloReader, init=False)
    _transcript: list[bytes] = field(default_factory=list[bytes], init=False)
    _held: bytearray = field(default_factory=bytearray, init=False)
    _times: LinkTimes = field(init=False)

    def __post_init__(self) -> None:
        self._times = LinkTimes(self.now_s, self.heartbeat_s, self.silence_s)

    @property
    def is_transferring(self) -> bool:
        return self.state is MasterState.TRANSFER

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        if self.state is MasterState.TRANSFER:
            return self._times.next_tick_s
        return self.now_s + HELLO_S

    def on_bytes(self, data: bytes, *, now_s: float) -> list[MasterAction]:
        """The slave sent something."""
        self._times.read_s = now_s
        try:
            match self.state:
                case MasterState.HELLO | MasterState.PROOF:
                    return self._on_hello_bytes(data)
                case MasterState.TRANSFER:
                    return self._on_frame_bytes(data)
                case MasterState.CLOSED:
                    return []
        except RemoteProtocolError as error:
            kind = CloseKind.BAD_FRAME if self.state is MasterState.TRANSFER else CloseKind.NO_HELLO
            return self._close(kind, str(error))

    def header(self, log_offset: int, size_bytes: int, *, log_end: int, take_crc: Callable[[], int]) -> bytes:
        """What goes before these bytes of the log."""
        return encode_data_header(log_offset, size_bytes, epoch=0, confirmed_to=log_end, body_crc=take_crc())

    def on_sent(self, log_end: int, *, now_s: float) -> None:
        """The log was sent up to here."""
        assert self.state is MasterState.TRANSFER
        assert log_end >= self.sent_to
        self.sent_to = log_end
        self._times.written_s = now_s

    def on_tick(self, *, log_end: int, now_s: float) -> list[MasterAction]:
        """Some time has passed."""
        match self.state:
            case MasterState.HELLO | MasterState.PROOF:
                if now_s - self.now_s >= HELLO_S:
                    return self._close(CloseKind.TOO_SLOW, f"no proof within {HELLO_S:.0f} s")
            case MasterState.TRANSFER:
                if (silent_ms := self._times.silent_ms(now_s)) is not None:
                    return self._close(CloseKind.SILENT, f"nothing came for {silent_ms:.0f} ms")
                if self._times.take_heartbeat(now_s):
                    return [SendBytes(encode_heartbeat(_heartbeat(log_end)))]
            case MasterState.CLOSED:
                pass
        return []

    def on_lost(self) -> CloseLink | None:
        """The connection is gone. A slave with another secret hangs up when it sees our proof."""
        state, self.state = self.state, MasterState.CLOSED
        if state is MasterState.PROOF and self.keys.secret:
            reason = "it hung up at our proof: its haSecret is another one, or it is no slave"
            return CloseLink(CloseKind.NOT_PROVEN, reason)
        return None

    def _on_hello_bytes(self, data: bytes) -> list[MasterAction]:
        message, rest = self._reader.feed(data)
        if message is None:
            return self._greet() if self._reader.has_magic else []
        if rest:
            # Each message answers one of ours: what comes before that was made up beforehand.
            return self._close(CloseKind.NO_HELLO, f"{len(rest)} bytes too early")
        if self.state is MasterState.HELLO:
            return [*self._greet(), *self._on_slave_hello(message)]
        return self._on_slave_proof(message)

    def _greet(self) -> list[MasterAction]:
        """Once a link: tell a slave that waits for it that its hello is understood here."""
        if self._has_greeted:
            return []
        self._has_greeted = True
        return [SendBytes(GREETING)]

    def _on_slave_hello(self, message: bytes) -> list[MasterAction]:
        log = self.look_at_log()
        self.hello = decode_slave_hello(message, self.keys.authentication)
        hello = MasterHello(
            self.nonce, log.incarnation, LogOffset(log.log_start), LogOffset(log.log_end), epoch=0
        )
        answer = encode_master_hello(hello, self.keys.authentication)
        answer += self.keys.prove_master(slave_hello=message, master_hello=answer)
        self._transcript = [message, answer]
        self.state = MasterState.PROOF
        return [SendBytes(answer)]

    def _on_slave_proof(self, message: bytes) -> list[MasterAction]:
        slave_hello, master_hello = self._transcript
        if not self.keys.is_slave(slave_hello=slave_hello, master_hello=master_hello, slave_proof=message):
            return self._close(CloseKind.NOT_PROVEN, "it does not know haSecret")
        assert self.hello is not None
        self.proof = decode_slave_proof(message, self.keys.authentication)
        verdict = judge_hello(self.hello, group=self.keys.group) or judge_log(self.proof, self.look_at_log())
        answer = encode_verdict(verdict, self.keys.authentication)
        answer += self.keys.prove_verdict(
            slave_hello=slave_hello, master_hello=master_hello, slave_proof=message, verdict=answer
        )
        match verdict:
            case Refused(reason, text):
                closing = self._close(CloseKind.REFUSED, f"{reason.name}: {text}")
                return [SendBytes(answer), *closing]
            case Accepted(start_offset):
                proof = self.proof
                self.state = MasterState.TRANSFER
                self.acked_to = self.sent_to = start_offset
                return [
                    SendBytes(answer),
                    StartTransfer(
                        start_offset,
                        proof.log_end,
                        self.hello.broker_id,
                        proof.ack_kind,
                        held_from=proof.log_start if proof.log_end else start_offset,
                    ),
                ]

    def _on_frame_bytes(self, data: bytes) -> list[MasterAction]:
        self._held += data
        frames, used = decode_frames(memoryview(bytes(self._held)), FROM_SLAVE)
        # What is left is less than a frame, and a slave's frames are tiny.
        del self._held[:used]
        newest: int | None = None
        for frame in frames:
            fault = self._fault(frame)
            if fault is not None:
                return self._close(CloseKind.IMPOSSIBLE_ACK, fault)
            if isinstance(frame, Ack):
                newest = self.acked_to = frame.log_offset
        return [] if newest is None else [TakeAck(newest)]

    def _fault(self, frame: object) -> str | None:
        """Why what the slave says can not be true; None if it can."""
        assert self.proof is not None
        match frame:
            case Ack(kind, log_offset):
                if kind is not self.proof.ack_kind:
                    return f"an ack {kind.name} where {self.proof.ack_kind.name} was agreed on"
                if not self.acked_to <= log_offset <= self.sent_to:
                    return f"ack {log_offset} is outside [{self.acked_to}, {self.sent_to}]"
            case Heartbeat(log_end):
                if not self.acked_to <= log_end <= self.sent_to:
                    return f"a log end of {log_end} is outside [{self.acked_to}, {self.sent_to}]"
            case _:
                raise AssertionError(frame)
        return None

    def _close(self, kind: CloseKind, reason: str) -> list[MasterAction]:
        self.state = MasterState.CLOSED
        return [CloseLink(kind, reason)]


def _heartbeat(log_end: int) -> Heartbeat:
    return Heartbeat(LogOffset(log_end), epoch=0, confirmed_to=LogOffset(log_end))
