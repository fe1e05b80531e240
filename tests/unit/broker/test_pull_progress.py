from tanist.broker.pull_progress import TICK_MS, PullProgress

NOW_MS = 1_700_000_000_000


def _tick(progress: PullProgress, now_ms: int, *, is_there: bool = True) -> None:
    progress.on_tick(now_ms, lambda _group, _topic: is_there)


def test_the_last_pull_of_a_queue_says_how_far_its_group_is() -> None:
    progress = PullProgress()
    assert progress.find("G", "T", 0) is None
    progress.note("G", "T", 0, 32, 32)
    progress.note("G", "T", 1, 5, 0)
    progress.note("G", "T", 0, 8, 3)
    progress.note("H", "T", 0, 99, 1)
    assert (progress.find("G", "T", 0), progress.find("G", "T", 1), progress.find("H", "T", 0)) == (8, 5, 99)
    assert progress.find("G", "U", 0) is None


def test_the_rate_is_that_of_the_last_minute() -> None:
    progress = PullProgress()
    assert progress.rate("G", "T") == 0.0
    progress.note("G", "T", 0, 20, 20)
    assert progress.rate("G", "T") == 0.0
    _tick(progress, NOW_MS)
    assert progress.rate("G", "T") == 2.0
    for number in range(1, 7):
        progress.note("G", "T", 0, 20, 0)
        _tick(progress, NOW_MS + number * TICK_MS)
    assert progress.rate("G", "T") == 0.0
    progress.note("G", "T", 0, 80, 60)
    _tick(progress, NOW_MS + 7 * TICK_MS)
    assert progress.rate("G", "T") == 1.0


def test_a_group_or_topic_that_is_gone_is_forgotten() -> None:
    progress = PullProgress()
    progress.note("G", "T", 0, 20, 20)
    _tick(progress, NOW_MS, is_there=False)
    assert progress.find("G", "T", 0) is None
    assert progress.rate("G", "T") == 0.0
