import pytest

from tanist.broker import pull_progress
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


def test_so_many_queues_are_noted_and_those_that_are_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_progress, "MAX_NOTED", 2)
    progress = PullProgress()
    for queue_id in range(3):
        progress.note("G", "T", queue_id, 1)
    progress.note("H", "T", 0, 1)
    progress.note("G", "T", 0, 2)
    assert [progress.find("G", "T", queue_id) for queue_id in range(3)] == [2, 1, None]
    progress.keep(lambda _group, _topic: False)
    progress.note("H", "T", 0, 1)
    assert progress.find("H", "T", 0) == 1


def test_many_groups_are_looked_at_a_few_at_a_time_and_none_is_left_out() -> None:
    progress, looked_at = PullProgress(), list[str]()

    def is_there(group: str, _topic: str) -> bool:
        looked_at.append(group)
        return True

    names = [f"G{number}" for number in range(5_000)]
    for name in names:
        progress.note(name, "T", 0, 1)
    progress.keep(is_there)
    assert len(looked_at) <= 2_000
    for _ in range(2):
        progress.keep(is_there)
    assert sorted(looked_at) == sorted(names)


def test_watchers_hear_of_pulls_that_come_further_and_not_of_those_that_find_nothing() -> None:
    progress, heard = PullProgress(), list[tuple[str, str]]()
    progress.note("g", "T", 0, 5)
    progress.watchers.append(lambda group, topic: heard.append((group, topic)))
    for next_offset in (5, 5, 7, 7, 6):
        progress.note("g", "T", 0, next_offset)
    assert heard == [("g", "T")] * 2
    assert progress.find("g", "T", 0) == 6


def test_only_what_was_pulled_beyond_an_offset_is_in_the_hands_of_clients() -> None:
    progress = PullProgress()
    for queue, next_offset in enumerate((5, 7, 9)):
        progress.note("g", "T", queue, next_offset)
    assert progress.beyond("g", "T", {0: 5, 1: 6, 3: 0}) == {1: 7}
