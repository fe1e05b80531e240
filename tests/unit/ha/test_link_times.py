from tanist.ha.link_times import LinkTimes


def test_the_next_tick_is_when_a_heartbeat_is_due_or_the_silence_is_over() -> None:
    times = LinkTimes(100.0, 5.0, 20.0)
    assert times.next_tick_s == 105.0
    times.written_s = 118.0
    assert times.next_tick_s == 120.0


def test_a_heartbeat_that_is_due_is_taken_once() -> None:
    times = LinkTimes(100.0, 5.0, 20.0)
    assert not times.take_heartbeat(104.9)
    assert times.take_heartbeat(105.0)
    assert not times.take_heartbeat(105.0)


def test_silence_is_told_when_it_is_too_long_and_ends_with_the_next_byte() -> None:
    times = LinkTimes(100.0, 5.0, 20.0)
    assert times.silent_ms(119.9) is None
    assert times.silent_ms(121.0) == 21_000.0
    times.read_s = 121.0
    assert times.silent_ms(121.0) is None
