"""What a SYNC_MASTER promises: a send is answered when enough replicas hold it. Pure.

                     enough usable replicas?
    wait --no--> SLAVE_NOT_AVAILABLE, at once
         --yes-> ... an ack reaches its end --> SUCCESS
                 ... slaveTimeout is over ----> FLUSH_SLAVE_TIMEOUT

The message stays in the master's log in each case. Only slaves that are connected now and that count are
believed, each of them once, and only about what lies behind the beginning of what they hold. A slave that is
lost meanwhile does not end the wait: it comes back soon.

With fewer replicas in step than ``minInSyncReplicas`` nothing is to be written at all: ``refusal``.

Under a controller there is the sync state set beside the slaves that are connected. With
``allAckInSyncStateSet`` a send waits until all of it hold the message, whoever is connected: a member that is
lost comes back or leaves the set, and either is soon known. Then ``minInSyncReplicas`` counts the set.

Whoever changes the table of replicas, by an ack or because one joined or left, or the sync state set, calls
``on_acked``.
"""

from tanist.ha.replicas import ReplicaTable
from tanist.ha.settings import HaSettings
from tanist.ha.sync_state import SyncState
from tanist.ha.waiters import Done, Waiters
from tanist.protocol.codes import ResponseCode


class DoubleWrite:
    """The sends of one master that wait for its slaves."""

    def __init__(self, replicas: ReplicaTable, settings: HaSettings) -> None:
        self.needed_acks = settings.in_sync_replicas - 1
        """How many slaves must hold a message; with 0 nothing waits."""
        self._least_in_step = settings.min_in_sync_replicas
        self._fallbehind_max_bytes = settings.ha_slave_fallbehind_max
        self._timeout_s = settings.slave_timeout / 1000
        self._replicas = replicas
        self._waiters = Waiters()
        self._is_all_ack = settings.all_ack_in_sync_state_set
        self._sync_state: SyncState | None = None
        # Kept between two changes of the table, for each send asks.
        self._usable_to = self._in_step_to = 0
        self.on_acked()

    def __len__(self) -> int:
        """How many sends wait."""
        return len(self._waiters)

    @property
    def next_deadline_s(self) -> float | None:
        """When to call ``on_tick`` next; None if nobody waits."""
        return self._waiters.next_deadline_s

    def follow(self, sync_state: SyncState | None) -> None:
        """An epoch of a master under a controller begins, or has ended: nobody waits over that."""
        self._waiters.give_up()
        self._sync_state = sync_state if self._is_all_ack else None
        self.on_acked()

    def refusal(self, log_end: int) -> str | None:
        """Why nothing may be written now, or None. RocketMQ's name for it is the first word."""
        if self._least_in_step == 1:
            return None
        if self._sync_state is not None:
            in_step = len(self._sync_state.members)
        elif log_end < self._in_step_to:
            return None
        else:
            in_step = 1 + self._replicas.usable_count(log_end)
        if in_step >= self._least_in_step:
            return None
        return (
            f"IN_SYNC_REPLICAS_NOT_ENOUGH: {in_step} of the {self._least_in_step} replicas that"
            " minInSyncReplicas asks for are in step; start a slave, or wait until one has caught up"
        )

    def wait(self, end: int, *, now_s: float, done: Done) -> None:
        """Have ``done`` told once what became of the send whose last byte is before ``end``."""
        if self._sync_state is not None:
            # What this master's own log had to reach it may have reached just now.
            self._waiters.on_confirmed(self._sync_state.confirmed_to)
            self._waiters.wait(end, deadline_s=now_s + self._timeout_s, done=done)
        elif not self.needed_acks:
            done(ResponseCode.SUCCESS)
        elif end >= self._usable_to or (
            end <= self._replicas.latest_start and not self._can_be_confirmed(end)
        ):
            done(ResponseCode.SLAVE_NOT_AVAILABLE)
        else:
            self._waiters.wait(end, deadline_s=now_s + self._timeout_s, done=done)

    def on_acked(self) -> None:
        """A replica acked more, joined or left: release the sends that enough of them hold now."""
        if self._sync_state is not None:
            self._waiters.on_confirmed(self._sync_state.confirmed_to)
            return
        acks = self._replicas.counted_acks()
        self._usable_to = self._usable_with(acks, self.needed_acks)
        self._in_step_to = self._usable_with(acks, self._least_in_step - 1)
        is_enough = 0 < self.needed_acks <= len(acks)
        while (first_end := self._waiters.first_end) is not None and first_end <= self._replicas.latest_start:
            if not self._can_be_confirmed(first_end):
                return
            self._waiters.on_confirmed(first_end)
        self._waiters.on_confirmed(acks[self.needed_acks - 1] if is_enough else 0)

    def on_tick(self, now_s: float) -> None:
        """Give up on the sends that have waited for ``slaveTimeout``."""
        self._waiters.on_tick(now_s)
        # They may have kept others from being released.
        self.on_acked()

    def give_up(self) -> None:
        """Give up on all: the master stops, or is about to cut its log."""
        self._waiters.give_up()

    def _can_be_confirmed(self, end: int) -> bool:
        """Whether acks tell of this send: a slave that began behind it never has it, whatever it acks."""
        return end > self._replicas.latest_start or self._replicas.holder_count(end) >= self.needed_acks

    def _usable_with(self, acks: list[int], count: int) -> int:
        """Up to which end of the log so many slaves are worth waiting for; 0 if there are not so many."""
        return acks[count - 1] + self._fallbehind_max_bytes if 0 < count <= len(acks) else 0
