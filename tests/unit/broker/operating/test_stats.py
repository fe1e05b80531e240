import pytest

from tanist.broker.operating.stats import Counters, Stat

SECOND_MS, MINUTE_MS, HOUR_MS = 1_000, 60_000, 3_600_000
DAY = 738_000


class Bench:
    """Counters, and the clock that drives them."""

    def __init__(self, *, max_counters: int = 100) -> None:
        self.now_ms = 1_700_000_000_000
        self.day = DAY
        self.counters = Counters(cluster="C", boot_ms=self.now_ms, max_counters=max_counters)

    def put(self, topic: str = "T", count: int = 1, *, is_system: bool = False) -> None:
        self.counters.on_put(topic, count=count, size_bytes=100 * count, is_system=is_system)

    def pull(self, count: int, *, is_system: bool = False) -> None:
        self.counters.on_pulled("T", "G", count=count, size_bytes=100 * count, is_system=is_system)

    def pass_ms(self, span_ms: int, *, every_ms: int = SECOND_MS) -> None:
        for _ in range(0, span_ms, every_ms):
            self.now_ms += every_ms
            self.counters.on_tick(self.now_ms, local_day=self.day)


def test_what_was_never_counted_has_no_figures() -> None:
    bench = Bench()
    bench.put()
    assert bench.counters.find("TOPIC_PUT_NUMS", "T") is not None
    assert bench.counters.find("TOPIC_PUT_NUMS", "Other") is None
    assert bench.counters.find("NO_SUCH_STAT", "T") is None
    assert bench.counters.topic_tps("Other") == 0.0


def test_a_minute_is_sampled_every_ten_seconds() -> None:
    bench = Bench()
    bench.put(count=5)
    bench.pass_ms(9 * SECOND_MS)
    found = bench.counters.find(Stat.TOPIC_PUT_NUMS, "T")
    assert found is not None
    assert found.minute.sum == 0
    bench.pass_ms(SECOND_MS)
    found = bench.counters.find(Stat.TOPIC_PUT_NUMS, "T")
    assert found is not None
    assert (found.minute.sum, found.minute.tps, found.minute.average) == (5, 0.5, 1.0)
    assert bench.counters.topic_tps("T") == 0.5


def test_what_is_older_than_a_window_does_not_count_in_it() -> None:
    bench = Bench()
    bench.put(count=60)
    bench.pass_ms(2 * MINUTE_MS)
    bench.put(count=6)
    bench.pass_ms(58 * MINUTE_MS)
    bench.put(count=12)
    bench.pass_ms(10 * SECOND_MS)
    found = bench.counters.find(Stat.TOPIC_PUT_NUMS, "T")
    assert found is not None
    assert (found.minute.sum, found.hour.sum, found.day.sum) == (12, 66, 66)
    bench.pass_ms(HOUR_MS)
    found = bench.counters.find(Stat.TOPIC_PUT_NUMS, "T")
    assert found is not None
    assert (found.minute.sum, found.hour.sum, found.day.sum) == (0, 12, 78)


def test_each_answer_counts_once_for_its_group_and_once_for_the_broker() -> None:
    bench = Bench()
    bench.pull(32)
    bench.pull(8)
    bench.counters.on_missed()
    bench.pass_ms(10 * SECOND_MS)
    figures = {
        key: found.minute
        for key in (("GROUP_GET_NUMS", "T@G"), ("GROUP_GET_SIZE", "T@G"), ("BROKER_GET_NUMS", "C"))
        if (found := bench.counters.find(*key)) is not None
    }
    assert [window.sum for window in figures.values()] == [40, 4000, 40]
    assert figures["GROUP_GET_NUMS", "T@G"].average == 20.0
    assert bench.counters.rates(10) == (0.0, 0.2, 0.1, 4.0)
    assert bench.counters.group_tps("G", "T") == 4.0


def test_rates_look_back_as_far_as_asked_or_to_the_start() -> None:
    bench = Bench()
    bench.put(count=30)
    bench.pass_ms(30 * SECOND_MS)
    assert [bench.counters.rates(span).put_count for span in (10, 60, 600)] == [0.0, 1.0, 1.0]
    bench.put(count=10)
    bench.pass_ms(10 * SECOND_MS)
    assert [bench.counters.rates(span).put_count for span in (10, 60, 600)] == [1.0, 1.0, 1.0]
    bench.pass_ms(20 * MINUTE_MS)
    assert [bench.counters.rates(span).put_count for span in (10, 60, 600)] == [0.0, 0.0, 0.0]


