"""All that concerns one queue: what lies where, in which order it came, who read it, what is left in the end.

Takes the queue's events, and all faults, by their time. What an offset held is remembered for good: an offset
that ever had one value has it for ever, on every replica and in every read. Redelivery is judged against what
was in flight: a message that a group has read and not yet acknowledged may come again if something was broken
meanwhile, or the queue changed hands; any other may not.
"""

from bisect import bisect_right
from itertools import pairwise

from tanist.check.history import (
    Acked,
    Asked,
    Assigned,
    Ended,
    Event,
    Fault,
    Held,
    Log,
    Outcome,
    Read,
    Summed,
    Waited,
)
from tanist.check.verdict import Kind, Verdict

SETTLE_US = 5_000_000
"""So long after a fault members of a group may not know of each other yet, and two may have a queue."""

NO_FINAL_LOG = "what was lost: the history has no final log of a master"


class _Group:
    """How far one group is with the queue."""

    __slots__ = ("acked", "holder", "in_flight", "last_read", "may_come_again", "read")

    def __init__(self) -> None:
        self.holder = ""
        """The consumer that was the last to be given the queue."""
        self.read: set[int] = set()
        self.in_flight: set[int] = set()
        self.may_come_again: set[int] = set()
        self.acked: list[tuple[int, int]] = []
        """When the group's offset was confirmed to be where; both rise."""
        self.last_read: dict[str, int] = {}
        """By consumer, since the queue became its own."""

    @property
    def acked_to(self) -> int:
        return self.acked[-1][1] if self.acked else 0

    def forget(self, since_us: int) -> None:
        """What was confirmed since then is not known any more."""
        while self.acked and self.acked[-1][0] > since_us:
            self.acked.pop()
        self.in_flight = {offset for offset in self.read if offset >= self.acked_to}


class _Replica:
    """What a replica holds at the end."""

    __slots__ = ("end", "first", "held", "is_master")

    def __init__(self) -> None:
        self.first, self.end, self.is_master = 0, -1, False
        self.held: dict[int, str] = {}


