from tanist.ha.dialect_choice import MAX_VAIN, ROCKETMQ_S, DialectChoice
from tanist.ha.replicas import Dialect


def test_a_master_is_first_spoken_to_as_one_of_tanists() -> None:
    for rocketmq_dialect in (Dialect.CLASSIC, Dialect.AUTOSWITCH, None):
        assert DialectChoice(rocketmq_dialect).next("10.0.0.1:10912", 5.0) is Dialect.TANIST


def test_a_master_that_does_not_answer_the_hello_is_taken_for_rocketmqs_for_a_while() -> None:
    choice = DialectChoice(Dialect.CLASSIC)
    assert choice.on_silence("10.0.0.1:10912", Dialect.TANIST, 5.0)
    assert choice.next("10.0.0.1:10912", 5.0) is Dialect.CLASSIC
    assert choice.next("10.0.0.1:10912", 5.0 + ROCKETMQ_S - 1) is Dialect.CLASSIC
    assert choice.next("10.0.0.1:10912", 5.0 + ROCKETMQ_S) is Dialect.TANIST


def test_a_master_that_is_known_to_be_rocketmqs_is_spoken_to_as_such_at_once() -> None:
    choice = DialectChoice(Dialect.AUTOSWITCH)
    assert choice.is_open("10.0.0.1:10912", 5.0)
    choice.on_told("10.0.0.1:10912", 5.0)
    assert not choice.is_open("10.0.0.1:10912", 5.0)
    assert choice.next("10.0.0.1:10912", 5.0) is Dialect.AUTOSWITCH
    assert choice.next("10.0.0.2:10912", 5.0) is Dialect.TANIST
    assert choice.is_open("10.0.0.1:10912", 5.0 + ROCKETMQ_S)


def test_nobody_is_asked_who_is_known_or_is_not_followed_in_another_dialect() -> None:
    assert not DialectChoice(None).is_open("10.0.0.1:10912", 5.0)
    choice = DialectChoice(Dialect.CLASSIC)
    choice.on_accepted("10.0.0.1:10912")
    assert not choice.is_open("10.0.0.1:10912", 5.0)


def test_another_master_is_another_question() -> None:
    choice = DialectChoice(Dialect.CLASSIC)
    choice.on_silence("10.0.0.1:10912", Dialect.TANIST, 5.0)
    assert choice.next("10.0.0.2:10912", 5.0) is Dialect.TANIST


def test_without_leave_nobody_is_spoken_to_in_rocketmqs_dialect() -> None:
    choice = DialectChoice(None)
    assert not choice.on_silence("10.0.0.1:10912", Dialect.TANIST, 5.0)
    assert choice.next("10.0.0.1:10912", 5.0) is Dialect.TANIST


def test_a_master_that_is_silent_in_both_dialects_is_tried_in_turns() -> None:
    choice = DialectChoice(Dialect.CLASSIC)
    choice.on_silence("10.0.0.1:10912", Dialect.TANIST, 5.0)
    choice.on_silence("10.0.0.1:10912", Dialect.CLASSIC, 6.0)
    assert choice.next("10.0.0.1:10912", 6.0) is Dialect.TANIST


def test_a_master_that_is_known_to_be_tanists_is_asked_again_before_it_is_taken_for_another() -> None:
    choice = DialectChoice(Dialect.CLASSIC)
    choice.on_accepted("10.0.0.1:10912")
    for _ in range(MAX_VAIN - 1):
        assert not choice.on_silence("10.0.0.1:10912", Dialect.TANIST, 5.0)
        assert choice.next("10.0.0.1:10912", 5.0) is Dialect.TANIST
    assert choice.on_silence("10.0.0.1:10912", Dialect.TANIST, 5.0)
    assert choice.next("10.0.0.1:10912", 5.0) is Dialect.CLASSIC


def test_a_master_that_answers_again_is_as_well_known_as_before() -> None:
    choice = DialectChoice(Dialect.CLASSIC)
    for _ in range(MAX_VAIN):
        choice.on_accepted("10.0.0.1:10912")
        assert not choice.on_silence("10.0.0.1:10912", Dialect.TANIST, 5.0)
