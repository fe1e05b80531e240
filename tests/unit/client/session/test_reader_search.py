from itertools import permutations

import pytest

from tanist.client.session.reader_search import (
    MAX_ADDRESSES,
    WAIT_S,
    Question,
    ReaderSearch,
    Standing,
    by_permission,
    choose,
)
from tanist.model.reading import FULL, NONE
from tanist.model.topics import READ, WRITE

MASTER, SLAVE = "10.0.0.7:10911", "10.0.0.8:10911"
NOT_READ = Standing(NONE, MASTER, 3)


def ask(search: ReaderSearch, *, chance: float = 0.0) -> dict[str, Question]:
    """The questions that are due."""
    return {question.address: question for question in search.next_questions(chance)}


@pytest.mark.behaviour("S3-14")
def test_replicas_are_tried_in_the_order_full_write_read_none() -> None:
    in_order = [("a:1", FULL), ("b:1", WRITE), ("c:1", READ), ("d:1", NONE)]
    for some_order in permutations(in_order):
        standings = {address: Standing(permission) for address, permission in some_order}
        assert by_permission(standings) == ["a:1", "b:1", "c:1", "d:1"]


@pytest.mark.behaviour("S3-14")
def test_the_first_that_may_be_read_is_chosen() -> None:
    standings = {"w:1": Standing(WRITE), "n:1": Standing(NONE)}
    assert choose(standings) is None
    standings["r:1"] = Standing(READ)
    assert choose(standings) == "r:1"
    standings["f:1"] = Standing(FULL)
    assert choose(standings) == "f:1"


def test_all_are_asked_at_once_and_whoever_may_be_read_ends_the_search() -> None:
    search = ReaderSearch([MASTER, SLAVE])
    questions = ask(search)
    assert questions == {address: Question(address, 0.0, 0.0) for address in (MASTER, SLAVE)}
    assert ask(search) == {}
    search.on_standing(questions[SLAVE], Standing(READ, SLAVE, 4), took_s=0.01)
    assert search.is_over
    assert search.found == SLAVE
    assert search.found_term == 4


def test_one_that_was_asked_by_way_of_another_is_read_where_it_is() -> None:
    search = ReaderSearch([MASTER])
    search.on_standing(ask(search)[MASTER], Standing(READ, SLAVE, 4), took_s=0.01)
    assert search.found == SLAVE


def test_one_that_may_not_be_read_is_asked_with_a_question_that_waits_for_another_reader() -> None:
    search = ReaderSearch([SLAVE])
    assert not search.is_hopeful
    search.on_standing(ask(search)[SLAVE], NOT_READ, took_s=0.01)
    assert search.is_hopeful
    assert ask(search)[SLAVE] == Question(SLAVE, 0.0, WAIT_S, MASTER)


def test_a_question_that_waited_is_asked_again_at_once_and_one_that_did_not_after_pauses() -> None:
    search = ReaderSearch([SLAVE])
    search.on_standing(ask(search)[SLAVE], NOT_READ, took_s=0.01)
    pauses_s: list[float] = []
    for _ in range(12):
        question = ask(search)[SLAVE]
        pauses_s.append(question.after_s)
        search.on_standing(question, NOT_READ, took_s=0.01)
    assert pauses_s[0] == 0.0
    assert pauses_s[1:] == sorted(pauses_s[1:])
    assert pauses_s[1] > 0
    assert 0.4 < pauses_s[-1] <= 1.0
    search.on_standing(ask(search)[SLAVE], NOT_READ, took_s=WAIT_S)
    assert ask(search)[SLAVE].after_s == 0.0


def test_one_that_can_not_be_reached_is_asked_again_after_ever_longer_pauses() -> None:
    search = ReaderSearch([MASTER])
    pauses_s: list[float] = []
    for _ in range(12):
        pauses_s.append(ask(search)[MASTER].after_s)
        search.on_lost(MASTER)
    assert pauses_s[0] == 0.0
    assert pauses_s == sorted(pauses_s)
    assert pauses_s[-1] == 2.5
    assert search.is_lost(MASTER)
    assert search.has_asked_all
    assert not search.is_hopeful
    assert not search.is_over


def test_while_another_answers_one_that_can_not_be_reached_is_asked_each_second_at_most() -> None:
    search = ReaderSearch([MASTER, SLAVE])
    questions = ask(search)
    search.on_standing(questions[SLAVE], NOT_READ, took_s=0.01)
    for _ in range(12):
        search.on_lost(MASTER)
        ask(search)
    search.on_lost(MASTER)
    assert 0.5 <= ask(search, chance=0.9)[MASTER].after_s <= 1.0


def test_a_reader_that_is_named_is_asked_itself_and_not_believed() -> None:
    search = ReaderSearch([SLAVE])
    search.on_standing(ask(search)[SLAVE], NOT_READ, took_s=0.01)
    assert not search.is_over
    assert ask(search)[MASTER] == Question(MASTER, 0.0, 0.0)
    assert not search.has_asked_all


def test_names_without_end_are_not_all_asked() -> None:
    search = ReaderSearch(["a:1"])
    for number in range(100):
        for question in search.next_questions(0.0):
            standing = Standing(NONE, f"{question.address}{number % 10}", number)
            search.on_standing(question, standing, took_s=WAIT_S)
    assert len(search.standings) <= MAX_ADDRESSES


def test_if_those_who_answer_do_not_know_the_question_the_search_is_over_and_found_nobody() -> None:
    search = ReaderSearch([MASTER, SLAVE])
    ask(search)
    search.on_foreign(SLAVE)
    assert not search.is_over
    search.on_lost(MASTER)
    assert search.is_over
    assert search.found is None

    alone = ReaderSearch([MASTER])
    ask(alone)
    alone.on_foreign(MASTER)
    assert alone.is_over


def test_one_that_does_not_know_the_question_does_not_end_the_search_while_another_does() -> None:
    search = ReaderSearch([MASTER, SLAVE])
    questions = ask(search)
    search.on_foreign(MASTER)
    search.on_standing(questions[SLAVE], Standing(NONE), took_s=0.01)
    assert not search.is_over
    assert list(ask(search)) == [SLAVE]


def test_what_one_said_that_is_lost_since_counts_no_more() -> None:
    search = ReaderSearch([SLAVE])
    search.on_standing(ask(search)[SLAVE], NOT_READ, took_s=0.01)
    ask(search)
    search.on_lost(SLAVE)
    assert not search.is_hopeful
    assert ask(search)[SLAVE].wait_s == 0.0


def test_a_search_among_nobody_is_over() -> None:
    assert ReaderSearch([]).is_over
