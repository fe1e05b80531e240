"""One slave of RocketMQ under a controller, as its master sees it.

    HANDSHAKE --handshake of a replica that is known--> REPORT --first report, its log may be ours--> TRANSFER
        any state --what can not be true, silence--> CLOSED

Pure. acceptor.py owns the socket. The handshake is answered with the epochs of our log. The slave cuts its
own log where they differ, and reports where it ends then; its report is held against what our log has. In
TRANSFER, acked_to <= sent_to <= the log's end, and acked_to never goes back.

No frame has bytes of two epochs, and each is labelled with the epoch of its bytes. (RocketMQ labels the last
frame of an epoch with the next one. Its slaves take both.) What was written before there were epochs is told
to be of epoch 0, so that every byte has one; RocketMQ sends frames of a negative size there.

No epoch is told before its first byte. A slave of RocketMQ that wrote one down, and becomes master where it
begins, does not replace it and reigns under its number. What we wrote meanwhile, and had not sent, would then
be taken for what that master wrote, and two logs that differ for one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import CloseKind, CloseLink, MasterAction, SendBytes, StartTransfer, TakeAck
from tanist.ha.admission import deleted_before
from tanist.ha.classic_frames import FrameCuts, Log, ack_fault
from tanist.ha.crcs import Crcs
from tanist.ha.link_times import LinkTimes
from tanist.ha.replicas import Dialect
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_autoswitch import (
    MAX_EPOCHS,
    NO_EPOCH,
    TRANSFER_HEADER_BYTES,
    MasterHandshake,
    SlaveFrameDecoder,
    SlaveHandshake,
    TransferHeader,
    encode_master_handshake,
    encode_transfer_header,
)
from tanist.protocol.ha_link import AckKind

_BEFORE_EPOCHS = Epoch(0, LogOffset(0))
"""Controllers count from 1, so none of theirs is taken for it."""
_FIRST_EPOCH = 1
_MOST_VAIN = 1000
"""So many masters that wrote nothing are told of to a new group's slaves."""


class AutoswitchState(Enum):
    HANDSHAKE = "handshake"
    REPORT = "report"
    TRANSFER = "transfer"
    CLOSED = "closed"