class QueueJudge:
    """Judges one queue."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._verdict = Verdict()
        self._verdict.counts.queues = 1
        self._values: dict[int, str] = {}
        self._acknowledged: dict[int, str] = {}
        self._last_sent: dict[str, int] = {}
        self._ends: list[tuple[int, int]] = []
        """When the acknowledged end came to be where; both rise."""
        self._groups: dict[str, _Group] = {}
        self._replicas: dict[str, _Replica] = {}
        self._sums: dict[int, Summed] = {}
        """By its first byte, what was the first to be said of a part of the log."""
        self._faults: set[str] = set()
        self._healed_us: int | None = None
        self._waited: set[str] = set()
        """The groups that had time to read all."""

    def on_event(self, event: Event) -> None:
        """Take the next event of the queue, or a fault."""
        match event:
            case Ended():
                if event.outcome is Outcome.OK:
                    self._on_sent(event)
            case Read():
                self._on_read(event)
            case Acked():
                self._on_acked(event)
            case Assigned():
                group = self._group(event.group)
                group.last_read.pop(event.process, None)
                group.holder = event.process
                group.may_come_again |= group.in_flight
            case Asked():
                self._on_asked(event)
            case Fault():
                self._on_fault(event)
            case Waited():
                self._waited.add(event.group)
            case Log():
                replica = self._replica(event.replica)
                replica.first, replica.end, replica.is_master = event.first, event.end, event.is_master
            case Held():
                self._replica(event.replica).held[event.offset] = event.value
                self._lies_at(event.offset, event.value, f"replica {event.replica}")
            case Summed():
                self._on_summed(event)
            case _:
                pass

    def verdict(self) -> Verdict:
        """What is wrong with the queue, now that all of its events are known."""
        if self._sums:
            # A log is no queue: there is nothing else to be said of it.
            self._verdict.counts.queues = 0
            return self._verdict
        master = next((replica for replica in self._replicas.values() if replica.is_master), None)
        if master is None:
            self._verdict.unjudged.append(NO_FINAL_LOG)
        else:
            self._judge_losses(master)
            self._judge_replicas(master)
            for name in self._waited:
                self._judge_rest(name, self._group(name), master)
        for name, group in self._groups.items():
            self._judge_skips(name, group, 0 if master is None else master.first)
        return self._verdict

    def _on_sent(self, event: Ended) -> None:
        self._lies_at(event.offset, event.value, f"its ack to {event.process}")
        self._acknowledged[event.offset] = event.value
        last = self._last_sent.get(event.process, -1)
        if event.offset <= last:
            self._found(
                Kind.ORDER_OF_SENDS, event.offset, f"{event.process} had an ack for offset {last} before it"
            )
        self._last_sent[event.process] = max(last, event.offset)
        end = event.offset + 1
        if not self._ends or end > self._ends[-1][1]:
            self._ends.append((event.at_us, end))

    def _on_read(self, event: Read) -> None:
        self._verdict.counts.read += 1
        self._lies_at(event.offset, event.value, f"a read of {event.process}")
        group = self._group(event.group)
        last = group.last_read.get(event.process, -1)
        if event.offset in group.read:
            self._came_again(group, event)
        elif event.offset <= last:
            self._found(Kind.ORDER_OF_READS, event.offset, f"{event.process} had offset {last} before it")
        group.last_read[event.process] = event.offset
        group.read.add(event.offset)
        group.in_flight.add(event.offset)
        if self._faults:
            group.may_come_again.add(event.offset)

    def _came_again(self, group: _Group, event: Read) -> None:
        if event.offset in group.may_come_again:
            group.may_come_again.discard(event.offset)
            self._verdict.counts.read_again += 1
            return
        why = (
            f"the group's offset was {group.acked_to}"
            if event.offset < group.acked_to
            else "nothing was broken and the queue did not change hands"
        )
        self._found(Kind.DELIVERED_TWICE, event.offset, f"group {event.group} has it again, though {why}")

    def _on_acked(self, event: Acked) -> None:
        group = self._group(event.group)
        if event.up_to > group.acked_to:
            group.acked.append((event.at_us, event.up_to))
            group.in_flight = {offset for offset in group.in_flight if offset >= event.up_to}
            if self._is_settled(event.at_us) and group.holder in ("", event.process):
                # While something is broken, and until one that lost the queue has heard so, two may have it,
                # and not know of each other's acks.
                group.may_come_again = {offset for offset in group.may_come_again if offset >= event.up_to}

    def _is_settled(self, at_us: int) -> bool:
        return not self._faults and (self._healed_us is None or at_us >= self._healed_us + SETTLE_US)

    def _on_asked(self, event: Asked) -> None:
        # Only what was acknowledged before the question was asked has to be in the answer.
        known = bisect_right(self._ends, event.began_us, key=lambda known: known[0])
        if known and event.end < self._ends[known - 1][1]:
            end = self._ends[known - 1][1]
            self._found(
                Kind.STALE,
                event.end,
                f"{event.process} was told that this is the end, after an ack up to {end}",
            )

    def _on_summed(self, event: Summed) -> None:
        known = self._sums.setdefault(event.first, event)
        if (known.end, known.crc) != (event.end, event.crc):
            self._found(
                Kind.DIFFERS,
                event.first,
                f"the bytes up to {event.end} of {event.replica} have the checksum {event.crc:08x}, "
                f"those up to {known.end} of {known.replica} {known.crc:08x}",
            )

    def _on_fault(self, event: Fault) -> None:
        if event.is_over:
            self._faults.discard(event.name)
            self._healed_us = event.at_us
        else:
            self._verdict.counts.faults += 1
            self._faults.add(event.name)
        for group in self._groups.values():
            if event.forgets_us:
                group.forget(event.at_us - event.forgets_us)
            group.may_come_again |= group.in_flight

    def _judge_losses(self, master: _Replica) -> None:
        for offset, value in self._acknowledged.items():
            if offset < master.first or master.held.get(offset) == value:
                continue
            if offset >= master.end:
                self._found(
                    Kind.LOST, offset, f"{value} was acknowledged, and the final log ends at {master.end}"
                )
            else:
                held = master.held.get(offset, "nothing")
                self._found(
                    Kind.LOST_IN_THE_MIDDLE, offset, f"{value} was acknowledged, the final log has {held}"
                )

    def _judge_replicas(self, master: _Replica) -> None:
        for name, replica in self._replicas.items():
            if replica.is_master:
                continue
            if replica.end != master.end:
                self._found(
                    Kind.DIFFERS,
                    min(replica.end, master.end),
                    f"{name} ends at {replica.end}, not at {master.end}",
                )
            for offset in range(max(replica.first, master.first), min(replica.end, master.end)):
                mine, its = master.held.get(offset), replica.held.get(offset)
                if mine != its:
                    self._found(
                        Kind.DIFFERS, offset, f"{name} has {its or 'nothing'}, the master {mine or 'nothing'}"
                    )

    def _judge_skips(self, name: str, group: _Group, first: int) -> None:
        for before, after in pairwise(sorted(group.read)):
            for offset in range(max(before + 1, first), after):
                if offset in self._values:
                    self._found(Kind.SKIPPED, offset, f"group {name} read {before} and {after}, never this")

    def _judge_rest(self, name: str, group: _Group, master: _Replica) -> None:
        """Whoever had time to read all must not have stopped before the end, or never begun."""
        last = max(group.read, default=-1)
        for offset in range(max(last + 1, master.first), master.end):
            if offset in master.held:
                self._found(
                    Kind.SKIPPED, offset, f"group {name} had time for it and has nothing behind {last}"
                )

    def _lies_at(self, offset: int, value: str, source: str) -> None:
        known = self._values.setdefault(offset, value)
        if known != value:
            self._found(Kind.TWO_VALUES, offset, f"{source} says {value}, it was {known}")

    def _group(self, name: str) -> _Group:
        return self._groups.setdefault(name, _Group())

    def _replica(self, name: str) -> _Replica:
        return self._replicas.setdefault(name, _Replica())

    def _found(self, kind: Kind, offset: int, what: str) -> None:
        self._verdict.found(kind, f"{self._queue}@{offset}", what)
