import pytest

from tanist.broker.resets.corrections import FORGET_MS, LOOP_COUNT, MAX_WATCHED, Corrections, Place, Run

PLACE = Place("G", "c1", "T", 0)
WRONG = 999_999_999


class Seen(Corrections):
    """Corrections, and what their listeners hear."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[int, int]] = []
        self.alarms: list[int] = []
        self.listeners.append(lambda _place, run: self.events.append((run.asked, run.corrected)))
        self.loop_listeners.append(self._on_loop)

    def _on_loop(self, _place: Place, run: Run) -> None:
        self.alarms.append(run.count)


@pytest.mark.behaviour("S4-48")
def test_a_correction_is_one_event_however_often_it_is_asked_for() -> None:
    seen = Seen()
    for number in range(20):
        seen.on_corrected(PLACE, WRONG, 50 + number, now_ms=number)
    assert (seen.events, seen.count) == ([(WRONG, 50)], 20)


def test_after_a_pull_within_the_queue_the_next_correction_is_another_event() -> None:
    seen = Seen()
    seen.on_corrected(PLACE, WRONG, 50, now_ms=0)
    seen.on_legal(PLACE)
    assert seen.watched == {}
    seen.on_corrected(PLACE, WRONG, 50, now_ms=1)
    assert len(seen.events) == 2


def test_another_offset_outside_of_the_queue_is_another_event() -> None:
    seen = Seen()
    seen.on_corrected(PLACE, WRONG, 50, now_ms=0)
    seen.on_corrected(PLACE, -7, 0, now_ms=1)
    assert seen.events == [(WRONG, 50), (-7, 0)]


@pytest.mark.behaviour("S4-51")
def test_who_is_corrected_over_and_over_without_reading_is_an_alarm_once() -> None:
    seen = Seen()
    for number in range(LOOP_COUNT + 5):
        seen.on_corrected(PLACE, WRONG, 50, now_ms=number)
    assert (seen.alarms, list(seen.loops())) == ([LOOP_COUNT], [PLACE])


def test_a_consumer_that_takes_its_correction_each_time_does_not_loop() -> None:
    seen = Seen()
    for number in range(LOOP_COUNT * 2):
        seen.on_corrected(PLACE, WRONG, 50, now_ms=number)
        seen.on_legal(PLACE)
    assert (seen.alarms, seen.loops()) == ([], {})


def test_who_is_gone_is_forgotten() -> None:
    seen = Seen()
    for _ in range(LOOP_COUNT):
        seen.on_corrected(PLACE, WRONG, 50, now_ms=0)
    seen.on_tick(FORGET_MS - 1)
    assert seen.loops()
    seen.on_tick(FORGET_MS)
    assert seen.watched == {}


def test_so_many_are_watched_at_most() -> None:
    seen = Seen()
    for number in range(MAX_WATCHED + 3):
        seen.on_corrected(PLACE._replace(queue_id=number), WRONG, 0, now_ms=0)
    assert (len(seen.watched), len(seen.events)) == (MAX_WATCHED, MAX_WATCHED + 3)