@dataclass(slots=True)
class AutoswitchMasterLink:
    """The master's end of one link to a slave of RocketMQ that a controller may make master."""

    log: Log
    look_at_epochs: Callable[[], EpochHistory]
    """Which master wrote what of the log, as it is known now."""
    confirmed_to: Callable[[], int]
    """Up to where all replicas in step hold the log now."""
    may_come: Callable[[int], bool]
    """Whether a peer is believed to be the slave with this broker id."""
    file_bytes: int
    batch_bytes: int
    """The largest body of a frame."""
    now_s: float
    heartbeat_s: float
    silence_s: float
    dialect: Dialect = field(default=Dialect.AUTOSWITCH, init=False)
    state: AutoswitchState = field(default=AutoswitchState.HANDSHAKE, init=False)
    acked_to: int = field(default=0, init=False)
    sent_from: int = field(default=0, init=False)
    sent_to: int = field(default=0, init=False)
    _handshake: SlaveHandshake | None = field(default=None, init=False)
    _told_end: int = field(default=0, init=False)
    """Where our log ended when the slave was told."""
    _confirmed_told: int = field(default=-1, init=False)
    """Up to where the slave was told that the log is confirmed."""
    _awaited_since_s: float = field(init=False)
    """Since when the handshake, and then the first report, is waited for."""
    _decoder: SlaveFrameDecoder = field(default_factory=SlaveFrameDecoder, init=False)
    _cuts: FrameCuts = field(init=False)
    _times: LinkTimes = field(init=False)

    def __post_init__(self) -> None:
        self._cuts = FrameCuts.of(self.log, self.batch_bytes, header_bytes=TRANSFER_HEADER_BYTES)
        self._times = LinkTimes(self.now_s, self.heartbeat_s, self.silence_s)
        self._awaited_since_s = self.now_s

    @property
    def is_transferring(self) -> bool:
        return self.state is AutoswitchState.TRANSFER

    @property
    def max_body_bytes(self) -> int:
        """The most that the next frame carries: nothing of the next epoch."""
        next_bytes = self._cuts.next_bytes(self.sent_to)
        epoch_end = self._shown_epochs().end_at(self.sent_to)
        return next_bytes if epoch_end is None else min(next_bytes, epoch_end - self.sent_to)

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        if self.is_transferring:
            return self._times.next_tick_s
        return self._awaited_since_s + self.silence_s

    def on_bytes(self, data: bytes, *, now_s: float) -> list[MasterAction]:
        """The slave sent something. Of several reports the newest is an ack."""
        self._times.read_s = now_s
        if self._is_closed:
            return []
        try:
            frames = self._decoder.feed(data)
        except RemoteProtocolError as error:
            is_new = self.state is AutoswitchState.HANDSHAKE
            return self._close(CloseKind.NO_HELLO if is_new else CloseKind.BAD_FRAME, str(error))
        actions: list[MasterAction] = []
        was_transferring, acked_before = self.is_transferring, self.acked_to
        for frame in frames:
            if isinstance(frame, SlaveHandshake):
                actions += self._on_handshake(frame, now_s=now_s)
            else:
                actions += self._on_report(frame.log_offset, now_s=now_s)
            if self._is_closed:
                break
        if was_transferring and self.is_transferring and self.acked_to > acked_before:
            actions.append(TakeAck(self.acked_to))
        return actions

    def header(self, log_offset: int, body: bytes | memoryview, *, log_end: int, crcs: Crcs) -> bytes:  # noqa: ARG002
        """What goes before these bytes of the log."""
        return self._header(log_offset, len(body))

    def on_sent(self, log_end: int, *, now_s: float) -> None:
        """The log was sent up to here."""
        assert self.state is AutoswitchState.TRANSFER
        assert log_end >= self.sent_to
        self._cuts.on_sent(self.sent_to, log_end)
        self.sent_to = log_end
        self._times.written_s = now_s

    def on_tick(self, *, log_end: int, now_s: float) -> list[MasterAction]:  # noqa: ARG002
        """Some time has passed."""
        match self.state:
            case AutoswitchState.HANDSHAKE | AutoswitchState.REPORT:
                if now_s - self._awaited_since_s >= self.silence_s:
                    return self._close(
                        CloseKind.TOO_SLOW, f"no {self.state.value} within {self.silence_s:.0f} s"
                    )
            case AutoswitchState.TRANSFER:
                if (silent_ms := self._times.silent_ms(now_s)) is not None:
                    return self._close(CloseKind.SILENT, f"nothing came for {silent_ms:.0f} ms")
                if self.sent_to < self.log.log_start:
                    # It takes so little that the rest was deleted, and with it what epoch that was of.
                    return self._close(CloseKind.REFUSED, deleted_before(self.sent_to).text)
                if self.confirmed_to() > self._confirmed_told or self._times.take_heartbeat(now_s):
                    self._times.written_s = now_s
                    return [SendBytes(self._header(self.sent_to, 0))]
            case AutoswitchState.CLOSED:
                pass
        return []

    def on_lost(self) -> None:
        """The connection is gone."""
        self.state = AutoswitchState.CLOSED

    # Inside

    @property
    def _is_closed(self) -> bool:
        return self.state is AutoswitchState.CLOSED

    def _shown_epochs(self) -> EpochHistory:
        """Our epochs, and one more before them if some of the log is older than all of them."""
        epochs = self.look_at_epochs()
        if epochs.at(self.log.log_start) is not None:
            return epochs
        return EpochHistory((_BEFORE_EPOCHS, *epochs.epochs))

    def _header(self, log_offset: int, size_bytes: int) -> bytes:
        label = self._label(log_offset, size_bytes)
        self._confirmed_told = self.confirmed_to()
        return encode_transfer_header(
            TransferHeader(log_offset, size_bytes, label.epoch, label.start, self._confirmed_told)
        )

    def _label(self, log_offset: int, size_bytes: int) -> Epoch:
        """The epoch of these bytes; without bytes that of the last one before them."""
        epochs = self._shown_epochs()
        if not size_bytes:
            held = epochs.at(log_offset - 1) if log_offset > self.log.log_start else None
            return held or Epoch(NO_EPOCH, LogOffset(0))
        label, epoch_end = epochs.at(log_offset), epochs.end_at(log_offset)
        assert label is not None
        assert epoch_end is None or log_offset + size_bytes <= epoch_end
        return label

    def _on_handshake(self, handshake: SlaveHandshake, *, now_s: float) -> list[MasterAction]:
        if self._handshake is not None:
            # It grew impatient. The answer is on its way, and a second one it would take for a fault.
            is_same = handshake == self._handshake
            return [] if is_same else self._close(CloseKind.BAD_FRAME, f"{handshake} after {self._handshake}")
        if not self.may_come(handshake.broker_id):
            return self._close(
                CloseKind.REFUSED, f"this group has no slave with broker id {handshake.broker_id} to come so"
            )
        self._handshake, self._told_end = handshake, self.log.log_end
        self._awaited_since_s = now_s
        self.state = AutoswitchState.REPORT
        log_end, shown = self.log.log_end, self._shown_epochs().epochs
        written = tuple(each for each in shown if each.start < log_end)
        # One that lacks the oldest aligns by newer ones, or not at all.
        epochs = (*_vain_epochs(shown[0]), *written)[-MAX_EPOCHS:]
        return [SendBytes(encode_master_handshake(MasterHandshake(log_end, shown[-1].epoch, epochs)))]

    def _on_report(self, report: int, *, now_s: float) -> list[MasterAction]:
        if self.state is AutoswitchState.REPORT:
            return self._on_first_report(report, now_s=now_s)
        if report == self.acked_to:
            return []
        fault = ack_fault(report, before=self.acked_to, sent_from=self.sent_from, sent_to=self.sent_to)
        if fault is not None:
            return self._close(CloseKind.IMPOSSIBLE_ACK, fault)
        self.acked_to = report
        return []

    def _on_first_report(self, report: int, *, now_s: float) -> list[MasterAction]:
        assert self._handshake is not None
        refusal = self._refusal(report)
        if refusal is not None:
            return self._close(CloseKind.REFUSED, f"its first report is {report}, {refusal}")
        self.state = AutoswitchState.TRANSFER
        self.acked_to = report
        self.sent_from = self.sent_to = report or self._first_for_empty(self._handshake)
        self._times.written_s = now_s
        start = StartTransfer(
            self.sent_from,
            report,
            self._handshake.broker_id,
            # It acks what it has in memory.
            AckKind.RECEIVED,
            held_from=0 if report else self.sent_from,
            is_learner=self._handshake.async_learner,
        )
        # It tells what is confirmed.
        return [SendBytes(self._header(self.sent_to, 0)), start]

    def _first_for_empty(self, handshake: SlaveHandshake) -> int:
        last_file = self.log.log_end - self.log.log_end % self.file_bytes
        return max(self.log.log_start, last_file) if handshake.sync_from_last_file else self.log.log_start

    def _refusal(self, report: int) -> str | None:
        """Why no copy of this log can end there; None if one can."""
        beyond = f"and it was told that this log ends at {self._told_end}: it did not cut its own"
        return self._cuts.start_at(report, log_end=self._told_end, beyond=beyond)

    def _close(self, kind: CloseKind, reason: str) -> list[MasterAction]:
        self.state = AutoswitchState.CLOSED
        return [CloseLink(kind, reason)]


def _vain_epochs(first: Epoch) -> tuple[Epoch, ...]:
    """The epochs before the first byte of the log, of which it has nothing.

    A slave of RocketMQ that was master in one of them wrote that down. It has to be told that nothing of it
    is in this log, or it finds no epoch in common and never comes in.
    """
    if first.start:
        return ()
    earliest = max(_FIRST_EPOCH, first.epoch - _MOST_VAIN)
    return tuple(Epoch(epoch, first.start) for epoch in range(earliest, first.epoch))
