from tanist.broker.pull_progress import PullProgress


def test_the_last_pull_of_a_queue_says_how_far_its_group_is() -> None:
    progress = PullProgress()
    assert progress.find("G", "T", 0) is None
    progress.note("G", "T", 0, 32)
    progress.note("G", "T", 1, 5)
    progress.note("G", "T", 0, 8)
    progress.note("H", "T", 0, 99)
    assert (progress.find("G", "T", 0), progress.find("G", "T", 1), progress.find("H", "T", 0)) == (8, 5, 99)
    assert progress.find("G", "U", 0) is None


def test_a_group_or_topic_that_is_gone_is_forgotten() -> None:
    progress = PullProgress()
    progress.note("G", "T", 0, 20)
    progress.note("H", "T", 0, 20)
    progress.keep(lambda group, _topic: group == "H")
    assert (progress.find("G", "T", 0), progress.find("H", "T", 0)) == (None, 20)
