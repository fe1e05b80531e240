from itertools import accumulate, pairwise

from tanist.client.session.master_search import MasterSearch

OLD, NEW = "10.0.0.7:10911", "10.0.0.8:10911"


def steps(search: MasterSearch) -> list[float]:
    """All waits that are left, with the least jitter."""
    waits: list[float] = []
    while (wait_s := search.next_s(0.0)) is not None:
        waits.append(wait_s)
    return waits


def test_the_first_questions_come_soon_and_later_ones_are_few() -> None:
    asked_at_s = list(accumulate(steps(MasterSearch(OLD))))
    assert asked_at_s[0] < 0.05
    assert max(later - at_s for at_s, later in pairwise(asked_at_s[:10])) < 0.15
    assert sum(at_s > 1 for at_s in asked_at_s) < 30
    assert 5 < asked_at_s[-1] < 20


def test_another_master_ends_the_search() -> None:
    search = MasterSearch(OLD)
    search.on_route(OLD)
    assert search.next_s(0.5) is not None
    search.on_route(NEW)
    assert search.next_s(0.5) is None


def test_a_master_that_was_gone_from_the_route_and_is_there_again_ends_it_too() -> None:
    search = MasterSearch(OLD)
    search.on_route(None)
    assert not search.is_over
    search.on_route(OLD)
    assert search.is_over


def test_the_old_master_ends_it_when_it_can_be_reached_again() -> None:
    search = MasterSearch(OLD)
    search.on_reached(NEW)
    assert not search.is_over
    search.on_reached(OLD)
    assert search.is_over
