"""Auto-switch replication: RocketMQ 5.1.1 and later with a controller.

    slave                                          master
      HANDSHAKE flags broker_id          ------->
                                         <-------  HANDSHAKE log_end epoch | epochs
      TRANSFER log_offset                ------->
                                         <-------  TRANSFER log_offset epoch ... | body
      TRANSFER log_offset                ------->  and so on; an empty body is a heartbeat

Each frame opens with the state of its sender. Here a handshake comes first or nothing is believed
(RocketMQ's master takes a report without one), and a wrong state is refused as soon as its bytes
are there, before the rest of the frame.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.epochs import Epoch
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_stream import MAX_BODY_BYTES, BodyPart, gather

# state
_STATE = struct.Struct(">i")
# state, sync_from_last_file, async_learner, broker_id
_SLAVE_HANDSHAKE = struct.Struct(">ihhq")
# state, log_offset
_SLAVE_REPORT = struct.Struct(">iq")
# state, body_bytes, log_end, epoch
_MASTER_HANDSHAKE = struct.Struct(">iiqi")
# epoch, start
_EPOCH = struct.Struct(">iq")
# state, body_bytes, log_offset, epoch, epoch_start, confirmed_to
_TRANSFER_HEADER = struct.Struct(">iiqiqq")
TRANSFER_HEADER_BYTES = _TRANSFER_HEADER.size

MAX_EPOCHS = (MAX_BODY_BYTES - _MASTER_HANDSHAKE.size) // _EPOCH.size
"""What a slave of RocketMQ can read, whose buffer holds the whole answer. (Its master sends 1000 at most.)"""

EMPTY_LOG = -1
"""The log offset in heartbeats of a master of RocketMQ whose log has no file yet."""
NO_EPOCH = -1
"""The epoch in a heartbeat that tells none: a slave of RocketMQ then writes none down."""


class HaState(IntEnum):
    """The state a frame opens with. Only two of them ever open one."""

    READY = 0
    HANDSHAKE = 1
    TRANSFER = 2
    SUSPEND = 3
    SHUTDOWN = 4


class SlaveHandshake(NamedTuple):
    """A slave says who it is. ``sync_from_last_file`` matters to an empty one only."""

    broker_id: int
    sync_from_last_file: bool = False
    async_learner: bool = False


class SlaveReport(NamedTuple):
    """How far a slave's log reaches."""

    log_offset: int


class MasterHandshake(NamedTuple):
    """What a slave needs to find where the two logs last agree. ``epoch`` is -1 while there is none."""

    log_end: LogOffset
    epoch: int
    epochs: tuple[Epoch, ...]


class TransferHeader(NamedTuple):
    """What the next ``size_bytes`` bytes are: the log from ``log_offset`` on.

    RocketMQ labels the last frame of an epoch with the *next* epoch, so go by ``epoch_start``, not
    by the frame's place. ``confirmed_to`` is -1 while the master knows none. In a heartbeat ``log_offset``
    may be EMPTY_LOG, and ``epoch`` NO_EPOCH.
    """

    log_offset: int
    size_bytes: int
    epoch: int
    epoch_start: LogOffset
    confirmed_to: int


def encode_slave_handshake(handshake: SlaveHandshake) -> bytes:
    """Send it in one write: RocketMQ's master misreads the id of one that arrives split after byte 12."""
    if handshake.broker_id < 0:
        raise LocalProtocolError(f"{handshake.broker_id} is no broker id")
    return _SLAVE_HANDSHAKE.pack(
        HaState.HANDSHAKE, handshake.sync_from_last_file, handshake.async_learner, handshake.broker_id
    )


def encode_slave_report(log_offset: int) -> bytes:
    if log_offset < 0:
        raise LocalProtocolError(f"a slave can not report log offset {log_offset}")
    return _SLAVE_REPORT.pack(HaState.TRANSFER, log_offset)


def encode_master_handshake(handshake: MasterHandshake) -> bytes:
    """A master with more than MAX_EPOCHS leaves the oldest out."""
    fault = _handshake_fault(handshake.log_end, handshake.epoch, handshake.epochs)
    if fault:
        raise LocalProtocolError(fault)
    body = b"".join(_EPOCH.pack(*entry) for entry in handshake.epochs)
    return _MASTER_HANDSHAKE.pack(HaState.HANDSHAKE, len(body), handshake.log_end, handshake.epoch) + body


def encode_transfer_header(header: TransferHeader) -> bytes:
    fault = _transfer_fault(header, MAX_BODY_BYTES)
    if fault:
        raise LocalProtocolError(fault)
    return _TRANSFER_HEADER.pack(
        HaState.TRANSFER,
        header.size_bytes,
        header.log_offset,
        header.epoch,
        header.epoch_start,
        header.confirmed_to,
    )


