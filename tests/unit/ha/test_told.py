import pytest

from tanist.ha.told import EVERY_MS, MAX_TOLD, ToldRefusals


@pytest.mark.behaviour("S5-13")
def test_each_kind_from_each_host_is_told_once_a_minute() -> None:
    told = ToldRefusals()
    assert told.is_news("10.0.0.7", "no hello", now_ms=0)
    assert not told.is_news("10.0.0.7", "no hello", now_ms=EVERY_MS - 1)
    assert told.is_news("10.0.0.7", "not proven", now_ms=10)
    assert told.is_news("10.0.0.8", "no hello", now_ms=10)
    assert told.is_news("10.0.0.7", "no hello", now_ms=EVERY_MS)
    assert not told.is_news("10.0.0.8", "no hello", now_ms=EVERY_MS)


def test_many_hosts_do_not_flood_the_log_either() -> None:
    told = ToldRefusals()
    lines = [host for host in range(10_000) if told.is_news(str(host), "no hello", now_ms=host)]
    assert len(lines) == MAX_TOLD
    assert told.is_news("another", "no hello", now_ms=EVERY_MS + 10_000)


def test_a_clock_set_back_silences_nobody_for_good() -> None:
    told = ToldRefusals()
    assert told.is_news("10.0.0.7", "no hello", now_ms=10 * EVERY_MS)
    assert not told.is_news("10.0.0.7", "no hello", now_ms=0)
    assert told.is_news("10.0.0.7", "no hello", now_ms=11 * EVERY_MS)