def test_there_are_no_rates_before_the_first_second_is_over() -> None:
    bench = Bench()
    bench.put()
    assert bench.counters.rates(10).put_count == 0.0


def test_a_new_day_begins_with_what_was_counted_before_it() -> None:
    bench = Bench()
    bench.put(count=5)
    bench.put("Own", 7, is_system=True)
    bench.pull(3)
    bench.pull(9, is_system=True)
    bench.pass_ms(SECOND_MS)
    puts, gets = bench.counters.daily_puts, bench.counters.daily_gets
    assert (puts.yesterday, puts.today, puts.now) == (0, 0, 5)
    bench.day += 1
    bench.pass_ms(2 * SECOND_MS)
    bench.put()
    assert (puts.yesterday, puts.today, puts.now) == (0, 5, 6)
    assert (gets.yesterday, gets.today, gets.now) == (0, 3, 3)
    bench.day += 1
    bench.pass_ms(SECOND_MS)
    assert (puts.yesterday, puts.today, puts.now) == (5, 6, 6)


def test_the_number_of_counters_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(max_counters=5)
    for number in range(100):
        bench.put(f"T{number}")
    assert bench.counters.find(Stat.TOPIC_PUT_NUMS, "T1") is not None
    assert bench.counters.find(Stat.TOPIC_PUT_NUMS, "T2") is None
    assert bench.counters.put_count == 100
    assert ["not counted" in record.getMessage() for record in caplog.records] == [True]


def test_the_brokers_own_counters_are_never_without_room_and_never_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(max_counters=4)
    bench.counters.on_sent_back("T", "G")
    bench.counters.on_sent_back("T", "H")
    bench.put("T", 5)
    bench.pull(3)
    bench.counters.forget_topic("C")
    for _ in range(26):
        bench.pass_ms(HOUR_MS, every_ms=HOUR_MS)
    assert bench.counters.find(Stat.BROKER_PUT_NUMS, "C") is not None
    assert bench.counters.find(Stat.BROKER_GET_NUMS, "C") is not None
    assert len(caplog.records) == 1
    # There was room again, so that it is told again when there is none.
    for number in range(5):
        bench.put(f"T{number}")
    assert len(caplog.records) == 2


def test_a_counter_that_stood_still_for_a_day_is_forgotten_and_makes_room() -> None:
    bench = Bench(max_counters=3)
    bench.put("T")
    for _ in range(26):
        bench.pass_ms(HOUR_MS, every_ms=HOUR_MS)
    assert bench.counters.find(Stat.TOPIC_PUT_NUMS, "T") is None
    bench.put("U")
    assert bench.counters.find(Stat.TOPIC_PUT_NUMS, "U") is not None


def test_what_was_counted_goes_with_the_topic_and_with_the_group() -> None:
    bench = Bench()
    bench.put("T")
    bench.put("T2")
    bench.pull(1)
    bench.counters.on_pulled("T2", "G", count=1, size_bytes=1, is_system=False)
    bench.counters.forget_topic("T")
    keys = [
        ("TOPIC_PUT_NUMS", "T"),
        ("GROUP_GET_NUMS", "T@G"),
        ("TOPIC_PUT_NUMS", "T2"),
        ("GROUP_GET_NUMS", "T2@G"),
    ]
    assert [bench.counters.find(*key) is None for key in keys] == [True, True, False, False]
    bench.counters.forget_group("G")
    assert [bench.counters.find(*key) is None for key in keys] == [True, True, False, True]
    assert bench.counters.find("BROKER_GET_NUMS", "C") is not None


def test_what_is_sent_back_is_counted_for_the_topic_that_it_came_from() -> None:
    bench = Bench()
    bench.counters.on_sent_back("T", "G")
    bench.pass_ms(10 * SECOND_MS)
    found = bench.counters.find("SNDBCK_PUT_NUMS", "T@G")
    assert found is not None
    assert found.minute.sum == 1
