"""A master's and a slave's end of a link in memory, with logs that are plain bytes."""

import zlib
from collections import deque
from dataclasses import dataclass, field

from tanist.ha.actions import (
    AppendLog,
    ApplyTable,
    BeginEpoch,
    CloseLink,
    ConfirmTo,
    FollowLog,
    MasterAction,
    NewerEpoch,
    SendBytes,
    SlaveAction,
    StartTransfer,
    TakeAck,
    TakeNote,
    TakeTablesHeld,
    TellEpochs,
    TruncateTo,
    TrustPeer,
)
from tanist.ha.admission import MasterLog
from tanist.ha.crcs import Crcs
from tanist.ha.epoch_log import EpochLog
from tanist.ha.keys import HaKeys
from tanist.ha.master_link import MasterLink
from tanist.ha.record_walk import RecordWalk
from tanist.ha.slave_link import SlaveLink, SlaveLog
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import NO_INCARNATION, Authentication
from tanist.protocol.ha_link import AckKind

SECRET = b"a secret of sixteen bytes and more"
KEYS = HaKeys("broker-a", Authentication.SECRET, SECRET)
INCARNATION = b"i" * 16
FILE_BYTES = 1024
HEARTBEAT_S = 5.0
SILENCE_S = 20.0


@dataclass
class Bytes:
    """A log of plain bytes that begins at ``start``."""

    data: bytes = b""
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def crc_before(self, log_offset: int, size_bytes: int) -> int:
        begin = log_offset - size_bytes
        assert self.start <= begin <= log_offset <= self.end
        return zlib.crc32(self.data[begin - self.start : log_offset - self.start])


def epochs_of(*pairs: tuple[int, int]) -> EpochHistory:
    """A history of these epochs and their starts."""
    return EpochHistory(Epoch(epoch, LogOffset(start)) for epoch, start in pairs)


@dataclass
class MasterSide:
    """A master's end, which sends its log whenever it may."""

    log: Bytes
    keys: HaKeys = KEYS
    incarnation: bytes = INCARNATION
    is_last_file_first: bool = False
    file_bytes: int = FILE_BYTES
    nonce: bytes = b"m" * 16
    epoch: int = 0
    """0 with fixed roles."""
    epochs: EpochHistory = field(default_factory=EpochHistory)
    confirmed_to: int = 0
    link: MasterLink = field(init=False)
    newer_epoch: int | None = None
    is_slave_trusted: bool = False
    acked: list[int] = field(default_factory=list[int])
    notes: list[bytes] = field(default_factory=list[bytes])
    started: StartTransfer | None = None
    tables_held: list[int] = field(default_factory=list[int])
    closed: CloseLink | None = None
    sent: bytes = b""

    def __post_init__(self) -> None:
        epoch_log = (
            EpochLog(self.epoch, lambda: self.epochs, lambda: self.confirmed_to) if self.epoch else None
        )
        self.link = MasterLink(self.keys, self.nonce, self.look, 0.0, HEARTBEAT_S, SILENCE_S, epoch_log)

    def look(self) -> MasterLog:
        return MasterLog(
            self.incarnation,
            self.log.start,
            self.log.end,
            self.file_bytes,
            self.is_last_file_first,
            self.log.crc_before,
        )

    def hear(self, data: bytes, now_s: float = 0.0) -> bytes:
        """What the master sends on hearing this."""
        return self.do(self.link.on_bytes(data, now_s=now_s), now_s)

    def do(self, actions: list[MasterAction], now_s: float = 0.0) -> bytes:
        out = b""
        for action in actions:
            match action:
                case SendBytes(data):
                    out += data
                case StartTransfer():
                    self.started = action
                case TakeAck(acked_to):
                    self.acked.append(acked_to)
                case TakeNote(note):
                    self.notes.append(note)
                case TakeTablesHeld(number):
                    self.tables_held.append(number)
                case TrustPeer():
                    self.is_slave_trusted = True
                case NewerEpoch(epoch):
                    self.newer_epoch = epoch
                case CloseLink():
                    self.closed = action
        out += self.push(now_s)
        self.sent += out
        return out

    def push(self, now_s: float = 0.0, max_bytes: int = 100) -> bytes:
        """The log that was not sent yet, in small frames."""
        out = b""
        while self.link.is_transferring and self.link.sent_to < self.log.end:
            at = self.link.sent_to
            body = self.log.data[at - self.log.start :][: min(max_bytes, self.link.max_body_bytes)]
            out += self.link.header(at, body, log_end=self.log.end, crcs=Crcs())
            out += body
            self.link.on_sent(at + len(body), now_s=now_s)
        return out


