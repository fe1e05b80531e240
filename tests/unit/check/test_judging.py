"""The judge finds what was planted, each by its name, and nothing in a sound history."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.check import (
    Acked,
    Asked,
    Assigned,
    Began,
    Ended,
    Event,
    Fault,
    Held,
    HistoryError,
    Kind,
    Log,
    Outcome,
    Read,
    Summed,
    Waited,
    judge_events,
    judge_files,
)
from tanist.check.history import encode_event
from tanist.check.queue_judge import NO_FINAL_LOG, SETTLE_US
from tanist.check.verdict import SHOWN_PER_KIND

QUEUE = "orders@broker-a:0"
LAST = 1 << 40


def sends(count: int, process: str = "p") -> list[Event]:
    """Messages 0 to ``count``, acknowledged at offsets 0 to ``count``."""
    events: list[Event] = []
    for offset in range(count):
        value = f"{process}/{offset}"
        events.append(Began(offset * 10, process, value))
        events.append(Ended(offset * 10 + 5, process, value, Outcome.OK, QUEUE, offset))
    return events


def reads(offsets: Iterable[int], *, at_us: int, process: str = "c", group: str = "g") -> list[Event]:
    return [
        Read(at_us + number, process, group, QUEUE, offset, f"p/{offset}")
        for number, offset in enumerate(offsets)
    ]


def final(count: int, *, replica: str = "a:0", first: int = 0, is_master: bool = True) -> list[Event]:
    held: list[Event] = [Held(LAST, replica, QUEUE, offset, f"p/{offset}") for offset in range(first, count)]
    return [*held, Log(LAST, replica, QUEUE, first, count, is_master)]


def kinds(events: Iterable[Event]) -> set[Kind]:
    return set(judge_events(events).anomaly_counts)


def test_a_sound_history_is_sound_and_counted() -> None:
    events = [
        *sends(5),
        Began(60, "p", "p/no"),
        Ended(61, "p", "p/no", Outcome.REFUSED),
        Began(62, "p", "p/who-knows"),
        Ended(63, "p", "p/who-knows", Outcome.UNKNOWN),
        *reads(range(5), at_us=100),
        *final(5),
        *final(5, replica="a:1", is_master=False),
    ]
    verdict = judge_events(events)
    assert verdict.is_sound
    assert not verdict.unjudged
    counts = verdict.counts
    assert (counts.sent, counts.acknowledged, counts.refused, counts.unknown, counts.read) == (7, 5, 1, 1, 5)


def test_an_acknowledged_message_behind_the_final_end_is_lost() -> None:
    verdict = judge_events([*sends(5), *final(3)])
    assert verdict.anomaly_counts == {Kind.LOST: 2}
    assert verdict.anomalies[0].where == f"{QUEUE}@3"
    assert "final log ends at 3" in verdict.anomalies[0].what


def test_one_that_is_missing_before_the_end_is_lost_in_the_middle() -> None:
    events = [
        event for event in [*sends(5), *final(5)] if not (isinstance(event, Held) and event.offset == 2)
    ]
    assert kinds(events) == {Kind.LOST_IN_THE_MIDDLE}


def test_what_retention_took_is_not_lost() -> None:
    assert kinds([*sends(5), *final(5, first=3)]) == set()


def test_an_offset_that_was_given_twice_has_two_values() -> None:
    again: list[Event] = [Began(70, "q", "q/0"), Ended(71, "q", "q/0", Outcome.OK, QUEUE, 4)]
    assert kinds([*sends(5), *again]) == {Kind.TWO_VALUES}


def test_a_message_at_two_places_was_stored_twice_unless_it_was_sent_twice() -> None:
    copy: list[Event] = [Held(LAST, "a:0", QUEUE, 1, "p/0"), Log(LAST, "a:0", QUEUE, 0, 2, is_master=True)]
    held: list[Event] = [Held(LAST, "a:0", QUEUE, 0, "p/0")]
    assert kinds([*sends(1), *held, *copy]) == {Kind.DUPLICATE}
    retried: list[Event] = [Began(0, "p", "p/0"), Ended(5, "p", "p/0", Outcome.OK, QUEUE, 0, tries=2)]
    assert kinds([*retried, *held, *copy]) == set()


def test_a_message_that_nobody_sent_is_a_phantom() -> None:
    assert kinds([*sends(1), Read(90, "c", "g", QUEUE, 1, "x/0")]) == {Kind.PHANTOM}


def test_a_refused_message_must_not_be_read() -> None:
    events: list[Event] = [
        Began(0, "p", "p/0"),
        Ended(1, "p", "p/0", Outcome.REFUSED),
        Read(2, "c", "g", QUEUE, 0, "p/0"),
    ]
    assert kinds(events) == {Kind.ABORTED_READ}


def test_a_later_send_must_lie_behind_an_earlier_one() -> None:
    events: list[Event] = [
        Began(0, "p", "p/1"),
        Ended(1, "p", "p/1", Outcome.OK, QUEUE, 1),
        Began(2, "p", "p/0"),
        Ended(3, "p", "p/0", Outcome.OK, QUEUE, 0),
    ]
    assert kinds(events) == {Kind.ORDER_OF_SENDS}


def test_a_consumer_must_not_go_back() -> None:
    assert kinds([*sends(3), *reads([0, 2, 1], at_us=100)]) == {Kind.ORDER_OF_READS}


def test_a_group_must_not_leave_a_message_out() -> None:
    verdict = judge_events([*sends(5), *reads([0, 1, 4], at_us=100)])
    assert verdict.anomaly_counts == {Kind.SKIPPED: 2}


def test_what_another_consumer_of_the_group_read_was_not_left_out() -> None:
    moved: list[Event] = [Assigned(150, "d", "g", QUEUE), *reads([2], at_us=160, process="d")]
    later: list[Event] = [Assigned(170, "c", "g", QUEUE), *reads([3, 4], at_us=180)]
    assert kinds([*sends(5), *reads([0, 1], at_us=100), *moved, *later]) == set()


def test_a_group_that_had_time_must_have_read_to_the_end() -> None:
    waited: list[Event] = [Waited(LAST - 1, "g")]
    assert kinds([*sends(5), *reads(range(4), at_us=100), *waited, *final(5)]) == {Kind.SKIPPED}
    assert kinds([*sends(5), *waited, *final(5)]) == {Kind.SKIPPED}
    assert kinds([*sends(5), *reads(range(5), at_us=100), *waited, *final(5)]) == set()


def test_an_end_before_what_was_acknowledged_is_stale() -> None:
    assert kinds([*sends(3), Asked(60, "c", QUEUE, 50, 2)]) == {Kind.STALE}


def test_an_answer_need_not_know_what_was_acknowledged_after_the_question() -> None:
    # The third message is acknowledged at 25.
    events = sorted([*sends(3), Asked(27, "c", QUEUE, 20, 2)], key=lambda event: event.at_us)
    assert kinds(events) == set()


@pytest.mark.parametrize("end", [4, 5])
def test_a_replica_that_ends_elsewhere_differs(end: int) -> None:
    events = [*sends(5), *final(5), *final(end, replica="a:1", is_master=False)]
    assert kinds(events) == ({Kind.DIFFERS} if end == 4 else set())


def test_a_replica_with_another_message_differs() -> None:
    other: list[Event] = [
        Began(60, "p", "p/9"),
        Held(LAST, "a:1", QUEUE, 0, "p/9"),
        Log(LAST, "a:1", QUEUE, 0, 1, is_master=False),
    ]
    assert kinds([*sends(1), *other, *final(1)]) == {Kind.DIFFERS, Kind.TWO_VALUES}


@pytest.mark.parametrize(
    ("end", "crc", "found"), [(10, 7, set[Kind]()), (10, 8, {Kind.DIFFERS}), (9, 7, {Kind.DIFFERS})]
)
def test_logs_are_compared_down_to_their_bytes(end: int, crc: int, found: set[Kind]) -> None:
    sums: list[Event] = [
        Summed(LAST, "a:0", "log@broker-a", 0, 10, 7),
        Summed(LAST, "a:1", "log@broker-a", 0, end, crc),
    ]
    verdict = judge_events([*sends(3), *final(3), *sums])
    assert set(verdict.anomaly_counts) == found
    assert verdict.counts.queues == 1
    assert not verdict.unjudged


def test_a_delivery_that_comes_again_out_of_nothing_is_one_too_many() -> None:
    assert kinds([*sends(3), *reads([0, 1, 2], at_us=100), *reads([2], at_us=200)]) == {Kind.DELIVERED_TWICE}


def test_what_was_in_flight_at_a_fault_may_come_again_once() -> None:
    before = [*sends(3), *reads([0, 1, 2], at_us=100), Acked(110, "c", "g", QUEUE, 1)]
    fault: list[Event] = [Fault(120, "kill master"), Fault(130, "kill master", is_over=True)]
    verdict = judge_events([*before, *fault, *reads([1, 2], at_us=200)])
    assert verdict.is_sound
    assert verdict.counts.read_again == 2
    assert kinds([*before, *fault, *reads([0], at_us=200)]) == {Kind.DELIVERED_TWICE}
    assert kinds([*before, *fault, *reads([1], at_us=200), *reads([1], at_us=210)]) == {Kind.DELIVERED_TWICE}


def test_offsets_that_a_killed_broker_forgot_excuse_what_comes_again() -> None:
    before = [
        *sends(3),
        *reads([0, 1, 2], at_us=100),
        Acked(110, "c", "g", QUEUE, 1),
        Acked(150, "c", "g", QUEUE, 3),
    ]
    again = reads([1, 2], at_us=300)
    assert kinds([*before, Fault(160, "kill", forgets_us=20), *again]) == set()
    assert kinds([*before, Fault(160, "kill"), *again]) == {Kind.DELIVERED_TWICE}
    assert kinds([*before, Fault(160, "kill", forgets_us=20), *reads([0], at_us=300)]) == {
        Kind.DELIVERED_TWICE
    }


def test_what_is_read_while_something_is_broken_may_come_again() -> None:
    events = [Fault(90, "cut"), *sends(2), *reads([0, 1], at_us=100), Fault(150, "cut", is_over=True)]
    assert kinds([*events, *reads([0, 1], at_us=200)]) == set()


def test_an_ack_while_something_is_broken_does_not_reach_who_else_has_the_queue() -> None:
    events = [Fault(90, "cut"), *sends(2), *reads([0, 1], at_us=100), Acked(110, "c", "g", QUEUE, 2)]
    assert kinds([*events, *reads([0, 1], at_us=120, process="d")]) == set()
    healed: list[Event] = [Fault(130, "cut", is_over=True)]
    soon: list[Event] = [Acked(140, "c", "g", QUEUE, 3)]
    assert kinds([*events, *healed, *soon, *reads([0], at_us=150, process="d")]) == set()
    later: list[Event] = [Acked(130 + SETTLE_US, "c", "g", QUEUE, 3)]
    again = reads([0], at_us=140 + SETTLE_US, process="d")
    assert kinds([*events, *healed, *later, *again]) == {Kind.DELIVERED_TWICE}


def test_a_queue_that_changes_hands_may_hand_out_again_what_was_in_flight() -> None:
    moved = [Assigned(150, "d", "g", QUEUE), *reads([1], at_us=160, process="d")]
    assert kinds([*sends(2), *reads([0, 1], at_us=100), *moved]) == set()


def test_an_ack_of_who_lost_the_queue_does_not_reach_who_has_it_now() -> None:
    moved: list[Event] = [Assigned(150, "d", "g", QUEUE), Acked(155, "c", "g", QUEUE, 2)]
    again = reads([0, 1], at_us=160, process="d")
    assert kinds([*sends(2), *reads([0, 1], at_us=100), *moved, *again]) == set()
    own: list[Event] = [Acked(200, "d", "g", QUEUE, 2)]
    late = reads([1], at_us=210, process="c")
    assert kinds([*sends(2), *reads([0, 1], at_us=100), *moved, *again, *own, *late]) == {
        Kind.DELIVERED_TWICE
    }


def test_without_a_final_log_losses_are_not_judged_and_that_is_said() -> None:
    assert judge_events(sends(2)).unjudged == [NO_FINAL_LOG]


def test_all_anomalies_are_counted_and_some_are_shown() -> None:
    verdict = judge_events([*sends(100), *final(0)])
    assert verdict.anomaly_counts == {Kind.LOST: 100}
    assert len(verdict.anomalies) == SHOWN_PER_KIND


def test_files_are_merged_by_time(tmp_path: Path) -> None:
    parts = {"p": sends(3), "c": reads([0, 1, 2], at_us=100), "end": final(3)}
    for name, events in parts.items():
        (tmp_path / name).write_bytes(b"".join(map(encode_event, events)))
    verdict = judge_files([tmp_path / "end", tmp_path / "c", tmp_path / "p"])
    assert verdict.is_sound
    assert verdict.counts.read == 3


def test_the_last_line_of_a_killed_process_may_be_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"".join(map(encode_event, sends(2)))[:-7])
    counts = judge_files([path]).counts
    assert (counts.acknowledged, counts.unknown) == (1, 1)


def test_a_file_that_is_no_history_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(encode_event(Began(0, "p", "v")) + b'{"type":"ended"}\n')
    with pytest.raises(HistoryError, match="line 2"):
        judge_files([path])


# Each takes a sound history of this many messages and one offset, and plants what it is named after.
COUNT = 6
Mutant = Callable[[list[Event], int], list[Event]]


def without(kind: type[Event], at: int, events: list[Event]) -> list[Event]:
    """The events without those of one kind that are about one message."""
    return [
        event
        for event in events
        if not (
            isinstance(event, kind) and isinstance(event, Began | Read | Held) and event.value == f"p/{at}"
        )
    ]


def cut_short(events: list[Event], at: int) -> list[Event]:
    return [*(event for event in events if not isinstance(event, Held | Log)), *final(at)]


MUTANTS: dict[Kind, Mutant] = {
    Kind.LOST: cut_short,
    Kind.LOST_IN_THE_MIDDLE: lambda events, at: without(Held, at, events),
    Kind.TWO_VALUES: lambda events, at: [*events, Held(LAST, "a:9", QUEUE, at, f"p/{at + 1}")],
    Kind.DELIVERED_TWICE: lambda events, at: [*events, *reads([at], at_us=LAST)],
    Kind.SKIPPED: lambda events, at: without(Read, at, events),
    Kind.PHANTOM: lambda events, at: without(Began, at, events),
    Kind.STALE: lambda events, at: [*events, Asked(LAST, "c", QUEUE, LAST - 1, at)],
}


@pytest.mark.parametrize("kind", MUTANTS, ids=str)
@given(at=st.integers(1, COUNT - 2))
def test_what_is_planted_anywhere_is_found(kind: Kind, at: int) -> None:
    sound = [*sends(COUNT), *reads(range(COUNT), at_us=500), *final(COUNT)]
    assert kinds(sound) == set()
    assert kind in kinds(MUTANTS[kind](sound, at))
