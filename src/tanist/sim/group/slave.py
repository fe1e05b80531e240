"""A replica in the duty of a slave: it calls its master again and again, and does what the link says."""

from collections import deque
from typing import TYPE_CHECKING

from tanist.broker.controlled.orders import SlaveOrder
from tanist.ha.actions import (
    AppendLog,
    BeginEpoch,
    CloseLink,
    ConfirmTo,
    FollowLog,
    SendBytes,
    SlaveAction,
    TruncateTo,
)
from tanist.ha.slave_link import SlaveLink, SlaveLog
from tanist.model.epochs import EpochHistory
from tanist.protocol.ha_hello import Refusal
from tanist.protocol.ha_link import AckKind
from tanist.sim.group.around import HEARTBEAT_S, KEYS, SILENCE_S
from tanist.sim.group.disk import FILE_BYTES
from tanist.sim.group.wires import WireEnd

if TYPE_CHECKING:
    from tanist.sim.group.replica import PlayedReplica

_TICK_S = 0.2
_PAUSE_S = (0.05, 0.4)


class SlaveDuty:
    """Follows one master in one epoch."""

    def __init__(self, replica: "PlayedReplica", order: SlaveOrder) -> None:
        self.replica = replica
        self.master_id = order.master_id
        self.epoch = order.epoch
        self.is_over = False
        self.end_of_wire: WireEnd | None = None
        self.link: SlaveLink | None = None
        self._read = b""
        self._is_flushing = False

    def begin(self) -> None:
        self._call()
        self._tick()

    def end(self) -> None:
        self.is_over = True
        self._drop()

    @property
    def is_transferring(self) -> bool:
        return self.link is not None and self.link.is_transferring

    def _call(self) -> None:
        """Connect anew, with a log that ends with a whole record and is as safe as its end acks."""
        replica = self.replica
        disk, around = replica.disk, replica.around
        if self.is_over:
            return
        if disk.note is not None:
            self._pause()
            return
        if (whole_to := disk.whole_to(disk.log_end)) < disk.log_end:
            replica.cut(whole_to)
            disk.finish_cut()
        if around.promise.is_durable:
            disk.flush(disk.log_end)
        log = SlaveLog(
            disk.incarnation,
            0,
            disk.log_end,
            FILE_BYTES,
            disk.crc_before,
            EpochHistory(disk.epochs.epochs),
            disk.whole_to(replica.confirmed_to),
        )
        self.link = around.machines.slave_link(
            KEYS,
            replica.broker_id,
            around.nonce(),
            log,
            around.promise.ack_kind,
            replica.now_s,
            HEARTBEAT_S,
            SILENCE_S,
            epoch=self.epoch,
        )
        self._read = b""
        self.end_of_wire = replica.call(self.master_id)
        self.end_of_wire.on_bytes = self._on_bytes
        self.end_of_wire.on_lost = self._on_lost
        self._do(self.link.on_connected())

    def _pause(self) -> None:
        self.replica.after(self.replica.around.chance.uniform(*_PAUSE_S), self._call)

    def _on_lost(self) -> None:
        self._drop()
        if not self.is_over:
            self._pause()

    def _drop(self) -> None:
        if self.link is not None:
            self.link.on_lost()
        if self.end_of_wire is not None:
            self.end_of_wire.close()
        self.link = self.end_of_wire = None

    def _on_bytes(self, data: bytes) -> None:
        self._read += data
        while self._read and self.link is not None:
            was_transferring = self.link.is_transferring
            actions, used = self.link.on_bytes(memoryview(self._read), now_s=self.replica.now_s)
            self._do(actions)
            self._read = self._read[used:]
            if not used or was_transferring:
                break
        self._ack()

    def _do(self, actions: list[SlaveAction]) -> None:
        replica, waiting = self.replica, deque(actions)
        while waiting:
            action, link = waiting.popleft(), self.link
            if link is None or self.end_of_wire is None:
                return
            match action:
                case SendBytes(data):
                    self.end_of_wire.send(data)
                case AppendLog() if replica.disk.is_full:
                    # Nothing of it is there: it is sent again on the next connection.
                    self._on_lost()
                case AppendLog(_, body):
                    link.on_appended(replica.disk.append(body))
                case FollowLog(incarnation):
                    replica.disk.incarnation = incarnation or replica.disk.incarnation
                case TruncateTo(log_offset):
                    self._cut(log_offset, link)
                case BeginEpoch(epoch, start):
                    replica.disk.begin_epoch(epoch, start)
                case ConfirmTo(confirmed_to):
                    replica.confirm(confirmed_to)
                case CloseLink(_, reason):
                    replica.tell(f"ends its link: {reason}")
                    self._rebuild(link)
                    self._on_lost()
                case _:
                    pass

    def _cut(self, log_offset: int, link: SlaveLink) -> None:
        """Begin to cut; when that is on the disk the link goes on, if it is still there."""
        replica = self.replica
        replica.cut(log_offset)

        def done() -> None:
            replica.disk.finish_cut()
            if self.link is link:
                self._do(link.on_truncated())

        replica.after(replica.around.flush_s(), done)

    def _rebuild(self, link: SlaveLink) -> None:
        """Have an operator do what a refusal asks for, where nothing was confirmed yet.

        The first master of all may lose what it has sent with its power, and is elected again: it is the only
        one in step.
        """
        replica = self.replica
        is_diverged = link.refusal is not None and link.refusal.reason is Refusal.DIVERGED_LOG
        if is_diverged and not replica.confirmed_to:
            replica.tell("is rebuilt by an operator")
            replica.cut(0)
            replica.disk.finish_cut()

    def _ack(self) -> None:
        link, replica = self.link, self.replica
        if link is None or not link.is_transferring:
            return
        if replica.around.promise.ack_kind is AckKind.RECEIVED:
            self._do(link.on_held(link.log_end, now_s=replica.now_s))
        elif not self._is_flushing and link.log_end > link.acked_to:
            self._is_flushing = True
            target = link.log_end
            replica.after(replica.around.flush_s(), lambda: self._on_flushed(target, link))

    def _on_flushed(self, target: int, link: SlaveLink) -> None:
        self._is_flushing = False
        self.replica.disk.flush(target)
        if self.link is link:
            self._do(link.on_held(target, now_s=self.replica.now_s))
        self._ack()

    def _tick(self) -> None:
        if self.is_over:
            return
        if self.link is not None:
            self._do(self.link.on_tick(now_s=self.replica.now_s))
        self.replica.after(_TICK_S, self._tick)
