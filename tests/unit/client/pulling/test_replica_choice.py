"""Which replica is read: the master if it may be, another at once if not, and never one that just refused."""

from tanist.client.pulling.replica_choice import FIRST_REST_S, MOST_REST_S, ReplicaChoice

ALL = {0: "m:1", 1: "s:1", 2: "t:1"}
SLAVES = {1: "s:1", 2: "t:1"}
NOW_S = 1000.0


def choice_of(replicas: dict[int, str] = ALL) -> ReplicaChoice:
    choice = ReplicaChoice()
    choice.on_route(replicas)
    return choice


def test_there_is_no_choice_without_a_route() -> None:
    assert ReplicaChoice().choose(NOW_S) is None
    assert choice_of({}).choose(NOW_S) is None


def test_the_master_is_read_first() -> None:
    assert choice_of().choose(NOW_S) == 0


def test_a_suggestion_is_followed_there_and_back() -> None:
    choice = choice_of()
    choice.on_answer(0, 1)
    assert choice.choose(NOW_S) == 1
    choice.on_answer(1, 0)
    assert choice.choose(NOW_S) == 0


def test_a_suggestion_that_the_route_does_not_know_leaves_the_master() -> None:
    choice = choice_of()
    choice.on_answer(0, 9)
    assert choice.choose(NOW_S) == 0


def test_a_slave_is_read_while_the_route_has_no_master() -> None:
    choice = choice_of()
    choice.on_route(SLAVES)
    assert choice.choose(NOW_S) == 1


def test_a_master_that_is_back_in_the_route_is_read_at_once_whatever_the_slave_suggested() -> None:
    choice = choice_of(SLAVES)
    choice.on_answer(1, 1)
    choice.on_route(ALL)
    assert choice.choose(NOW_S) == 0


def test_a_lost_master_is_passed_over_at_once_and_asked_again_after_its_rest() -> None:
    choice = choice_of()
    choice.on_lost(0, NOW_S)
    assert choice.choose(NOW_S) == 1
    choice.on_answer(1, 0)
    assert choice.choose(NOW_S) == 1
    assert choice.choose(NOW_S + FIRST_REST_S) == 0


def test_a_replica_that_is_lost_again_and_again_rests_longer_up_to_a_bound() -> None:
    choice = choice_of()
    now_s = NOW_S
    for rest_s in (1, 2, 4, 8, 16, MOST_REST_S, MOST_REST_S):
        choice.on_lost(0, now_s)
        assert choice.choose(now_s + rest_s - 0.01) == 1
        now_s += rest_s
        assert choice.choose(now_s) == 0
    choice.on_answer(0, 0)
    choice.on_lost(0, now_s)
    assert choice.choose(now_s + FIRST_REST_S) == 0


def test_a_lost_slave_leads_back_to_the_master() -> None:
    choice = choice_of()
    choice.on_answer(0, 2)
    choice.on_lost(2, NOW_S)
    assert choice.choose(NOW_S) == 0


def test_all_slaves_are_tried_before_one_is_asked_again() -> None:
    choice = choice_of()
    choice.on_lost(0, NOW_S)
    choice.on_refused(1, None, NOW_S)
    assert choice.choose(NOW_S) == 2
    choice.on_lost(2, NOW_S + 0.1)
    assert choice.choose(NOW_S + 0.2) == 0


def test_the_only_replica_is_asked_again_although_it_refused() -> None:
    choice = choice_of({1: "s:1"})
    choice.on_refused(1, None, NOW_S)
    assert choice.choose(NOW_S) == 1


def test_a_refusal_in_favour_of_another_is_followed_at_once() -> None:
    choice = choice_of()
    choice.on_refused(0, 2, NOW_S)
    assert choice.choose(NOW_S) == 2
    choice.on_refused(2, 0, NOW_S)
    assert choice.choose(NOW_S) == 0


def test_a_refusal_in_favour_of_itself_is_a_refusal() -> None:
    choice = choice_of()
    choice.on_refused(0, 0, NOW_S)
    assert choice.choose(NOW_S) == 1


def test_a_refusal_does_not_call_a_lost_master_back() -> None:
    choice = choice_of()
    choice.on_lost(0, NOW_S)
    choice.on_refused(1, 0, NOW_S)
    assert choice.choose(NOW_S) == 2


def test_an_answer_does_not_call_a_master_back_that_refused() -> None:
    choice = choice_of()
    choice.on_refused(0, None, NOW_S)
    choice.on_answer(1, 0)
    assert choice.choose(NOW_S) == 1


def test_a_new_master_at_another_address_is_read_at_once() -> None:
    choice = choice_of()
    choice.on_lost(0, NOW_S)
    choice.on_answer(1, 1)
    choice.on_route({0: "s:1", 2: "t:1"})
    assert choice.choose(NOW_S) == 0


def test_a_route_that_says_nothing_new_ends_no_rest() -> None:
    choice = choice_of()
    choice.on_lost(0, NOW_S)
    choice.on_route(dict(ALL))
    choice.on_route({**ALL, 3: "u:1"})
    assert choice.choose(NOW_S) == 1


def test_who_is_known_to_be_read_rests_no_more() -> None:
    choice = choice_of()
    choice.on_lost(0, NOW_S)
    choice.on_refused(1, 2, NOW_S)
    assert choice.choose(NOW_S) == 2
    choice.on_reader()
    assert choice.choose(NOW_S) == 0
