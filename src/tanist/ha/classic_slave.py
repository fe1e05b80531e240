"""A master of RocketMQ, as its slave sees it.

    REPORTED --first frame--> TRANSFER
        any state --a frame that can not follow, silence--> CLOSED

Pure. follower.py owns the socket. The slave says at once where its log ends, and the master sends frames from
there on. A frame is taken when all of it is there, and only at our own end; what came in one read is acked by
one report. A heartbeat is checked like any other frame, and nothing of it goes to the log.
"""

from dataclasses import dataclass, field
from enum import Enum

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import AppendLog, CloseKind, CloseLink, FollowLog, SendBytes, SlaveAction
from tanist.ha.link_times import LinkTimes
from tanist.ha.record_walk import RecordWalk
from tanist.ha.rocketmq_frames import WholeBodies, WrongOffset, check_offset
from tanist.protocol.ha_classic import TransferDecoder, TransferHeader, encode_report
from tanist.protocol.ha_link import AckKind
from tanist.protocol.ha_stream import BodyPart


class ClassicState(Enum):
    REPORTED = "reported"
    TRANSFER = "transfer"
    CLOSED = "closed"


@dataclass(slots=True)
class ClassicSlaveLink:
    """The slave's end of one link to a master of RocketMQ."""

    log_end: int
    walk: RecordWalk | None
    """Over the records of our log, up to its end; None if there are none."""
    file_bytes: int
    ack_kind: AckKind
    now_s: float
    heartbeat_s: float
    silence_s: float
    state: ClassicState = field(default=ClassicState.REPORTED, init=False)
    master_log_end: int = field(init=False)
    acked_to: int = field(init=False)
    _frame_offset: int = field(init=False)
    """Where the frame goes that is coming in, or the next one."""
    _bodies: WholeBodies = field(default_factory=WholeBodies, init=False)
    _decoder: TransferDecoder = field(default_factory=TransferDecoder, init=False)
    _times: LinkTimes = field(init=False)

    def __post_init__(self) -> None:
        self._times = LinkTimes(self.now_s, self.heartbeat_s, self.silence_s)
        self.acked_to = self.master_log_end = self._frame_offset = self.log_end

    @property
    def is_transferring(self) -> bool:
        return self.state is ClassicState.TRANSFER

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        return self._times.next_tick_s

    def on_connected(self) -> list[SlaveAction]:
        """The master's port has answered: say from where on it is to send."""
        return [SendBytes(encode_report(self.log_end))]

    def on_bytes(self, view: memoryview, *, now_s: float) -> tuple[list[SlaveAction], int]:
        """What to do about what came, and how much of it is used up."""
        self._times.read_s = now_s
        actions: list[SlaveAction] = []
        if self.state is not ClassicState.CLOSED:
            try:
                for event in self._decoder.feed(view):
                    if isinstance(event, TransferHeader):
                        actions += self._on_header(event)
                    else:
                        actions += self._on_part(event)
            except WrongOffset as error:
                actions += self._close(CloseKind.WRONG_OFFSET, str(error))
            except RemoteProtocolError as error:
                actions += self._close(CloseKind.BAD_FRAME, str(error))
        return actions, len(view)

    def on_appended(self, log_end: int) -> None:
        """The bytes that were last to be appended are."""
        self.log_end = log_end

    def on_truncated(self) -> list[SlaveAction]:
        """With fixed roles nothing is ever cut."""
        raise AssertionError("no cut was asked for")

    def on_held(self, held_to: int, *, now_s: float) -> list[SlaveAction]:
        """As much as acks promise is ours up to here: report it, if it is more than was reported."""
        if self.state is ClassicState.CLOSED or held_to <= self.acked_to:
            return []
        self.acked_to = held_to
        self._times.written_s = now_s
        return [SendBytes(encode_report(held_to))]

    def on_tick(self, *, now_s: float) -> list[SlaveAction]:
        """Some time has passed."""
        if self.state is ClassicState.CLOSED:
            return []
        if (silent_ms := self._times.silent_ms(now_s)) is not None:
            return self._close(CloseKind.SILENT, f"the master did not respond for {silent_ms:.0f} ms")
        if self._times.take_heartbeat(now_s):
            return [SendBytes(encode_report(self.acked_to))]
        return []

    def on_lost(self) -> None:
        """The connection is gone."""
        self.state = ClassicState.CLOSED

    def _on_header(self, header: TransferHeader) -> list[SlaveAction]:
        check_offset(header.log_offset, own_end=self._frame_offset, file_bytes=self.file_bytes)
        if header.size_bytes:
            self._frame_offset = header.log_offset
        if self.state is ClassicState.TRANSFER:
            return []
        self.state = ClassicState.TRANSFER
        return [FollowLog(None)]

    def _on_part(self, part: BodyPart) -> list[SlaveAction]:
        body = self._bodies.take(part)
        if body is None:
            return []
        log_offset = self._frame_offset
        if self.walk is None:
            self.walk = RecordWalk(log_offset, file_bytes=self.file_bytes)
        self.walk.feed(body)
        self._frame_offset += len(body)
        self.master_log_end = self._frame_offset
        return [AppendLog(log_offset, body)]

    def _close(self, kind: CloseKind, reason: str) -> list[SlaveAction]:
        self.state = ClassicState.CLOSED
        return [CloseLink(kind, reason)]
