"""A replica in the duty of a master: its links, who is in step, and what it acknowledges."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tanist.broker.controlled.orders import MasterOrder, SetOrder
from tanist.ha.actions import CloseLink, MasterAction, NewerEpoch, SendBytes, StartTransfer, TakeAck
from tanist.ha.admission import MasterLog
from tanist.ha.crcs import Crcs
from tanist.ha.epoch_log import EpochLog
from tanist.ha.master_link import MasterLink
from tanist.ha.sync_state import Propose
from tanist.sim.broken import Broken
from tanist.sim.group.around import HEARTBEAT_S, KEYS, SILENCE_S
from tanist.sim.group.disk import FILE_BYTES
from tanist.sim.group.wires import WireEnd

if TYPE_CHECKING:
    from tanist.sim.group.replica import PlayedReplica

_TICK_S = 0.15
_MAX_BEHIND_S = 1.0
_MAX_WAITING = 100


@dataclass(eq=False, slots=True)
class _Slave:
    """One connection that was made to this master."""

    end: WireEnd
    link: MasterLink
    broker_id: int | None = None


class MasterDuty:
    """One reign."""

    def __init__(self, replica: "PlayedReplica", order: MasterOrder) -> None:
        machines, epoch = replica.around.machines, order.epoch
        self.replica = replica
        self.epoch = epoch
        self.is_over = False
        self.slaves: list[_Slave] = []
        self.waiting: list[tuple[int, bytes]] = []
        """The sends that have no answer yet: where each record lies, and its bytes."""
        self.acked_s = 0.0
        """When it last acknowledged a message, on the world's clock."""
        self._joined: dict[int, _Slave] = {}
        self._is_flushing = False
        self.state = machines.sync_state(
            replica.broker_id,
            epoch=epoch,
            epoch_start=replica.disk.log_end,
            members=order.sync_state_set,
            set_epoch=order.set_epoch,
            confirmed_to=replica.confirmed_to,
            max_behind_s=_MAX_BEHIND_S,
            now_s=replica.now_s,
        )
        self.lease = machines.lease(epoch, now_s=replica.now_s)
        self.right = machines.ack_right(self.lease, self.state)

    def begin(self) -> None:
        self._settle()
        self._tick()

    def end(self) -> None:
        """The reign is over: nothing is acknowledged any more, and the slaves are sent away."""
        self.is_over = True
        for slave in self.slaves:
            slave.end.close()

    @property
    def is_in_step(self) -> bool:
        """Whether every replica is in the set and has all there is."""
        state = self.state
        return state.members == state.counted and state.confirmed_to == self.replica.disk.log_end

    # Producers

    def take(self, make_record: Callable[[int], bytes]) -> None:
        """A producer sends a message."""
        replica = self.replica
        if self.right.refusal(replica.now_s) is not None or len(self.waiting) >= _MAX_WAITING:
            return
        if replica.disk.is_full:
            return
        place = replica.disk.log_end
        record = make_record(place)
        replica.disk.append(record)
        self.waiting.append((place, record))
        self._settle()
        for slave in self.slaves:
            self._push(slave)

    def _acknowledge(self) -> None:
        replica, state, rules = self.replica, self.state, self.replica.around.rules
        kept: list[tuple[int, bytes]] = []
        for place, record in self.waiting:
            end = place + len(record)
            if end > self._safe_to:
                kept.append((place, record))
            elif self.right.may_acknowledge(end, replica.now_s):
                others = sorted(self._joined)
                rules.on_acknowledged(
                    replica.broker_id,
                    place,
                    record,
                    confirmed_to=state.confirmed_to,
                    others=others,
                    epoch=self.epoch,
                )
                replica.ack_count += 1
                self.acked_s = replica.around.clockwork.now_s
        self.waiting = kept

    @property
    def _safe_to(self) -> int:
        """Up to where as many hold the log as a send waits for."""
        if self.replica.around.promise.waits_for_all:
            return self.state.confirmed_to
        furthest = max((slave.link.acked_to for slave in self._joined.values()), default=0)
        return max(self.state.confirmed_to, min(furthest, self.replica.held_to))

    # Slaves

    def on_call(self, end: WireEnd) -> None:
        """Somebody connects."""
        replica = self.replica
        epoch_log = EpochLog(
            self.epoch, lambda: replica.disk.epochs, lambda: self.state.confirmed_to, replica.broker_id
        )
        link = replica.around.machines.master_link(
            KEYS, replica.around.nonce(), self._look, replica.now_s, HEARTBEAT_S, SILENCE_S, epoch_log
        )
        slave = _Slave(end, link)
        self.slaves.append(slave)
        end.on_bytes = lambda data: self._do(slave, link.on_bytes(data, now_s=replica.now_s))
        end.on_lost = lambda: self._forget(slave)

    def _look(self) -> MasterLog:
        disk = self.replica.disk
        return MasterLog(disk.incarnation, 0, disk.log_end, FILE_BYTES, False, disk.crc_before)

    def _do(self, slave: _Slave, actions: list[MasterAction]) -> None:
        if self.is_over:
            return
        for action in actions:
            match action:
                case SendBytes(data):
                    slave.end.send(data)
                case StartTransfer(_, _, broker_id):
                    assert broker_id is not None
                    self._join(slave, broker_id)
                case TakeAck(acked_to):
                    if slave.broker_id is not None and self._joined.get(slave.broker_id) is slave:
                        self._ask(
                            self.state.on_ack(
                                slave.broker_id,
                                acked_to,
                                log_end=self.replica.disk.log_end,
                                now_s=self.replica.now_s,
                            )
                        )
                        self._settle()
                case NewerEpoch():
                    self.replica.hint()
                case CloseLink():
                    slave.end.close()
                    self._forget(slave)
                case _:
                    pass
        self._push(slave)

    def _join(self, slave: _Slave, broker_id: int) -> None:
        if slave.end.is_stranger:
            raise Broken(f"S8: master {self.replica.broker_id} lets a stranger in as {broker_id}")
        slave.broker_id = broker_id
        older = self._joined.get(broker_id)
        self._joined[broker_id] = slave
        if older is not None:
            older.end.close()
            self._forget(older)
        log_end, now_s = self.replica.disk.log_end, self.replica.now_s
        self._ask(self.state.on_joined(broker_id, acked_to=slave.link.acked_to, log_end=log_end, now_s=now_s))
        self._settle()

    def _forget(self, slave: _Slave) -> None:
        slave.link.on_lost()
        if slave in self.slaves:
            self.slaves.remove(slave)
        if slave.broker_id is not None and self._joined.get(slave.broker_id) is slave:
            del self._joined[slave.broker_id]
            if not self.is_over:
                self._ask(self.state.on_left(slave.broker_id, now_s=self.replica.now_s))
                self._settle()

    def _push(self, slave: _Slave) -> None:
        """Send what of the log was not sent yet."""
        link, disk = slave.link, self.replica.disk
        while link.is_transferring and link.sent_to < disk.log_end and slave.end.is_open:
            at = link.sent_to
            body = bytes(disk.log[at : at + link.max_body_bytes])
            header = link.header(at, body, log_end=disk.log_end, crcs=Crcs())
            link.on_sent(at + len(body), now_s=self.replica.now_s)
            slave.end.send(header + body)

    # The set, and what follows from it

    def on_set(self, order: SetOrder) -> None:
        self._ask(self.state.on_set_told(order.sync_state_set, order.set_epoch, now_s=self.replica.now_s))
        self._settle()

    def on_set_taken(self, members: frozenset[int], set_epoch: int) -> None:
        """The controller took what was proposed."""
        if not self.is_over:
            self._ask(self.state.on_answer(members, set_epoch, now_s=self.replica.now_s))
            self._settle()

    def on_set_refused(self, code: int, told: tuple[frozenset[int], int] | None, proposal: Propose) -> None:
        """It did not; which set it has, if it told, comes first: an earlier try may have been taken."""
        state, now_s = self.state, self.replica.now_s
        if self.is_over:
            return
        if told is None:
            state.on_unanswered(now_s=now_s)
        else:
            self._ask(state.on_set_told(*told, now_s=now_s))
            if state.set_epoch == proposal.set_epoch:
                state.on_refused(code, now_s=now_s)
            else:
                self._ask(state.on_answer(state.members, state.set_epoch, now_s=now_s))
        self._settle()

    def on_set_unanswered(self) -> None:
        if not self.is_over:
            self.state.on_unanswered(now_s=self.replica.now_s)
            self._settle()

    def _ask(self, proposal: Propose | None) -> None:
        if proposal is not None:
            self.replica.propose(self, proposal)

    def _settle(self) -> None:
        """See how far our own log reaches, what is confirmed by that, and whom to tell."""
        replica, state = self.replica, self.state
        state.on_held(replica.held_to)
        if replica.held_to < replica.disk.log_end and not self._is_flushing:
            self._is_flushing = True
            target = replica.disk.log_end
            replica.after(replica.around.flush_s(), lambda: self._on_flushed(target))
        rules = replica.around.rules
        rules.on_confirmed(replica.broker_id, self.epoch, state.confirmed_to, state.counted)
        replica.confirm(state.confirmed_to)
        self._acknowledge()

    def _on_flushed(self, target: int) -> None:
        self._is_flushing = False
        self.replica.disk.flush(target)
        if not self.is_over:
            self._settle()

    def _tick(self) -> None:
        if self.is_over:
            return
        log_end, now_s = self.replica.disk.log_end, self.replica.now_s
        for slave in list(self.slaves):
            self._do(slave, slave.link.on_tick(log_end=log_end, now_s=now_s))
        self._ask(self.state.on_tick(log_end=log_end, now_s=now_s))
        self._settle()
        self.replica.after(_TICK_S, self._tick)
