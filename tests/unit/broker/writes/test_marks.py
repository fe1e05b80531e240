from tanist.broker.writes.marks import KEPT_MS, Verdict, WriteMarks
from tanist.model.writes import BEFORE_FIRST, WriteId, WriteRun
from tanist.protocol.bodies.writes import QueueCount, WritePlan

T = "TopicA"
Q = "query-1"


def _run(previous: int, last: int, *, batch: int = 3, before: int = 0, total: int = 0) -> WriteRun:
    return WriteRun(Q, batch, 0, previous, last, before, total)


def _planned(max_marks: int = 100) -> WriteMarks:
    marks = WriteMarks(max_marks)
    for query, topic in ((Q, T), ("other", T), (Q, "TopicB")):
        plan = WritePlan(from_batch=0, queues=[QueueCount(broker_name="a", count=4)])
        marks.put_plan(query, topic, plan, 1)
    return marks


def _marks(batch: int = 3, index: int = 9, total: int = 99) -> WriteMarks:
    marks = _planned()
    marks.note(WriteId(Q, batch, 0, index), T, 1, total=total, log_end=500, now_ms=1)
    return marks


def test_a_batch_begins_with_its_first_record() -> None:
    assert _planned().judge(_run(BEFORE_FIRST, 4), T, 1) == (Verdict.TAKE, None)
    assert _planned().judge(_run(4, 9), T, 1)[0] is Verdict.OUT_OF_TURN
    assert _marks(batch=2).judge(_run(BEFORE_FIRST, 4), T, 1)[0] is Verdict.TAKE
    assert _marks(batch=2).judge(_run(4, 9), T, 1)[0] is Verdict.OUT_OF_TURN


def test_a_query_without_a_plan_is_not_known() -> None:
    assert WriteMarks().judge(_run(BEFORE_FIRST, 4), T, 1)[0] is Verdict.UNKNOWN


def test_what_follows_the_mark_is_taken_and_what_lies_before_it_is_a_repeat() -> None:
    marks = _marks()
    assert marks.judge(_run(9, 12, before=99), T, 1)[0] is Verdict.TAKE
    assert marks.judge(_run(4, 9, total=99), T, 1)[0] is Verdict.REPEAT
    assert marks.judge(_run(BEFORE_FIRST, 4), T, 1)[0] is Verdict.REPEAT
    assert marks.judge(_run(7, 99, batch=2), T, 1)[0] is Verdict.REPEAT


def test_a_gap_and_a_run_that_is_new_in_part_are_out_of_turn() -> None:
    marks = _marks()
    assert marks.judge(_run(10, 12), T, 1)[0] is Verdict.OUT_OF_TURN
    assert marks.judge(_run(4, 12), T, 1)[0] is Verdict.OUT_OF_TURN


def test_other_rows_than_before_are_found_by_their_sum() -> None:
    marks = _marks()
    assert marks.judge(_run(9, 12, before=98), T, 1)[0] is Verdict.DIFFERS
    assert marks.judge(_run(4, 9, total=98), T, 1)[0] is Verdict.DIFFERS


def test_queues_partitions_queries_and_topics_have_marks_of_their_own() -> None:
    marks = _marks()
    first = _run(BEFORE_FIRST, 4)
    assert marks.judge(first, T, 2)[0] is Verdict.TAKE
    assert marks.judge(first._replace(partition=1), T, 1)[0] is Verdict.TAKE
    assert marks.judge(first._replace(query="other"), T, 1)[0] is Verdict.TAKE
    assert marks.judge(first, "TopicB", 1)[0] is Verdict.TAKE


def test_a_record_from_before_the_mark_does_not_move_it_back() -> None:
    marks = _marks()
    marks.note(WriteId(Q, 2, 0, 77), T, 1, total=1, log_end=900, now_ms=2)
    progress, safe_to = marks.progress(Q, T, 0)
    assert [(mark.batch, mark.index, mark.sum) for mark in progress.marks] == [(3, 9, 99)]
    assert safe_to == 500


def test_of_an_ended_query_only_its_name_is_kept() -> None:
    marks = _marks()
    marks.end(Q, T, 5)
    assert marks.judge(_run(BEFORE_FIRST, 4), T, 1)[0] is Verdict.ENDED
    count = len(marks)
    marks.end("never seen", T, 5)
    assert len(marks) == count


def test_there_are_so_many_marks_at_most() -> None:
    marks = _planned(max_marks=4)
    marks.note(WriteId(Q, 0, 0, 0), T, 1, total=0, log_end=1, now_ms=1)
    assert marks.judge(_run(BEFORE_FIRST, 4), T, 2)[0] is Verdict.FULL
    assert not marks.has_room("another", T)
    assert marks.judge(_run(0, 4, batch=0), T, 1)[0] is Verdict.TAKE


def test_a_query_that_rests_for_long_is_forgotten() -> None:
    marks = _marks()
    assert marks.expire(KEPT_MS) == []
    assert marks.expire(KEPT_MS + 2) == [Q, "other", Q]
    assert marks.is_empty
    assert len(marks) == 0


def test_the_first_plan_from_a_batch_on_holds() -> None:
    marks = WriteMarks()
    plans = [
        WritePlan(from_batch=batch, queues=[QueueCount(broker_name="a", count=count)])
        for batch, count in ((0, 4), (0, 8), (5, 8), (9, 16))
    ]
    assert [marks.put_plan(Q, T, plan, 1) for plan in plans] == [True, False, True, True]
    assert marks.progress(Q, T, 0)[0].plans == [plans[2], plans[3]]


def test_the_table_comes_back_as_it_was_written_down() -> None:
    marks, other = _marks(), WriteMarks()
    other.restore(marks.kept().writes)
    assert other.kept() == marks.kept()
    assert len(other) == len(marks)
