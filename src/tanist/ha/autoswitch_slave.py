"""A master of RocketMQ under a controller, as its slave sees it.

    READY --connected--> HANDSHAKE --answered, both logs agree--> TRANSFER
        HANDSHAKE, TRANSFER --what can not be true, silence, connection lost--> READY

Pure. follower.py owns the socket, cuts half a record off our log before it connects, and makes a new link for
each connection; nothing enters SUSPEND, and SHUTDOWN is the end of the follower. The slave says who it is,
and the master what its log is made of. Where both logs last agree ours is cut, and the slave says at once
from where on it wants the log. (RocketMQ's own says it 5 s later.) A frame is taken when all of it is there,
and only at our own end.

An epoch is written down when our log reaches its start, before its first byte. Where it starts, the master's
answer tells, and then the labels of its frames; where a frame lies tells nothing of its epoch, since RocketMQ
labels the last frame of an epoch with the next one.
"""

from collections import deque
from dataclasses import dataclass, field

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import (
    AppendLog,
    BeginEpoch,
    CloseKind,
    CloseLink,
    ConfirmTo,
    FollowLog,
    SendBytes,
    SlaveAction,
    TellEpochs,
    TruncateTo,
)
from tanist.ha.admission import REBUILD
from tanist.ha.link_times import LinkTimes
from tanist.ha.record_walk import RecordWalk
from tanist.ha.rocketmq_frames import WholeBodies, WrongOffset, check_offset
from tanist.model.epochs import Epoch, EpochHistory, consistent_point, epochs_text
from tanist.protocol.ha_autoswitch import (
    EMPTY_LOG,
    NO_EPOCH,
    HaState,
    MasterFrameDecoder,
    MasterHandshake,
    SlaveHandshake,
    TransferHeader,
    encode_slave_handshake,
    encode_slave_report,
)
from tanist.protocol.ha_link import AckKind
from tanist.protocol.ha_stream import BodyPart

HANDSHAKE_S = 5.0
"""So long a master may take to answer."""
CUT_S = 60.0
"""So long it may take to cut our log. A master that grows impatient hangs up, and is called anew."""
_TOLD_EPOCHS = 3
"""So many of them a reason tells."""


class _NotAligned(RemoteProtocolError):
    """It is not known where both logs last agree."""


