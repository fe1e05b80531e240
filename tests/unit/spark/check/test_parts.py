"""Histories that are judged in parts have the verdict of the whole."""

from collections.abc import Iterable
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from tanist.check import Began, Ended, Event, Fault, Held, Log, Outcome, Read, Verdict, Waited, judge_events
from tanist.check.history import encode_event, order_of
from tanist.spark.check.parts import judge_queues, judge_values

COUNT = 12


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Sends to two queues, read and held, with some of it missing, repeated or wrong."""
    events: list[Event] = []
    ends = {"q-0": 0, "q-1": 0}
    for number in range(COUNT):
        queue = draw(st.sampled_from(sorted(ends)))
        value, at_us, offset = f"p/{number}", number * 10, ends[queue]
        ends[queue] += draw(st.sampled_from([1, 1, 1, 0]))
        events.append(Began(at_us, "p", value))
        events.append(Ended(at_us + 1, "p", value, draw(st.sampled_from(Outcome)), queue, offset))
        events += [Read(at_us + 2, "c", "g", queue, offset, value)] * draw(st.integers(0, 2))
        events += [Held(1000, "a", queue, offset, value)] * draw(st.integers(0, 1))
    events += [Log(1001, "a", queue, 0, end, is_master=True) for queue, end in ends.items()]
    events += [Fault(draw(st.integers(0, 200)), "kill"), Waited(999, "g")]
    return sorted(events, key=order_of)


def in_parts(events: Iterable[Event], parts: int) -> Verdict:
    """As Spark cuts it: messages by their values, queues by their names."""
    of_all = [event for event in events if isinstance(event, Fault | Waited)]
    verdict = Verdict()
    for part in range(parts):
        values = [
            encode_event(event)
            for event in events
            if isinstance(event, Began | Ended | Read | Held) and crc32(event.value.encode()) % parts == part
        ]
        verdict.add(judge_values(values))
        rows = [
            (event.queue, encode_event(event))
            for event in events
            if not isinstance(event, Began | Fault | Waited) and crc32(event.queue.encode()) % parts == part
        ]
        verdict.add(judge_queues(sorted(rows, key=lambda row: row[0]), of_all))
    verdict.counts.faults = sum(isinstance(event, Fault) for event in of_all)
    return verdict


@given(events=histories(), parts=st.integers(1, 4))
def test_parts_find_what_the_whole_finds(events: list[Event], parts: int) -> None:
    whole, cut = judge_events(events), in_parts(events, parts)
    assert cut.anomaly_counts == whole.anomaly_counts
    assert sorted(cut.anomalies) == sorted(whole.anomalies)
    assert cut.counts == whole.counts
