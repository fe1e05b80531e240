"""One slave of Tanist's, as its master sees it.

    HELLO --hello--> PROOF --proof, its log fits--> TRANSFER
                     PROOF --proof, epochs are told--> ALIGN --proof, its log fits--> TRANSFER
        any state --what can not be true, silence--> CLOSED

ALIGN is for masters that a controller has named: there a slave's log may have what its master's has not.

Pure. acceptor.py owns the socket: it feeds what came and carries the actions out. Before TRANSFER no byte
of the log is sent and no offset is believed. In TRANSFER, acked_to <= sent_to <= the log's end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import (
    CloseKind,
    CloseLink,
    MasterAction,
    NewerEpoch,
    SendBytes,
    StartTransfer,
    TakeAck,
    TakeNote,
    TakeTablesHeld,
    TrustPeer,
)
from tanist.ha.admission import MASTER_ID, MasterLog, judge_epoch, judge_hello, judge_log, judge_store
from tanist.ha.crcs import Crcs
from tanist.ha.epoch_log import EpochLog
from tanist.ha.keys import HaKeys
from tanist.ha.link_times import LinkTimes
from tanist.ha.replicas import Dialect
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    ALIGN_S,
    GREETING,
    HELLO_S,
    Accepted,
    AlignFirst,
    HelloReader,
    MasterHello,
    Refusal,
    Refused,
    SlaveHello,
    SlaveProof,
    Verdict,
    decode_slave_hello,
    decode_slave_proof,
    encode_master_hello,
    encode_verdict,
)
from tanist.protocol.ha_link import (
    FRAME_BYTES,
    FROM_SLAVE,
    Ack,
    Heartbeat,
    Note,
    TablesHeld,
    bytes_needed,
    decode_frames,
    encode_data_header,
    encode_heartbeat,
    encode_note,
    lone_ack,
)


class MasterState(Enum):
    HELLO = "hello"
    PROOF = "proof"
    ALIGN = "align"
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
    epoch_log: EpochLog | None = None
    """None with fixed roles."""
    dialect: Dialect = field(default=Dialect.TANIST, init=False)
    state: MasterState = field(default=MasterState.HELLO, init=False)
    hello: SlaveHello | None = field(default=None, init=False)
    proof: SlaveProof | None = field(default=None, init=False)
    acked_to: int = field(default=0, init=False)
    sent_to: int = field(default=0, init=False)
    _has_greeted: bool = field(default=False, init=False)
    _reader: HelloReader = field(default_factory=HelloReader, init=False)
    _transcript: list[bytes] = field(default_factory=list[bytes], init=False)
    _held: bytearray = field(default_factory=bytearray, init=False)
    """The beginning of a frame: less than one, and a slave's frames are notes at most."""
    _needed_bytes: int = field(default=1, init=False)
    """With less there is nothing new to see in what is held."""
    _times: LinkTimes = field(init=False)
    _deadline_s: float = field(init=False)
    """When the slave has to be let in."""
    _told_confirmed_to: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._times = LinkTimes(self.now_s, self.heartbeat_s, self.silence_s)
        self._deadline_s = self.now_s + HELLO_S

    @property
    def max_body_bytes(self) -> int:
        """The most of the log that the next frame carries: bytes of one epoch."""
        return FRAME_BYTES if self.epoch_log is None else self.epoch_log.bytes_left(self.sent_to, FRAME_BYTES)

    @property
    def is_transferring(self) -> bool:
        return self.state is MasterState.TRANSFER

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        if self.state is MasterState.TRANSFER:
            return self._times.next_tick_s
        return self._deadline_s

    def on_bytes(self, data: bytes, *, now_s: float) -> list[MasterAction]:
        """The slave sent something."""
        self._times.read_s = now_s
        try:
            match self.state:
                case MasterState.HELLO | MasterState.PROOF | MasterState.ALIGN:
                    return self._on_hello_bytes(data, now_s)
                case MasterState.TRANSFER:
                    return self._on_frame_bytes(data)
                case MasterState.CLOSED:
                    return []
        except RemoteProtocolError as error:
            kind = CloseKind.BAD_FRAME if self.state is MasterState.TRANSFER else CloseKind.NO_HELLO
            return self._close(kind, str(error))

    def take_ack(self, data: bytes, *, now_s: float) -> int | None:
        """Up to where the slave acks, if that is all it says and may be true; else ``on_bytes`` looks at it.

        Most of what comes is that, and producers wait for it.
        """
        if self.state is not MasterState.TRANSFER or self._held or self.proof is None:
            return None
        acked_to = lone_ack(data, self.proof.ack_kind, least=self.acked_to, most=self.sent_to)
        if acked_to is not None:
            self._times.read_s = now_s
            self.acked_to = acked_to
        return acked_to

    def header(self, log_offset: int, body: bytes | memoryview, *, log_end: int, crcs: Crcs) -> bytes:
        """What goes before these bytes of the log."""
        return encode_data_header(
            log_offset,
            len(body),
            epoch=0 if self.epoch_log is None else self.epoch_log.epoch_at(log_offset),
            confirmed_to=self._tell_confirmed_to(log_end),
            body_crc=crcs.of(log_offset, body),
        )

    def on_sent(self, log_end: int, *, now_s: float) -> None:
        """The log was sent up to here."""
        assert self.state is MasterState.TRANSFER
        assert log_end >= self.sent_to
        self.sent_to = log_end
        self._times.written_s = now_s

    def send_note(self, note: bytes, *, now_s: float) -> list[MasterAction]:
        """Tell the slave something beside the log, if it is let in."""
        if self.state is not MasterState.TRANSFER:
            return []
        self._times.written_s = now_s
        return [SendBytes(encode_note(note))]

    def on_tick(self, *, log_end: int, now_s: float) -> list[MasterAction]:
        """Some time has passed."""
        match self.state:
            case MasterState.HELLO | MasterState.PROOF | MasterState.ALIGN:
                if now_s >= self._deadline_s:
                    waited_s = self._deadline_s - self.now_s
                    return self._close(CloseKind.TOO_SLOW, f"no proof within {waited_s:.0f} s")
            case MasterState.TRANSFER:
                if (silent_ms := self._times.silent_ms(now_s)) is not None:
                    return self._close(CloseKind.SILENT, f"nothing came for {silent_ms:.0f} ms")
                if self._times.take_heartbeat(now_s) or self._has_confirmed_more:
                    self._times.written_s = now_s
                    return [SendBytes(encode_heartbeat(self._heartbeat(log_end)))]
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

    @property
    def _has_confirmed_more(self) -> bool:
        """Whether the slave may show more of the log than it knows."""
        return self.epoch_log is not None and self.epoch_log.confirmed_to() > self._told_confirmed_to

    def _tell_confirmed_to(self, log_end: int) -> int:
        confirmed_to = log_end if self.epoch_log is None else min(self.epoch_log.confirmed_to(), log_end)
        self._told_confirmed_to = confirmed_to
        return confirmed_to

    def _heartbeat(self, log_end: int) -> Heartbeat:
        confirmed_to = LogOffset(self._tell_confirmed_to(log_end))
        return Heartbeat(LogOffset(log_end), self._epoch, confirmed_to)

    @property
    def _epoch(self) -> int:
        return 0 if self.epoch_log is None else self.epoch_log.epoch

    def _on_hello_bytes(self, data: bytes, now_s: float) -> list[MasterAction]:
        message, rest = self._reader.feed(data)
        if message is None:
            return self._greet() if self._reader.has_magic else []
        if rest:
            # Each message answers one of ours: what comes before that was made up beforehand.
            return self._close(CloseKind.NO_HELLO, f"{len(rest)} bytes too early")
        if self.state is MasterState.HELLO:
            return [*self._greet(), *self._on_slave_hello(message)]
        return self._on_slave_proof(message, now_s)

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
            self.nonce, log.incarnation, LogOffset(log.log_start), LogOffset(log.log_end), self._epoch
        )
        answer = encode_master_hello(hello, self.keys.authentication)
        answer += self.keys.prove_master(slave_hello=message, master_hello=answer)
        self._transcript = [message, answer]
        self.state = MasterState.PROOF
        return [SendBytes(answer)]

    def _on_slave_proof(self, message: bytes, now_s: float) -> list[MasterAction]:
        slave_hello, said = self._transcript
        if not self.keys.is_slave(slave_hello=slave_hello, master_hello=said, slave_proof=message):
            return self._close(CloseKind.NOT_PROVEN, "it does not know haSecret")
        assert self.hello is not None
        proof = self.proof = decode_slave_proof(message, self.keys.authentication)
        verdict = self._judge(self.hello, proof)
        answer = encode_verdict(verdict, self.keys.authentication)
        answer += self.keys.prove_verdict(
            slave_hello=slave_hello, master_hello=said, slave_proof=message, verdict=answer
        )
        match verdict:
            case Refused():
                return [SendBytes(answer), *self._refuse(verdict, proof)]
            case AlignFirst():
                self._transcript = [slave_hello, said + message + answer]
                self._reader.trust_peer()
                self._deadline_s = now_s + ALIGN_S
                self.state = MasterState.ALIGN
                return [SendBytes(answer), TrustPeer()]
            case Accepted(start_offset):
                return [SendBytes(answer), self._accept(self.hello, proof, start_offset)]

    def _judge(self, hello: SlaveHello, proof: SlaveProof) -> Verdict:
        log = self.look_at_log()
        own_id = MASTER_ID if self.epoch_log is None else self.epoch_log.own_id
        refused = judge_hello(hello, group=self.keys.group, own_id=own_id) or judge_epoch(proof, self._epoch)
        if refused is not None:
            return refused
        # A slave with fixed roles knows no epochs: it is served as ever, if its log fits as it is.
        if self.epoch_log is not None and proof.epoch and self.state is MasterState.PROOF:
            return judge_store(proof, log) or AlignFirst(self.epoch_log.newest_epochs)
        return judge_log(proof, log)

    def _refuse(self, refused: Refused, proof: SlaveProof) -> list[MasterAction]:
        closing = self._close(CloseKind.REFUSED, f"{refused.reason.name}: {refused.text}")
        is_deposed = refused.reason is Refusal.STALE_EPOCH and self.epoch_log is not None
        return [NewerEpoch(proof.epoch), *closing] if is_deposed else closing

    def _accept(self, hello: SlaveHello, proof: SlaveProof, start_offset: int) -> StartTransfer:
        self.state = MasterState.TRANSFER
        self.acked_to = self.sent_to = start_offset
        return StartTransfer(
            start_offset,
            proof.log_end,
            hello.broker_id,
            proof.ack_kind,
            held_from=proof.log_start if proof.log_end else start_offset,
            is_learner=proof.is_learner,
        )

    def _on_frame_bytes(self, data: bytes) -> list[MasterAction]:
        if self._held:
            self._held += data
            if len(self._held) < self._needed_bytes:
                # A large note comes in many reads: to look at it each time would take their number squared.
                return []
            data = bytes(self._held)
            self._held.clear()
        view = memoryview(data)
        frames, used = decode_frames(view, FROM_SLAVE)
        if used < len(data):
            self._held += view[used:]
            self._needed_bytes = bytes_needed(view, FROM_SLAVE, used)
        newest: int | None = None
        notes: list[MasterAction] = []
        for frame in frames:
            fault = self._fault(frame)
            if fault is not None:
                return self._close(CloseKind.IMPOSSIBLE_ACK, fault)
            if isinstance(frame, Ack):
                newest = self.acked_to = frame.log_offset
            elif isinstance(frame, Note):
                notes.append(TakeNote(bytes(frame.body)))
            elif isinstance(frame, TablesHeld):
                notes.append(TakeTablesHeld(frame.number))
        return notes if newest is None else [TakeAck(newest), *notes]

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
            case Note() | TablesHeld():
                pass
            case _:
                raise AssertionError(frame)
        return None

    def _close(self, kind: CloseKind, reason: str) -> list[MasterAction]:
        self.state = MasterState.CLOSED
        return [CloseLink(kind, reason)]