@dataclass(slots=True)
class AutoswitchSlaveLink:
    """The slave's end of one link to a master of RocketMQ under a controller."""

    handshake: SlaveHandshake
    log_end: int
    """A record ends there."""
    epochs: EpochHistory
    """Which master wrote what of our log."""
    file_bytes: int
    ack_kind: AckKind
    now_s: float
    heartbeat_s: float
    silence_s: float
    state: HaState = field(default=HaState.READY, init=False)
    master_log_end: int = field(init=False)
    acked_to: int = field(init=False)
    _is_answered: bool = field(default=False, init=False)
    _deadline_s: float = field(init=False)
    """When the transfer has to have begun."""
    _told: list[Epoch] = field(default_factory=list[Epoch], init=False)
    """All epochs of which the master told."""
    _coming: deque[Epoch] = field(default_factory=deque[Epoch], init=False)
    """Those of them that our log has not reached."""
    _confirmed_to: int = field(default=-1, init=False)
    _header: TransferHeader | None = field(default=None, init=False)
    """Of the frame that is coming in."""
    _expected: int = field(init=False)
    """Where the next frame goes: our end once all that came is appended."""
    _bodies: WholeBodies = field(default_factory=WholeBodies, init=False)
    _walk: RecordWalk | None = field(default=None, init=False)
    _decoder: MasterFrameDecoder = field(default_factory=MasterFrameDecoder, init=False)
    _times: LinkTimes = field(init=False)

    def __post_init__(self) -> None:
        self._times = LinkTimes(self.now_s, self.heartbeat_s, self.silence_s)
        self._deadline_s = self.now_s + HANDSHAKE_S
        self.acked_to = self.master_log_end = self._expected = self.log_end

    @property
    def is_transferring(self) -> bool:
        return self.state is HaState.TRANSFER

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        if self.state is HaState.TRANSFER:
            return self._times.next_tick_s
        return self._deadline_s

    def on_connected(self) -> list[SlaveAction]:
        """The master's port has answered: say who calls."""
        assert self.state is HaState.READY
        self.state = HaState.HANDSHAKE
        return [SendBytes(encode_slave_handshake(self.handshake))]

    def on_bytes(self, view: memoryview, *, now_s: float) -> tuple[list[SlaveAction], int]:
        """What to do about what came, and how much of it is used up."""
        self._times.read_s = now_s
        actions: list[SlaveAction] = []
        if self.state in (HaState.HANDSHAKE, HaState.TRANSFER):
            try:
                for event in self._decoder.feed(view):
                    actions += self._on_event(event)
            except _NotAligned as error:
                actions += self._close(CloseKind.REFUSED, str(error))
            except WrongOffset as error:
                actions += self._close(CloseKind.WRONG_OFFSET, str(error))
            except RemoteProtocolError as error:
                actions += self._close(CloseKind.BAD_FRAME, str(error))
        return actions, len(view)

    def on_appended(self, log_end: int) -> None:
        """The bytes that were last to be appended are."""
        self.log_end = log_end

    def on_truncated(self) -> list[SlaveAction]:
        """Our log is cut as was asked for."""
        self.log_end = self._expected
        return self._follow()

    def on_held(self, held_to: int, *, now_s: float) -> list[SlaveAction]:
        """As much as acks promise is ours up to here: report it, if it is more than was reported."""
        if self.state is not HaState.TRANSFER or held_to <= self.acked_to:
            return []
        self.acked_to = held_to
        self._times.written_s = now_s
        return [SendBytes(encode_slave_report(held_to))]

    def on_tick(self, *, now_s: float) -> list[SlaveAction]:
        """Some time has passed."""
        match self.state:
            case HaState.HANDSHAKE:
                if now_s >= self._deadline_s and not self._is_answered:
                    return self._close(
                        CloseKind.SILENT, f"the master did not answer within {HANDSHAKE_S:.0f} s"
                    )
                if now_s >= self._deadline_s:
                    return self._close(CloseKind.TOO_SLOW, f"our log was not cut within {CUT_S:.0f} s")
            case HaState.TRANSFER:
                if (silent_ms := self._times.silent_ms(now_s)) is not None:
                    return self._close(CloseKind.SILENT, f"the master did not respond for {silent_ms:.0f} ms")
                if self._times.take_heartbeat(now_s):
                    return [SendBytes(encode_slave_report(self.acked_to))]
            case HaState.READY | HaState.SUSPEND | HaState.SHUTDOWN:
                pass
        return []

    def on_lost(self) -> None:
        """The connection is gone."""
        self.state = HaState.READY

    # Alignment

    def _on_event(self, event: MasterHandshake | TransferHeader | BodyPart) -> list[SlaveAction]:
        match event:
            case MasterHandshake():
                return self._on_handshake(event)
            case TransferHeader():
                self._on_header(event)
                return [] if event.size_bytes else self._take_frame(memoryview(b""))
            case BodyPart():
                return self._on_part(event)

    def _on_handshake(self, answer: MasterHandshake) -> list[SlaveAction]:
        if self._is_answered:
            raise RemoteProtocolError(f"a second answer to one handshake, in state {self.state.name}")
        self._is_answered = True
        self.master_log_end = answer.log_end
        self._told = list(answer.epochs)
        own = self.epochs.epochs
        point = self._align(answer)
        told = TellEpochs(own, answer.epochs, self.log_end, point)
        strays = [epoch for epoch in own if epoch.start >= point and epoch not in self._told]
        is_cut = point < self.log_end or bool(strays)
        kept = [epoch for epoch in own if not is_cut or epoch.start < point]
        newest_kept = kept[-1].epoch if kept else -1
        self._coming.extend(epoch for epoch in self._told if epoch.epoch > newest_kept)
        self._expected = point
        if not is_cut:
            return [told, *self._follow()]
        self._deadline_s = self._times.read_s + CUT_S
        return [told, TruncateTo(point)]

    def _align(self, answer: MasterHandshake) -> int:
        """Where both logs last agree. Raises _NotAligned if that can not be told, or should not be cut."""
        if not self.log_end:
            return 0
        # An epoch that wrote nothing of our log proves nothing of its master.
        newest = self.epochs.at(self.log_end - 1)
        if newest is None:
            raise _NotAligned(f"our log is of no epoch, so nobody knows what of it the master has: {REBUILD}")
        if newest.epoch > answer.epoch:
            raise _NotAligned(
                f"the master is of epoch {answer.epoch} and our log of epoch {newest.epoch}: it is replaced"
            )
        point = consistent_point(self.epochs, self.log_end, answer.epochs, answer.log_end)
        if point is None:
            ours = epochs_text(self.epochs.epochs, most=_TOLD_EPOCHS)
            masters = epochs_text(answer.epochs, most=_TOLD_EPOCHS)
            raise _NotAligned(
                f"no epoch of our log is the master's: ours are {ours}, the master's {masters}; {REBUILD}"
            )
        return point

    def _follow(self) -> list[SlaveAction]:
        """Both logs agree up to our end: say so, and have the rest sent."""
        self.state = HaState.TRANSFER
        self.acked_to = self.log_end
        if self.log_end:
            self._walk = RecordWalk(self.log_end, file_bytes=self.file_bytes)
        begun = self._begin_reached(self.log_end) if self.log_end else []
        return [FollowLog(None), *begun, SendBytes(encode_slave_report(self.log_end))]

    # The log

    def _on_header(self, header: TransferHeader) -> None:
        if self.state is not HaState.TRANSFER:
            raise RemoteProtocolError(f"a frame of the log in state {self.state.name}")
        if self._expected or header.log_offset != EMPTY_LOG:
            check_offset(header.log_offset, own_end=self._expected, file_bytes=self.file_bytes)
        self._learn_epoch(header)
        self._header = header

    def _learn_epoch(self, header: TransferHeader) -> None:
        label = Epoch(header.epoch, header.epoch_start)
        # Almost every frame is of the newest one, and there may be thousands.
        is_newest = bool(self._told) and label == self._told[-1]
        if label.epoch == NO_EPOCH or is_newest or label in self._told:
            return
        newest = self._told[-1] if self._told else Epoch(-1, label.start)
        is_after = label.epoch > newest.epoch and label.start >= newest.start
        # A master begins its epoch at its log's end, and we were not sent more than that.
        if not is_after or label.start < header.log_offset:
            raise RemoteProtocolError(
                f"a frame at {header.log_offset} of epoch {label.epoch} from {label.start} on, after "
                f"{epochs_text(self._told, most=_TOLD_EPOCHS)}"
            )
        if self._coming and self._coming[-1].start == label.start:
            self._coming.pop()
        self._told.append(label)
        self._coming.append(label)

    def _on_part(self, part: BodyPart) -> list[SlaveAction]:
        body = self._bodies.take(part)
        return [] if body is None else self._take_frame(body)

    def _take_frame(self, body: memoryview) -> list[SlaveAction]:
        """All of a frame is there."""
        assert self._header is not None
        actions: list[SlaveAction] = []
        if body:
            actions += self._append(self._header.log_offset, body)
        elif self._expected:
            actions += self._begin_reached(self._expected)
        confirmed_to = min(self._header.confirmed_to, self._expected)
        if confirmed_to > self._confirmed_to:
            self._confirmed_to = confirmed_to
            actions.append(ConfirmTo(confirmed_to))
        return actions

    def _append(self, log_offset: int, body: memoryview) -> list[SlaveAction]:
        """Append a body, cut where epochs begin."""
        if self._walk is None:
            self._walk = RecordWalk(log_offset, file_bytes=self.file_bytes)
        self._walk.feed(body)
        actions = self._begin_reached(log_offset)
        while body:
            part = body[: self._coming[0].start - log_offset] if self._coming else body
            actions.append(AppendLog(log_offset, part))
            log_offset += len(part)
            body = body[len(part) :]
            actions += self._begin_reached(log_offset)
        self._expected = log_offset
        self.master_log_end = max(self.master_log_end, log_offset)
        return actions

    def _begin_reached(self, log_end: int) -> list[SlaveAction]:
        """Write down the epoch that our log has reached; of those before it we have nothing."""
        reached: Epoch | None = None
        while self._coming and self._coming[0].start <= log_end:
            reached = self._coming.popleft()
        return [] if reached is None else [BeginEpoch(reached.epoch, reached.start)]

    def _close(self, kind: CloseKind, reason: str) -> list[SlaveAction]:
        self.state = HaState.READY
        return [CloseLink(kind, reason)]
