"""What one task has to send to one queue, and what of it is in the log. Pure.

    add(row) --> open packet --full, or take_packet--> unacked --on_acked--> gone
                                                          ^
                         resume(mark): what the mark covers goes, the rest stays

A task that is repeated adds the same rows again. Those that the mark of its queue covers are not sent but
summed up, and the sum must be the mark's. That is how a row that has changed, or changed its place, is found
out: what was written can not be taken back, so such a task fails and says so.
"""

import zlib
from collections import deque
from typing import NamedTuple

import msgspec

from tanist.model.writes import BEFORE_FIRST, WRITE_ID, WRITE_SUM, WriteId, WriteRun
from tanist.protocol.batch import encode_batch
from tanist.protocol.bodies.writes import QueueMark
from tanist.protocol.record import MAX_PROPERTIES_BYTES
from tanist.spark.errors import SparkError

PACKET_BYTES = 512 << 10
"""A packet has no more, unless it is a single row: brokers refuse what is larger than they take at once."""
PACKET_ROWS = 2000
_SUM_NAME = WRITE_SUM.encode()
_ROOM_BYTES = 1024
"""For what a broker adds to the properties of a message."""


class RowsDiffer(SparkError):
    """A repeated task has other rows than before, or has them in another order."""

    def __init__(self, where: str, index: int) -> None:
        super().__init__(
            f"{where}: the rows up to index {index} are not those that were written before. A batch that "
            "Spark repeats must have the same rows in the same order in each partition: sort them within "
            "their partitions (sortWithinPartitions), and do without rand() and the like; what is there stays"
        )


class Item(msgspec.Struct, frozen=True, gc=False):
    """One row as it goes out."""

    index: int
    sum: int
    """Over it and all before it."""
    packed: bytes


class Packet(NamedTuple):
    """Rows that are sent together."""

    run: WriteRun
    items: tuple[Item, ...]
    size_bytes: int

    @property
    def body(self) -> bytes:
        return b"".join([item.packed for item in self.items])


class Task(NamedTuple):
    """Which part of which batch of which query a task writes."""

    query: str
    batch: int
    partition: int

    def __str__(self) -> str:
        return f"query {self.query} batch {self.batch} partition {self.partition}"


