import tracemalloc

from tanist.broker.delays.timers import TimerSchedule
from tanist.model.timer_progress import TimerProgress

NOW_MS = 1_700_000_000_000


def begun(progress: TimerProgress | None = None) -> TimerSchedule:
    return TimerSchedule(progress or TimerProgress(), precision_ms=1_000)


def take(timers: TimerSchedule, *slots_ms: int) -> None:
    for slot_ms in slots_ms:
        if not timers.is_settled(timers.read_to, slot_ms):
            timers.take(timers.read_to, slot_ms)
        timers.read_to += 1


def deliver(timers: TimerSchedule, now_ms: int) -> list[int]:
    delivered: list[int] = []
    while (found := timers.next_due(now_ms)) is not None:
        delivered.append(found[0])
        timers.on_delivered()
    return delivered


def restarted(timers: TimerSchedule, now_ms: int) -> TimerSchedule:
    progress = timers.progress(now_ms)
    assert progress is not None
    return begun(progress)


def test_messages_come_when_their_slot_has_passed_the_earliest_slot_first() -> None:
    timers = begun()
    take(timers, NOW_MS + 3_000, NOW_MS + 1_000, NOW_MS + 1_000, NOW_MS + 2_000)
    assert timers.next_wake_ms == NOW_MS + 2_000
    assert deliver(timers, NOW_MS + 1_999) == []
    assert deliver(timers, NOW_MS + 2_000) == [1, 2]
    assert deliver(timers, NOW_MS + 9_000) == [3, 0]
    assert timers.next_wake_ms is None


def test_a_message_stays_until_it_is_reported_as_delivered() -> None:
    timers = begun()
    take(timers, NOW_MS)
    assert timers.next_due(NOW_MS + 1_000) == timers.next_due(NOW_MS + 5_000) == (0, NOW_MS)
    assert len(timers) == 1


def test_a_restart_lets_wait_what_waited_and_nothing_else() -> None:
    timers = begun()
    take(timers, NOW_MS + 1_000, NOW_MS + 60_000, NOW_MS, NOW_MS + 5_000)
    assert deliver(timers, NOW_MS + 2_500) == [2, 0]
    again = restarted(timers, NOW_MS + 2_500)
    take(again, NOW_MS + 1_000, NOW_MS + 60_000, NOW_MS, NOW_MS + 5_000)
    assert deliver(again, NOW_MS + 100_000) == [3, 1]


def test_what_came_after_the_checkpoint_is_delivered_even_if_its_slot_had_passed() -> None:
    timers = begun()
    take(timers, NOW_MS)
    assert deliver(timers, NOW_MS + 5_000) == [0]
    again = restarted(timers, NOW_MS + 5_000)
    take(again, NOW_MS - 60_000)
    assert deliver(again, NOW_MS + 5_000) == [1]


def test_what_is_due_and_not_delivered_keeps_the_checkpoint_back() -> None:
    timers = begun()
    take(timers, NOW_MS, NOW_MS + 1_000)
    progress = timers.progress(NOW_MS + 30_500)
    assert progress == TimerProgress(read_ms=NOW_MS, taken_to=2, first_waiting=0)
    deliver(timers, NOW_MS + 30_500)
    progress = timers.progress(NOW_MS + 30_500)
    assert progress == TimerProgress(read_ms=NOW_MS + 30_000, taken_to=2, first_waiting=2)


def test_nothing_is_written_down_before_all_is_read_again() -> None:
    timers = begun(TimerProgress(read_ms=NOW_MS, taken_to=3, first_waiting=1))
    assert timers.read_to == 1
    assert timers.progress(NOW_MS) is None
    take(timers, NOW_MS - 1_000, NOW_MS)
    assert timers.progress(NOW_MS) == TimerProgress(read_ms=NOW_MS, taken_to=3, first_waiting=0)
    assert deliver(timers, NOW_MS + 1_000) == [2]


def test_a_queue_that_lost_its_ends_is_read_as_far_as_it_goes() -> None:
    timers = begun(TimerProgress(read_ms=NOW_MS, taken_to=90, first_waiting=3))
    timers.on_opened(min_offset=10, max_offset=20)
    assert timers.read_to == 10
    timers.read_to = 20
    assert timers.progress(NOW_MS) is not None


def test_the_first_that_waits_is_known_to_a_few_thousand() -> None:
    timers = begun()
    take(timers, *(NOW_MS + 1_000 * (n != 9_000) for n in range(10_000)))
    assert deliver(timers, NOW_MS + 1_000) == [9_000]
    take(timers, NOW_MS + 90_000)
    deliver(timers, NOW_MS + 2_000)
    progress = timers.progress(NOW_MS + 2_000)
    assert progress is not None
    assert 10_000 - 4_096 < progress.first_waiting <= 10_000


def test_a_message_is_taken_back_by_its_key_and_slot() -> None:
    timers = begun()
    take(timers, NOW_MS, NOW_MS, NOW_MS + 1_000)
    timers.cancel(NOW_MS, b"T+U1")
    assert timers.cancelled_in(NOW_MS) == {b"T+U1"}
    assert timers.cancelled_in(NOW_MS + 1_000) == set()
    timers.next_due(NOW_MS + 1_000)
    timers.on_delivered()
    assert timers.cancelled_in(NOW_MS) == {b"T+U1"}
    timers.on_delivered()
    assert timers.cancelled_in(NOW_MS) == set()


def test_a_million_messages_wait_in_less_than_150_mb() -> None:
    count = 50_000
    tracemalloc.start()
    try:
        timers = begun()
        take(timers, *(NOW_MS + 1_000 * n for n in range(count)))
        used_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used_bytes * 1_000_000 / count < 150 << 20
