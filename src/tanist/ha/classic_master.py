"""One slave of RocketMQ, as its master sees it.

    REPORT --first report, its log may be ours--> TRANSFER
        any state --what can not be true, silence--> CLOSED

Pure. acceptor.py owns the socket. Such a slave proves nothing: it says a number of 8 bytes, where its log
ends, and says it again and again. So the number is held against what the log has and then against what this
connection was sent. Before the first report that may be true no byte of the log is sent. In TRANSFER,
acked_to <= sent_to <= the log's end, and acked_to never goes back.
"""

from dataclasses import dataclass, field
from enum import Enum

from tanist.ha.actions import CloseKind, CloseLink, MasterAction, SendBytes, StartTransfer, TakeAck
from tanist.ha.classic_frames import FrameCuts, Log, ack_fault
from tanist.ha.crcs import Crcs
from tanist.ha.link_times import LinkTimes
from tanist.ha.replicas import Dialect
from tanist.protocol.ha_classic import TRANSFER_HEADER_BYTES, ReportDecoder, encode_transfer_header
from tanist.protocol.ha_link import AckKind


class ClassicState(Enum):
    REPORT = "report"
    TRANSFER = "transfer"
    CLOSED = "closed"


@dataclass(slots=True)
class ClassicMasterLink:
    """The master's end of one link to a slave of RocketMQ."""

    log: Log
    first_for_empty: int
    """Where a slave begins that has nothing."""
    batch_bytes: int
    """The largest body of a frame."""
    now_s: float
    heartbeat_s: float
    silence_s: float
    dialect: Dialect = field(default=Dialect.CLASSIC, init=False)
    state: ClassicState = field(default=ClassicState.REPORT, init=False)
    acked_to: int = field(default=0, init=False)
    sent_from: int = field(default=0, init=False)
    sent_to: int = field(default=0, init=False)
    _reports: ReportDecoder = field(default_factory=ReportDecoder, init=False)
    _cuts: FrameCuts = field(init=False)
    _times: LinkTimes = field(init=False)

    def __post_init__(self) -> None:
        self._cuts = FrameCuts.of(self.log, self.batch_bytes, header_bytes=TRANSFER_HEADER_BYTES)
        self.batch_bytes = self._cuts.batch_bytes
        self._times = LinkTimes(self.now_s, self.heartbeat_s, self.silence_s)

    @property
    def is_transferring(self) -> bool:
        return self.state is ClassicState.TRANSFER

    @property
    def max_body_bytes(self) -> int:
        """The most that the next frame carries."""
        return self._cuts.next_bytes(self.sent_to)

    @property
    def next_tick_s(self) -> float:
        """When ``on_tick`` has something to do."""
        if self.is_transferring:
            return self._times.next_tick_s
        return self.now_s + self.silence_s

    def on_bytes(self, data: bytes, *, now_s: float) -> list[MasterAction]:
        """The slave sent something. Of several reports the newest counts."""
        self._times.read_s = now_s
        report = self._reports.feed(data)
        match self.state:
            case ClassicState.REPORT if report is not None:
                return self._on_first_report(report, now_s=now_s)
            case ClassicState.TRANSFER if report is not None:
                return self._on_ack(report)
            case _:
                return []

    def header(self, log_offset: int, body: bytes | memoryview, *, log_end: int, crcs: Crcs) -> bytes:  # noqa: ARG002
        """What goes before these bytes of the log."""
        return encode_transfer_header(log_offset, len(body))

    def on_sent(self, log_end: int, *, now_s: float) -> None:
        """The log was sent up to here."""
        assert self.state is ClassicState.TRANSFER
        assert log_end >= self.sent_to
        self._cuts.on_sent(self.sent_to, log_end)
        self.sent_to = log_end
        self._times.written_s = now_s

    def on_tick(self, *, log_end: int, now_s: float) -> list[MasterAction]:  # noqa: ARG002
        """Some time has passed."""
        match self.state:
            case ClassicState.REPORT:
                if now_s - self.now_s >= self.silence_s:
                    return self._close(CloseKind.TOO_SLOW, f"no report within {self.silence_s:.0f} s")
            case ClassicState.TRANSFER:
                if (silent_ms := self._times.silent_ms(now_s)) is not None:
                    return self._close(CloseKind.SILENT, f"nothing came for {silent_ms:.0f} ms")
                if self._times.take_heartbeat(now_s):
                    return [SendBytes(encode_transfer_header(self.sent_to, 0))]
            case ClassicState.CLOSED:
                pass
        return []

    def on_lost(self) -> None:
        """The connection is gone."""
        self.state = ClassicState.CLOSED

    def _on_first_report(self, report: int, *, now_s: float) -> list[MasterAction]:
        refusal = self._refusal(report)
        if refusal is not None:
            return self._close(CloseKind.REFUSED, f"its first report is {report}, {refusal}")
        self.state = ClassicState.TRANSFER
        self.acked_to = report
        self.sent_from = self.sent_to = report or self.first_for_empty
        self._times.written_s = now_s
        # It acks what it has in memory.
        held_from = 0 if report else self.sent_from
        return [StartTransfer(self.sent_from, report, None, AckKind.RECEIVED, held_from=held_from)]

    def _refusal(self, report: int) -> str | None:
        """Why no copy of this log can end there; None if one can."""
        log_end = self.log.log_end
        beyond = f"and this log ends at {log_end}: it is no copy of this one"
        return self._cuts.start_at(report, log_end=log_end, beyond=beyond)

    def _on_ack(self, acked_to: int) -> list[MasterAction]:
        if acked_to == self.acked_to:
            return []
        fault = ack_fault(acked_to, before=self.acked_to, sent_from=self.sent_from, sent_to=self.sent_to)
        if fault is not None:
            return self._close(CloseKind.IMPOSSIBLE_ACK, fault)
        self.acked_to = acked_to
        return [TakeAck(acked_to)]

    def _close(self, kind: CloseKind, reason: str) -> list[MasterAction]:
        self.state = ClassicState.CLOSED
        return [CloseLink(kind, reason)]
