"""Which records of writes are in the log, as far as one has to know to tell what is new. Pure.

Of each partition of a query a queue has a mark: the batch and the index of the last record taken, and the sum
up to it. A run is taken if it follows its mark, and is a repeat if it lies before it. Nothing else is taken:
what lies between would be lost.

    no mark, or one of an earlier batch:   a run from the batch's first record on is taken
    a mark of the same batch:              a run that begins right behind it is taken, if the sums agree;
                                           one that ends at it or before is a repeat
    a mark of a later batch:               a repeat: a batch begins when all earlier ones are complete
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

import msgspec

from tanist.model.writes import BEFORE_FIRST, WriteId, WriteRun
from tanist.protocol.bodies.writes import KeptMark, KeptWrite, KeptWrites, QueueMark, WritePlan, WriteProgress

MAX_MARKS = 50_000
"""Of all queries together. A queue of a partition that would need one more is refused."""
KEPT_MS = 7 * 24 * 3_600_000
"""How long a query may rest before it is forgotten."""
_MAX_PLANS = 2
"""The plan of the batch that may be repeated, and that of the next."""


class Verdict(Enum):
    """What is done with a run."""

    TAKE = auto()
    REPEAT = auto()
    OUT_OF_TURN = auto()
    """Something before it is missing, or only a part of it is new: the writer has to ask where it stands."""
    DIFFERS = auto()
    """What was taken before it is not what the writer has before it."""
    UNKNOWN = auto()
    """The query has no plan here: no table in the log tells of it, and what came would not be found again."""
    ENDED = auto()
    FULL = auto()


class Mark(msgspec.Struct, frozen=True, gc=False):
    """The last record of a partition in a queue."""

    batch: int
    index: int
    sum: int
    log_end: int
    """One past its last byte in the log: what has to be safe before anybody is told of it."""
    time_ms: int


@dataclass(slots=True)
class _Write:
    """One query in one topic."""

    time_ms: int
    plans: list[WritePlan] = field(default_factory=list[WritePlan])
    marks: dict[tuple[int, int], Mark] = field(default_factory=dict[tuple[int, int], Mark])
    """By partition and queue."""
    is_ended: bool = False


class WriteMarks:
    """The marks and plans of all queries that write to one broker."""

    def __init__(self, max_marks: int = MAX_MARKS) -> None:
        self._writes: dict[tuple[str, str], _Write] = {}
        self._max_marks = max_marks
        self._count = 0

    def __len__(self) -> int:
        """How much there is to keep: the marks, and the queries themselves."""
        return self._count + len(self._writes)

    @property
    def is_empty(self) -> bool:
        return not self._writes

    def judge(self, run: WriteRun, topic: str, queue_id: int) -> tuple[Verdict, Mark | None]:
        """What to do with a run for a queue, and the mark that says so."""
        write = self._writes.get((run.query, topic))
        if write is None or not (write.plans or write.is_ended):
            return Verdict.UNKNOWN, None
        if write.is_ended:
            return Verdict.ENDED, None
        mark = write.marks.get((run.partition, queue_id))
        if mark is None and len(self) >= self._max_marks:
            return Verdict.FULL, None
        return _compare(run, mark), mark

    def note(
        self, name: WriteId, topic: str, queue_id: int, *, total: int, log_end: int, now_ms: int
    ) -> None:
        """A record is in the log. One that lies before its mark changes nothing."""
        write = self._write(name.query, topic, now_ms)
        place = (name.partition, queue_id)
        mark = write.marks.get(place)
        if mark is None:
            self._count += 1
        elif (mark.batch, mark.index) >= (name.batch, name.index):
            return
        write.marks[place] = Mark(name.batch, name.index, total, log_end, now_ms)

    def has_room(self, query: str, topic: str) -> bool:
        """Whether a query may write to a topic, as far as it is for this table to say."""
        return (query, topic) in self._writes or len(self) < self._max_marks

    def put_plan(self, query: str, topic: str, plan: WritePlan, now_ms: int) -> bool:
        """Keep a plan; False, and nothing is changed, if there is one from the same batch on, or a later."""
        write = self._write(query, topic, now_ms)
        if write.plans and write.plans[-1].from_batch >= plan.from_batch:
            return False
        write.plans = [*write.plans, plan][-_MAX_PLANS:]
        return True

    def plans(self, query: str, topic: str) -> list[WritePlan]:
        """Those that hold now."""
        write = self._writes.get((query, topic))
        return [] if write is None else write.plans

    def put_back(self, query: str, topic: str, plans: list[WritePlan]) -> None:
        """A plan could not be written down: it is as before."""
        write = self._writes[query, topic]
        write.plans = plans
        if not (plans or write.marks or write.is_ended):
            del self._writes[query, topic]

    def forget_topic(self, topic: str) -> bool:
        """A topic is deleted, and what was written to it with it; whether there was something."""
        gone = [key for key in self._writes if key[1] == topic]
        for key in gone:
            self._count -= len(self._writes.pop(key).marks)
        return bool(gone)

    def end(self, query: str, topic: str, now_ms: int) -> None:
        """A query is done: of it only its name is kept, so that a late part of it finds out."""
        if (query, topic) in self._writes:
            write = self._write(query, topic, now_ms)
            self._count -= len(write.marks)
            write.marks, write.plans, write.is_ended = {}, [], True

    def progress(self, query: str, topic: str, partition: int) -> tuple[WriteProgress, int]:
        """What there is of one partition, and up to where the log has to be safe for that to be true."""
        write = self._writes.get((query, topic))
        if write is None:
            return WriteProgress(), 0
        found = {queue: mark for (part, queue), mark in write.marks.items() if part == partition}
        marks = [
            QueueMark(queue_id=queue, batch=mark.batch, index=mark.index, sum=mark.sum)
            for queue, mark in sorted(found.items())
        ]
        safe_to = max((mark.log_end for mark in found.values()), default=0)
        last_batch, last_partition = max(
            ((mark.batch, part) for (part, _queue), mark in write.marks.items()), default=(-1, -1)
        )
        progress = WriteProgress(
            plans=write.plans,
            marks=marks,
            is_ended=write.is_ended,
            last_batch=last_batch,
            partition_count=last_partition + 1,
        )
        return progress, safe_to

    def expire(self, now_ms: int) -> list[str]:
        """Forget the queries that have rested for long; which ones they were."""
        old = [key for key, write in self._writes.items() if write.time_ms + KEPT_MS < now_ms]
        for key in old:
            self._count -= len(self._writes.pop(key).marks)
        return [query for query, _topic in old]

    def kept(self) -> KeptWrites:
        """All of it, to be written down."""
        return KeptWrites(
            writes=[
                KeptWrite(
                    query=query,
                    topic=topic,
                    time_ms=write.time_ms,
                    is_ended=write.is_ended,
                    plans=write.plans,
                    marks=[
                        KeptMark(*place, *msgspec.structs.astuple(mark))
                        for place, mark in write.marks.items()
                    ],
                )
                for (query, topic), write in self._writes.items()
            ]
        )

    def restore(self, kept: Iterable[KeptWrite]) -> None:
        """Go back to what was written down."""
        self._writes = {
            (one.query, one.topic): _Write(
                time_ms=one.time_ms,
                plans=list(one.plans),
                marks={
                    (mark.partition, mark.queue_id): Mark(
                        mark.batch, mark.index, mark.sum, mark.log_end, mark.time_ms
                    )
                    for mark in one.marks
                },
                is_ended=one.is_ended,
            )
            for one in kept
        }
        self._count = sum(len(write.marks) for write in self._writes.values())

    def _write(self, query: str, topic: str, now_ms: int) -> _Write:
        write = self._writes.setdefault((query, topic), _Write(now_ms))
        write.time_ms = max(write.time_ms, now_ms)
        return write


def _compare(run: WriteRun, mark: Mark | None) -> Verdict:
    if mark is None or run.batch > mark.batch:
        return Verdict.TAKE if run.previous == BEFORE_FIRST else Verdict.OUT_OF_TURN
    if run.batch < mark.batch or run.last < mark.index:
        return Verdict.REPEAT
    if run.last == mark.index:
        return Verdict.REPEAT if run.sum == mark.sum else Verdict.DIFFERS
    if run.previous == mark.index:
        return Verdict.TAKE if run.sum_before == mark.sum else Verdict.DIFFERS
    return Verdict.OUT_OF_TURN