class SlaveFrameDecoder:
    """What a master hears: handshakes (a slave repeats its own until it is answered), then reports only."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._allowed: tuple[HaState, ...] = (HaState.HANDSHAKE,)

    def feed(self, data: bytes | memoryview) -> list[SlaveHandshake | SlaveReport]:
        events: list[SlaveHandshake | SlaveReport] = []
        view = memoryview(data)
        while view:
            view = gather(self._held, view, _STATE.size)
            state = _opening_state(self._held, self._allowed)
            if state is None:
                break
            is_handshake = state is HaState.HANDSHAKE
            frame_bytes = _SLAVE_HANDSHAKE.size if is_handshake else _SLAVE_REPORT.size
            view = gather(self._held, view, frame_bytes)
            if len(self._held) == frame_bytes:
                events.append(self._take_handshake() if is_handshake else self._take_report())
                self._held.clear()
        return events

    def _take_handshake(self) -> SlaveHandshake:
        _, sync_from_last_file, async_learner, broker_id = _SLAVE_HANDSHAKE.unpack(self._held)
        if sync_from_last_file not in (0, 1) or async_learner not in (0, 1) or broker_id < 0:
            raise RemoteProtocolError(
                f"a handshake with flags {sync_from_last_file}, {async_learner} and broker id {broker_id}"
            )
        self._allowed = (HaState.HANDSHAKE, HaState.TRANSFER)
        return SlaveHandshake(broker_id, bool(sync_from_last_file), bool(async_learner))

    def _take_report(self) -> SlaveReport:
        _, log_offset = _SLAVE_REPORT.unpack(self._held)
        self._allowed = (HaState.TRANSFER,)
        return SlaveReport(log_offset)


class MasterFrameDecoder:
    """What a slave hears: one handshake or more (one for each it sent), then the log."""

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_body_bytes = max_body_bytes
        self._held = bytearray()
        self._body_left = 0
        self._allowed: tuple[HaState, ...] = (HaState.HANDSHAKE,)

    def feed(self, data: bytes | memoryview) -> list[MasterHandshake | TransferHeader | BodyPart]:
        """Everything that ``data`` completes, in order. The parts are views of ``data``."""
        events: list[MasterHandshake | TransferHeader | BodyPart] = []
        view = memoryview(data)
        while view:
            if self._body_left:
                part, view = view[: self._body_left], view[self._body_left :]
                self._body_left -= len(part)
                events.append(BodyPart(part, is_last=not self._body_left))
                continue
            view = gather(self._held, view, _STATE.size)
            state = _opening_state(self._held, self._allowed)
            if state is None:
                break
            is_handshake = state is HaState.HANDSHAKE
            event, view = self._gather_handshake(view) if is_handshake else self._gather_header(view)
            if event is not None:
                events.append(event)
                self._held.clear()
        return events

    def _gather_handshake(self, view: memoryview) -> tuple[MasterHandshake | None, memoryview]:
        view = gather(self._held, view, _MASTER_HANDSHAKE.size)
        if len(self._held) < _MASTER_HANDSHAKE.size:
            return None, view
        _, body_bytes, log_end, epoch = _MASTER_HANDSHAKE.unpack_from(self._held)
        if not 0 <= body_bytes <= MAX_EPOCHS * _EPOCH.size or body_bytes % _EPOCH.size:
            raise RemoteProtocolError(f"a handshake with {body_bytes} bytes of epochs")
        view = gather(self._held, view, _MASTER_HANDSHAKE.size + body_bytes)
        if len(self._held) < _MASTER_HANDSHAKE.size + body_bytes:
            return None, view
        entries = tuple(map(Epoch._make, _EPOCH.iter_unpack(self._held[_MASTER_HANDSHAKE.size :])))
        fault = _handshake_fault(log_end, epoch, entries)
        if fault:
            raise RemoteProtocolError(fault)
        self._allowed = (HaState.HANDSHAKE, HaState.TRANSFER)
        return MasterHandshake(LogOffset(log_end), epoch, entries), view

    def _gather_header(self, view: memoryview) -> tuple[TransferHeader | None, memoryview]:
        view = gather(self._held, view, _TRANSFER_HEADER.size)
        if len(self._held) < _TRANSFER_HEADER.size:
            return None, view
        _, size_bytes, log_offset, epoch, epoch_start, confirmed_to = _TRANSFER_HEADER.unpack(self._held)
        header = TransferHeader(log_offset, size_bytes, epoch, LogOffset(epoch_start), confirmed_to)
        fault = _transfer_fault(header, self._max_body_bytes)
        if fault:
            raise RemoteProtocolError(fault)
        self._allowed = (HaState.TRANSFER,)
        self._body_left = size_bytes
        return header, view


def _opening_state(held: bytearray, allowed: Sequence[HaState]) -> HaState | None:
    """The state that a frame opens with, None while its bytes may still become an allowed one."""
    opening = bytes(held[: _STATE.size])
    for state in allowed:
        if _STATE.pack(state).startswith(opening):
            return state if len(opening) == _STATE.size else None
    due = " or ".join(state.name for state in allowed)
    raise RemoteProtocolError(f"a frame opens with {opening.hex()}; state {due} was due")


def _handshake_fault(log_end: int, epoch: int, epochs: Sequence[Epoch]) -> str | None:
    if log_end < 0 or epoch < -1 or len(epochs) > MAX_EPOCHS:
        return f"a handshake with log end {log_end}, epoch {epoch} and {len(epochs)} epochs"
    if epochs and (epochs[0].epoch < 0 or epochs[0].start < 0):
        return f"a handshake whose first epoch is {epochs[0]}"
    # Those that begin where the next one does wrote nothing.
    if any(older.epoch >= newer.epoch or older.start > newer.start for older, newer in pairwise(epochs)):
        return "a handshake whose epochs do not rise"
    return None


def _transfer_fault(header: TransferHeader, max_body_bytes: int) -> str | None:
    if not 0 <= header.size_bytes <= max_body_bytes:
        return f"a frame of {header.size_bytes} bytes; at most {max_body_bytes} are taken"
    least_offset, least_epoch = (0, 0) if header.size_bytes else (EMPTY_LOG, NO_EPOCH)
    is_negative = header.log_offset < least_offset or header.epoch < least_epoch
    if is_negative or header.epoch_start < 0 or header.confirmed_to < -1:
        return f"a frame with a negative field: {header}"
    return None
