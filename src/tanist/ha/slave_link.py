"""A master of Tanist's, as its slave sees it.

    GREETING --greeted--> HELLO --hello, proven--> VERDICT --accepted--> TRANSFER
                                                   |     ^
                           to be aligned first: once v     | our log is cut, and shown anew
                                                  CUTTING
        any state --what can not be true, silence, refusal--> CLOSED

Pure. follower.py owns the socket: it feeds what came and carries the actions out. A byte of the log is
appended only at our own end, and acked only when it is ours: received, or on the disk. Our log is cut only
in the hello, where this hello found that it has to be: an order that comes late or twice cuts nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import (
    AppendLog,
    ApplyTable,
    CloseKind,
    CloseLink,
    ConfirmTo,
    FollowLog,
    SendBytes,
    SlaveAction,
    TakeNote,
    TellEpochs,
    TruncateTo,
    wrong_offset,
)
from tanist.ha.admission import CrcBefore, stale_epoch, tail_bytes
from tanist.ha.alignment import FollowedEpochs, align
from tanist.ha.keys import HaKeys
from tanist.ha.link_times import LinkTimes
from tanist.ha.record_walk import RecordWalk
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    ALIGN_S,
    GREETING,
    HELLO_S,
    MAX_MESSAGE_BYTES,
    Accepted,
    AlignFirst,
    HelloReader,
    MasterHello,
    Refused,
    SlaveHello,
    SlaveProof,
    decode_master_hello,
    decode_verdict,
    encode_slave_hello,
    encode_slave_proof,
)
from tanist.protocol.ha_link import (
    FROM_MASTER,
    Ack,
    AckKind,
    Data,
    Heartbeat,
    Note,
    TableChange,
    TablesHeld,
    decode_frames,
    encode_ack,
    encode_heartbeat,
    encode_note,
    encode_tables_held,
)


class SlaveState(Enum):
    GREETING = "greeting"
    HELLO = "hello"
    VERDICT = "verdict"
    CUTTING = "cutting"
    TRANSFER = "transfer"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class SlaveLog:
    """What a slave's log is when it calls its master."""

    incarnation: bytes
    log_start: int
    log_end: int
    file_bytes: int
    crc_before: CrcBefore
    epochs: EpochHistory = field(default_factory=EpochHistory)
    confirmed_to: int = 0
    """What all replicas in step were known to hold."""
    walk_to_end: Callable[[], RecordWalk] | None = None
    """Walks over the end of our log, which may lie within a record; None: what comes is not looked at."""