@dataclass
class SlaveSide:
    """A slave's end, which appends and acks at once."""

    log: Bytes
    keys: HaKeys = KEYS
    incarnation: bytes = NO_INCARNATION
    broker_id: int = 1
    ack_kind: AckKind = AckKind.RECEIVED
    nonce: bytes = b"s" * 16
    refuses_appends: bool = False
    file_bytes: int = FILE_BYTES
    epoch: int = 0
    """0 with fixed roles."""
    epochs: EpochHistory = field(default_factory=EpochHistory)
    known_confirmed_to: int = 0
    walks: bool = False
    """Whether it looks at records: the bytes of most tests are none."""
    confirmed: list[int] = field(default_factory=list[int])
    begun: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    told: list[TellEpochs] = field(default_factory=list[TellEpochs])
    cuts: list[int] = field(default_factory=list[int])
    link: SlaveLink = field(init=False)
    closed: CloseLink | None = None
    tables: list[bytes] = field(default_factory=list[bytes])
    notes: list[bytes] = field(default_factory=list[bytes])
    sent: bytes = b""
    _held: bytes = b""

    def __post_init__(self) -> None:
        log = SlaveLog(
            self.incarnation,
            self.log.start,
            self.log.end,
            self.file_bytes,
            self.log.crc_before,
            EpochHistory(self.epochs.epochs),
            self.known_confirmed_to,
            (lambda: RecordWalk(self.log.end, file_bytes=self.file_bytes)) if self.walks else None,
        )
        self.link = SlaveLink(
            self.keys,
            self.broker_id,
            self.nonce,
            log,
            self.ack_kind,
            0.0,
            HEARTBEAT_S,
            SILENCE_S,
            epoch=self.epoch,
        )

    def begin(self) -> bytes:
        return self._do(self.link.on_connected())

    def hear(self, data: bytes, now_s: float = 0.0) -> bytes:
        """What the slave sends on hearing this."""
        self._held += data
        out = b""
        while self._held and self.closed is None:
            actions, used = self.link.on_bytes(memoryview(self._held), now_s=now_s)
            out += self._do(actions)
            self._held = self._held[used:]
            if not used:
                break
        return out + self._do(self.link.on_held(self.link.log_end, now_s=now_s))

    def tick(self, now_s: float) -> bytes:
        return self._do(self.link.on_tick(now_s=now_s))

    def _do(self, actions: list[SlaveAction]) -> bytes:
        out = b""
        waiting = deque(actions)
        while waiting:
            action = waiting.popleft()
            match action:
                case SendBytes(data):
                    out += data
                case AppendLog(log_offset, body):
                    self._append(log_offset, bytes(body))
                case ApplyTable(change):
                    self.tables.append(change)
                case TakeNote(note):
                    self.notes.append(note)
                case FollowLog(incarnation):
                    self.incarnation = incarnation or self.incarnation
                case CloseLink():
                    self.closed = action
                case TellEpochs():
                    self.told.append(action)
                case TruncateTo(log_offset):
                    waiting += self._truncate(log_offset)
                case BeginEpoch(epoch, start):
                    self.epochs.begin(epoch, start)
                    self.begun.append((epoch, start))
                case ConfirmTo(confirmed_to):
                    assert confirmed_to <= self.log.end
                    self.confirmed.append(confirmed_to)
        self.sent += out
        return out

    def _truncate(self, log_offset: int) -> list[SlaveAction]:
        self.log.data = self.log.data[: log_offset - self.log.start]
        self.epochs.cut(log_offset)
        self.cuts.append(log_offset)
        return self.link.on_truncated()

    def _append(self, log_offset: int, body: bytes) -> None:
        if not self.log.data:
            self.log.start = log_offset
        assert log_offset == self.log.end
        self.log.data += body
        self.link.on_appended(self.log.end)


def meet(master: MasterSide, slave: SlaveSide) -> None:
    """Let both talk until neither has anything to say."""
    to_master = slave.begin()
    while to_master:
        to_slave = master.hear(to_master)
        to_master = slave.hear(to_slave) if to_slave else b""
