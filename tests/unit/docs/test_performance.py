from bench.race_page import outdated


def test_the_page_about_performance_is_what_the_last_full_race_says() -> None:
    assert not outdated(), "make them again: make race-page"