class Lane:
    """The rows of one task for one queue, in their order."""

    def __init__(self, task: Task, queue_name: str, mark: QueueMark | None) -> None:
        """``mark`` is what the broker has; None if it has nothing, or keeps no marks."""
        self._task = task
        self._where = f"{task} in queue {queue_name}"
        self._opening = f"{WRITE_ID}\x01{WriteId(*task, 0)}".removesuffix("0").encode()
        self._is_over = mark is not None and mark.batch > task.batch
        """Whether a later batch was written already: then this one is complete."""
        self._skip_to = mark.index if mark is not None and mark.batch == task.batch else BEFORE_FIRST
        self._skip_sum = mark.sum if mark is not None and mark.batch == task.batch else 0
        self._sum = 0
        self._last = BEFORE_FIRST
        self._open: list[Item] = []
        self.open_bytes = 0
        self._before = (BEFORE_FIRST, 0)
        """Index and sum before the open packet."""
        self.unacked: deque[Packet] = deque()
        self.unacked_bytes = 0
        self.skipped_count = 0
        """Rows that were in the log already."""

    def add(self, index: int, *, body: bytes, properties: bytes, made: bytes, flag: int = 0) -> list[Packet]:
        """Take a row; the packets that it has filled, which are under way from now on.

        ``properties`` are the row's own, which are the same whenever it is written; ``made`` come anew each
        time, such as its id. An encoded row has both, and its name and its sum.
        """
        if self._is_over:
            self.skipped_count += 1
            return []
        self._sum = zlib.crc32(properties, zlib.crc32(body, self._sum))
        self._last = index
        if index <= self._skip_to:
            if index == self._skip_to and self._sum != self._skip_sum:
                raise RowsDiffer(self._where, index)
            self._before = (index, self._sum)
            self.skipped_count += 1
            return []
        if self._before[0] < self._skip_to:
            raise RowsDiffer(self._where, self._skip_to)
        # As WriteId writes it, at a third of the cost.
        named = b"%s%d\x02%s\x01%x\x02" % (self._opening, index, _SUM_NAME, self._sum)
        all_properties = properties + made + named
        if len(all_properties) > MAX_PROPERTIES_BYTES - _ROOM_BYTES:
            raise SparkError(
                f"{self._where}: row {index} has {len(all_properties)} bytes of properties, tags and keys; "
                f"at most {MAX_PROPERTIES_BYTES - _ROOM_BYTES} are taken"
            )
        if not body:
            raise SparkError(f"{self._where}: row {index} has an empty body, which brokers do not take")
        packed = encode_batch([(flag, body, all_properties)])
        full = [self.take_packet()] if self.open_bytes + len(packed) > PACKET_BYTES else []
        self._open.append(Item(index, self._sum, packed))
        self.open_bytes += len(packed)
        if self.open_bytes >= PACKET_BYTES or len(self._open) >= PACKET_ROWS:
            full.append(self.take_packet())
        return [packet for packet in full if packet is not None]

    def take_packet(self) -> Packet | None:
        """The open packet, which is under way from now on; None if it is empty."""
        if not self._open:
            return None
        items, self._open, self.open_bytes = tuple(self._open), [], 0
        packet = self._packet(self._before, items)
        self._before = (items[-1].index, items[-1].sum)
        self.unacked.append(packet)
        self.unacked_bytes += packet.size_bytes
        return packet

    def finish(self) -> Packet | None:
        """No more rows come: the last packet. Raises RowsDiffer if there were more rows before."""
        if not self._is_over and self._last < self._skip_to:
            raise RowsDiffer(self._where, self._skip_to)
        return self.take_packet()

    def agree(self, mark: QueueMark | None) -> None:
        """Raise if what the broker has, now that all is acknowledged, is not what this lane has.

        A packet that lies before the mark is a repeat, whatever is in it: only the sum at the mark can tell.
        """
        if self._is_over or (mark is not None and mark.batch > self._task.batch):
            return
        is_ours = mark is not None and mark.batch == self._task.batch
        there = (mark.index, mark.sum) if mark is not None and is_ours else (BEFORE_FIRST, 0)
        if there[0] < self._last:
            raise self._lost(self._last, there[0])
        if there != (self._last, self._sum):
            raise RowsDiffer(self._where, there[0])

    def on_acked(self) -> None:
        """The first packet that is under way is safe."""
        self.unacked_bytes -= self.unacked.popleft().size_bytes

    def resume(self, mark: QueueMark | None) -> list[Packet]:
        """What is still to be sent after something went wrong, given what the broker has by now."""
        task = self._task
        if not self.unacked:
            return []
        before = self.unacked[0].run.previous
        if mark is not None and mark.batch > task.batch:
            done = self.unacked[-1].run.last
        else:
            done = mark.index if mark is not None and mark.batch == task.batch else BEFORE_FIRST
            if done < before:
                raise self._lost(before, done)
        waiting = [*self.unacked]
        self.unacked.clear()
        self.unacked_bytes = 0
        for packet in waiting:
            left = tuple(item for item in packet.items if item.index > done)
            if not left:
                continue
            gone = packet.items[len(packet.items) - len(left) - 1] if len(left) < len(packet.items) else None
            start = (packet.run.previous, packet.run.sum_before) if gone is None else (gone.index, gone.sum)
            if start[0] == done and mark is not None and mark.batch == task.batch and start[1] != mark.sum:
                raise RowsDiffer(self._where, done)
            rest = self._packet(start, left)
            self.unacked.append(rest)
            self.unacked_bytes += rest.size_bytes
        return [*self.unacked]

    def _lost(self, acknowledged_to: int, has_to: int) -> SparkError:
        """The task fails, and its next attempt begins where the log ends."""
        return SparkError(
            f"{self._where}: the broker acknowledged rows up to index {acknowledged_to} and has them up to "
            f"{has_to} now; it lost them when it changed its master or crashed"
        )

    def _packet(self, before: tuple[int, int], items: tuple[Item, ...]) -> Packet:
        last = items[-1]
        run = WriteRun(*self._task, before[0], last.index, before[1], last.sum)
        return Packet(run, items, sum(len(item.packed) for item in items))