@dataclass(slots=True)
class SlaveLink:
    """The slave's end of one link."""

    keys: HaKeys
    broker_id: int
    nonce: bytes
    """Fresh and random."""
    log: SlaveLog
    ack_kind: AckKind
    now_s: float
    heartbeat_s: float
    silence_s: float
    asks_first: bool = False
    """Whether the master may be one of RocketMQ's, so that nothing is said before it has greeted."""
    epoch: int = 0
    """The newest epoch that we were told of; 0 with fixed roles, which know none."""
    is_learner: bool = False
    """Whether we only follow, and are not to be counted on."""
    state: SlaveState = field(default=SlaveState.GREETING, init=False)
    refusal: Refused | None = field(default=None, init=False)
    master_log_end: int = field(default=0, init=False)
    log_end: int = field(init=False)
    acked_to: int = field(init=False)
    confirmed_to: int = field(init=False)
    """Up to where our log is confirmed."""
    _deadline_s: float = field(init=False)
    """When the hello has to be over."""
    _epochs: FollowedEpochs | None = field(default=None, init=False)
    """None before we are aligned, and always with fixed roles."""
    _master: MasterHello | None = field(default=None, init=False)
    _walk: RecordWalk | None = field(default=None, init=False)
    """Follows the records that come: bytes that are none are not appended, however well they are signed."""
    _reader: HelloReader = field(default_factory=HelloReader, init=False)
    _transcript: list[bytes] = field(default_factory=list[bytes], init=False)
    _times: LinkTimes = field(init=False)

    def __post_init__(self) -> None:
        self._times = LinkTimes(self.now_s, self.heartbeat_s, self.silence_s)
        self.log_end = self.acked_to = self.log.log_end
        self.confirmed_to = min(self.log.confirmed_to, self.log.log_end)
        self._deadline_s = self.now_s + HELLO_S

    @property
    def is_transferring(self) -> bool:
        return self.state is SlaveState.TRANSFER

    @property
    def plain_epoch(self) -> int | None:
        """The epoch of which whole records may come next without a look of ours; None if each needs one."""
        walk = self._walk
        if self.state is not SlaveState.TRANSFER or walk is None or not walk.is_between_records:
            return None
        return 0 if self._epochs is None else self._epochs.settled(self.log_end)

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        if self.state is SlaveState.TRANSFER:
            return self._times.next_tick_s
        return self._deadline_s

    def on_connected(self) -> list[SlaveAction]:
        """The master's port has answered: say who calls."""
        hello = SlaveHello(self.keys.group, self.broker_id, self.nonce)
        message = encode_slave_hello(hello, self.keys.authentication)
        self._transcript = [message]
        return [SendBytes(message[: len(GREETING)] if self.asks_first else message)]

    def on_bytes(self, view: memoryview, *, now_s: float) -> tuple[list[SlaveAction], int]:
        """What to do about what came, and how much of it is used up; the rest comes again with more."""
        self._times.read_s = now_s
        try:
            match self.state:
                case SlaveState.GREETING:
                    return self._on_greeting(view)
                case SlaveState.HELLO | SlaveState.VERDICT:
                    message, rest = self._reader.feed(view)
                    used = len(view) - len(rest)
                    return ([] if message is None else self._on_message(message, now_s)), used
                case SlaveState.CUTTING:
                    return self._close(CloseKind.NO_HELLO, f"{len(view)} bytes too early"), len(view)
                case SlaveState.TRANSFER:
                    return self._on_frames(view)
                case SlaveState.CLOSED:
                    return [], len(view)
        except RemoteProtocolError as error:
            kind = CloseKind.BAD_FRAME if self.state is SlaveState.TRANSFER else CloseKind.NO_HELLO
            return self._close(kind, str(error)), len(view)

    def on_appended(self, log_end: int) -> None:
        """The bytes that were last to be appended are."""
        self.log_end = log_end

    def on_taken(self, log_end: int, confirmed_to: int, *, is_acked: bool, now_s: float) -> list[SlaveAction]:
        """Whole records of ``plain_epoch`` came, were sound, and are in our log, which ends here now."""
        assert self._walk is not None
        self._walk.skip_to(log_end)
        self._times.read_s = now_s
        self.log_end = log_end
        self.master_log_end = max(self.master_log_end, log_end)
        if is_acked:
            self.acked_to = log_end
            self._times.written_s = now_s
        return self._confirm(confirmed_to, log_end)

    def on_truncated(self) -> list[SlaveAction]:
        """Our log is cut as was asked for: show what it is now."""
        assert self.state is SlaveState.CUTTING
        assert self._epochs is not None
        self._epochs.cut(self.log.log_end)
        return self._prove()

    def on_held(self, held_to: int, *, now_s: float) -> list[SlaveAction]:
        """As much as acks promise is ours up to here: ack it, if it is more than was acked."""
        if self.state is not SlaveState.TRANSFER or held_to <= self.acked_to:
            return []
        self.acked_to = held_to
        self._times.written_s = now_s
        return [SendBytes(encode_ack(Ack(self.ack_kind, LogOffset(held_to))))]

    def send_note(self, note: bytes, *, now_s: float) -> list[SlaveAction]:
        """Tell the master something beside the log, if it lets us in."""
        if self.state is not SlaveState.TRANSFER:
            return []
        self._times.written_s = now_s
        return [SendBytes(encode_note(note))]

    def tell_tables_held(self, number: int, *, now_s: float) -> list[SlaveAction]:
        """The tables are taken over up to the question with this number."""
        if self.state is not SlaveState.TRANSFER:
            return []
        self._times.written_s = now_s
        return [SendBytes(encode_tables_held(number))]

    def on_tick(self, *, now_s: float) -> list[SlaveAction]:
        """Some time has passed."""
        match self.state:
            case SlaveState.GREETING | SlaveState.HELLO | SlaveState.VERDICT | SlaveState.CUTTING:
                if now_s >= self._deadline_s:
                    waited_s = self._deadline_s - self.now_s
                    return self._close(CloseKind.TOO_SLOW, f"no answer within {waited_s:.0f} s")
            case SlaveState.TRANSFER:
                if (silent_ms := self._times.silent_ms(now_s)) is not None:
                    return self._close(CloseKind.SILENT, f"the master did not respond for {silent_ms:.0f} ms")
                if self._times.take_heartbeat(now_s):
                    beat = Heartbeat(LogOffset(self.log_end), self.epoch, confirmed_to=LogOffset(0))
                    return [SendBytes(encode_heartbeat(beat))]
            case SlaveState.CLOSED:
                pass
        return []

    def on_lost(self) -> None:
        """The connection is gone."""
        self.state = SlaveState.CLOSED

    def _on_greeting(self, view: memoryview) -> tuple[list[SlaveAction], int]:
        said = bytes(view[: len(GREETING)])
        if not GREETING.startswith(said):
            return self._close(CloseKind.NO_HELLO, f"{said.hex()} is no greeting"), len(view)
        if len(said) < len(GREETING):
            return [], 0
        self.state = SlaveState.HELLO
        rest = self._transcript[0][len(GREETING) :]
        return ([SendBytes(rest)] if self.asks_first else []), len(said)

    def _on_message(self, message: bytes, now_s: float) -> list[SlaveAction]:
        if self.state is SlaveState.HELLO:
            return self._on_master_hello(message)
        return self._on_verdict(message, now_s)

    def _on_master_hello(self, message: bytes) -> list[SlaveAction]:
        (slave_hello,) = self._transcript
        if not self.keys.is_master(slave_hello=slave_hello, master_hello=message):
            return self._close(
                CloseKind.NOT_PROVEN, "the master does not know our haSecret; set the same on both"
            )
        self._master = decode_master_hello(message, self.keys.authentication)
        self.master_log_end = self._master.log_end
        self._transcript.append(message)
        if self.epoch:
            self._reader.trust_peer(MAX_MESSAGE_BYTES)
        else:
            self._reader.trust_peer()
        # A master of an older epoch is told ours as well: so it learns that it is replaced.
        return self._prove()

    def _prove(self) -> list[SlaveAction]:
        """Show who we are, and what we hold."""
        assert self._master is not None
        log = self.log
        size = tail_bytes(self._master, log_start=log.log_start, log_end=log.log_end)
        proof = SlaveProof(
            log.incarnation,
            LogOffset(log.log_start),
            LogOffset(log.log_end),
            epoch=self.epoch,
            tail_crc=log.crc_before(log.log_end, size) if size else 0,
            tail_bytes=size,
            ack_kind=self.ack_kind,
            file_bytes=log.file_bytes,
            is_learner=self.is_learner,
        )
        slave_hello, said = self._transcript
        answer = encode_slave_proof(proof, self.keys.authentication)
        answer += self.keys.prove_slave(slave_hello=slave_hello, master_hello=said, slave_proof=answer)
        self._transcript.append(answer)
        self.state = SlaveState.VERDICT
        return [SendBytes(answer)]

    def _on_verdict(self, message: bytes, now_s: float) -> list[SlaveAction]:
        slave_hello, said, slave_proof = self._transcript
        if not self.keys.is_verdict(
            slave_hello=slave_hello, master_hello=said, slave_proof=slave_proof, verdict=message
        ):
            return self._close(CloseKind.NOT_PROVEN, "the verdict is not the master's")
        verdict = decode_verdict(message, self.keys.authentication)
        assert self._master is not None
        if self._master.epoch < self.epoch:
            return self._refuse(stale_epoch(master=self._master.epoch, told=self.epoch))
        match verdict:
            case Refused():
                return self._refuse(verdict)
            case Accepted(start_offset):
                return self._on_accepted(start_offset)
            case AlignFirst(epochs):
                self._transcript = [slave_hello, said + slave_proof + message]
                self._reader.trust_peer()
                self._deadline_s = now_s + ALIGN_S
                return self._on_align_first(epochs)

    def _on_align_first(self, epochs: tuple[Epoch, ...]) -> list[SlaveAction]:
        assert self._master is not None
        if not self.epoch or self._epochs is not None:
            return self._close(CloseKind.NO_HELLO, "epochs where a verdict was due")
        log = self.log
        self._epochs = FollowedEpochs(log.epochs, epochs)
        point = align(
            log.epochs,
            epochs,
            log_start=log.log_start,
            log_end=log.log_end,
            master_start=self._master.log_start,
            master_end=self._master.log_end,
            confirmed_to=self.confirmed_to,
        )
        agreed_to = None if isinstance(point, Refused) else point
        told = TellEpochs(log.epochs.epochs, epochs, log.log_end, agreed_to)
        if isinstance(point, Refused):
            return [told, *self._refuse(point)]
        if not self._epochs.is_cut_at(point, log.log_end):
            return [told, *self._prove()]
        self.log = replace(log, log_end=point)
        self.log_end = self.acked_to = point
        self.state = SlaveState.CUTTING
        return [told, TruncateTo(point)]

    def _on_accepted(self, start_offset: int) -> list[SlaveAction]:
        if self.epoch and self._epochs is None:
            return self._close(CloseKind.NO_HELLO, "a verdict before the master told its epochs")
        is_empty = self.log.log_end == 0
        fits = start_offset % self.log.file_bytes == 0 if is_empty else start_offset == self.log.log_end
        if not fits:
            return self._close(
                CloseKind.WRONG_OFFSET, f"the master begins at {start_offset}, our log ends at {self.log_end}"
            )
        assert self._master is not None
        self.state = SlaveState.TRANSFER
        # Of what lies before its start an empty slave needs nothing, and has nothing to ack.
        self.log_end = self.acked_to = start_offset
        if self.log.walk_to_end is not None:
            file_bytes = self.log.file_bytes
            self._walk = (
                RecordWalk(start_offset, file_bytes=file_bytes) if is_empty else self.log.walk_to_end()
            )
        actions: list[SlaveAction] = [FollowLog(self._master.incarnation)]
        if self._epochs is not None:
            # What is not confirmed yet is not shown from now on, not even if nothing was known of it before.
            actions += [*self._epochs.catch_up(self.log.log_end), ConfirmTo(self.confirmed_to)]
        return actions

    def _on_frames(self, view: memoryview) -> tuple[list[SlaveAction], int]:
        frames, used = decode_frames(view, FROM_MASTER)
        actions: list[SlaveAction] = []
        expected = self.log_end
        for frame in frames:
            match frame:
                case Data(log_offset, epoch, confirmed_to, body):
                    if log_offset != expected:
                        return [*actions, *self._off(log_offset, expected)], len(view)
                    if self._epochs is not None:
                        actions += self._epochs.on_data(epoch, log_offset, len(body))
                    if self._walk is not None:
                        self._walk.feed(body)
                    actions.append(AppendLog(log_offset, body))
                    expected += len(body)
                    self.master_log_end = max(self.master_log_end, expected)
                    actions += self._confirm(confirmed_to, expected)
                case TableChange(body):
                    actions.append(ApplyTable(bytes(body)))
                case Note(body):
                    actions.append(TakeNote(bytes(body)))
                case Heartbeat(log_end, epoch, confirmed_to):
                    if log_end < expected:
                        return [*actions, *self._off(log_end, expected)], len(view)
                    self._check_reign(epoch)
                    self.master_log_end = log_end
                    actions += self._confirm(confirmed_to, expected)
                case Ack() | TablesHeld():
                    raise AssertionError(frame)
        return actions, used

    def _check_reign(self, epoch: int) -> None:
        assert self._master is not None
        if self._epochs is not None and epoch != self._master.epoch:
            raise RemoteProtocolError(
                f"a heartbeat of epoch {epoch} from the master of epoch {self._master.epoch}"
            )

    def _confirm(self, confirmed_to: int, log_end: int) -> list[SlaveAction]:
        """What is confirmed of what we hold, if that is news."""
        ours = min(confirmed_to, log_end)
        if self._epochs is None or ours <= self.confirmed_to:
            return []
        self.confirmed_to = ours
        return [ConfirmTo(ours)]

    def _refuse(self, refusal: Refused) -> list[SlaveAction]:
        self.refusal = refusal
        return self._close(CloseKind.REFUSED, f"{refusal.reason.name}: {refusal.text}")

    def _off(self, master_offset: int, own_end: int) -> list[SlaveAction]:
        return self._close(CloseKind.WRONG_OFFSET, wrong_offset(own_end=own_end, master_offset=master_offset))

    def _close(self, kind: CloseKind, reason: str) -> list[SlaveAction]:
        self.state = SlaveState.CLOSED
        return [CloseLink(kind, reason)]
