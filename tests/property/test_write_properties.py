"""Any story of retries, crashes, late and repeated packets has every row in the log once and in order."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.broker.writes.marks import Verdict, WriteMarks
from tanist.model.writes import WriteId, WriteRun
from tanist.protocol.batch import decode_batch
from tanist.protocol.bodies.writes import QueueCount, QueueMark, WritePlan
from tanist.spark.sink.lanes import Lane, Packet, Task

TOPIC = "TopicA"
QUERY = "query"


@dataclass
class _Broker:
    """The log of one queue, and marks that are found anew after each crash."""

    log: list[tuple[WriteId, int, bytes]] = field(default_factory=list[tuple[WriteId, int, bytes]])
    safe_to: int = 0
    """What was acknowledged: a crash does not take it."""
    marks: WriteMarks = field(default_factory=WriteMarks)

    def __post_init__(self) -> None:
        self.crash(0)

    def crash(self, lost: int) -> None:
        """Records at the end are lost, as far as nobody was told of them; packets may be torn."""
        del self.log[max(self.safe_to, len(self.log) - lost) :]
        self.marks = WriteMarks()
        self.marks.put_plan(
            QUERY, TOPIC, WritePlan(from_batch=0, queues=[QueueCount(broker_name="a", count=1)]), 1
        )
        for position, (name, total, _body) in enumerate(self.log):
            self.marks.note(name, TOPIC, 0, total=total, log_end=position + 1, now_ms=1)

    def take(self, packet: Packet) -> bool:
        """Whether it is in the log now; then its writer is told so."""
        run = WriteRun.parse(str(packet.run))
        verdict, mark = self.marks.judge(run, TOPIC, 0)
        if verdict is Verdict.REPEAT:
            assert mark is not None
            self.safe_to = max(self.safe_to, mark.log_end)
            return True
        if verdict is not Verdict.TAKE:
            return False
        for item, sent in zip(packet.items, decode_batch(packet.body), strict=True):
            name = WriteId(run.query, run.batch, run.partition, item.index)
            self.log.append((name, item.sum, bytes(sent.body)))
        last = WriteId(run.query, run.batch, run.partition, run.last)
        self.marks.note(last, TOPIC, 0, total=run.sum, log_end=len(self.log), now_ms=1)
        self.safe_to = len(self.log)
        return True

    def mark(self) -> QueueMark | None:
        progress, safe_to = self.marks.progress(QUERY, TOPIC, 0)
        self.safe_to = max(self.safe_to, safe_to)
        return progress.marks[0] if progress.marks else None


def _attempt(broker: _Broker, batch: int, row_count: int, late: list[Packet], data: st.DataObject) -> bool:
    """One attempt of a task; whether it got to its end."""
    lane = Lane(Task(QUERY, batch, 0), "a/0", broker.mark())
    choose = st.sampled_from(["add", "add", "add", "cut", "deliver", "late", "crash", "resume", "die"])
    index = 0
    while index < row_count or lane.unacked:
        match data.draw(choose):
            case "add" if index < row_count:
                # Every other index is for another queue, as with a sharding key.
                lane.add(2 * index, body=b"row %d" % index, properties=b"", made=b"")
                index += 1
            case "cut":
                lane.take_packet()
            case "deliver" if lane.unacked:
                which = data.draw(st.integers(0, len(lane.unacked) - 1))
                if broker.take(lane.unacked[which]) and which == 0:
                    lane.on_acked()
            case "late" if late:
                broker.take(data.draw(st.sampled_from(late)))
            case "crash":
                broker.crash(data.draw(st.integers(0, 5)))
            case "resume":
                late += lane.unacked
                lane.resume(broker.mark())
            case "die":
                late += lane.unacked
                return False
            case _:
                if index == row_count:
                    lane.take_packet()
    return lane.finish() is None


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=4), st.data())
def test_every_row_is_written_once_and_in_its_order(batches: list[int], data: st.DataObject) -> None:
    broker = _Broker()
    late: list[Packet] = []
    for batch, row_count in enumerate(batches):
        for _ in range(3):
            if _attempt(broker, batch, row_count, late, data):
                break
        else:
            _last_attempt(broker, batch, row_count)
    expected = [
        (WriteId(QUERY, batch, 0, 2 * index), b"row %d" % index)
        for batch, row_count in enumerate(batches)
        for index in range(row_count)
    ]
    for packet in late:
        broker.take(packet)
    assert [(name, body) for name, _, body in broker.log] == expected


def _last_attempt(broker: _Broker, batch: int, row_count: int) -> None:
    """One that nothing happens to."""
    lane = Lane(Task(QUERY, batch, 0), "a/0", broker.mark())
    for index in range(row_count):
        lane.add(2 * index, body=b"row %d" % index, properties=b"", made=b"")
    lane.finish()
    while lane.unacked:
        assert broker.take(lane.unacked[0])
        lane.on_acked()
