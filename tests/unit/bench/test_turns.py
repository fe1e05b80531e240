from bench.figures import Series
from bench.turns import Allowance, take_turns


def test_the_sides_take_turns_in_going_first() -> None:
    order: list[str] = []
    sides = {name: lambda name=name: order.append(name) for name in "ab"}
    take_turns("it", sides, Allowance(60), rounds=3)
    assert "".join(order) == "abbaab"


def test_rounds_that_warm_up_do_not_count() -> None:
    count = iter(range(9))
    turns = take_turns("it", {"a": lambda: next(count)}, Allowance(60), rounds=2, warm_rounds=3)
    assert turns.series(float) == (Series("a", (3.0, 4.0)),)


def test_without_time_there_is_one_round_and_a_note() -> None:
    allowance = Allowance(0)
    turns = take_turns("it", {"a": lambda: 1}, allowance, rounds=3)
    assert turns.seen == {"a": [1]}
    assert allowance.notes == ["it: 1 of 3 rounds, for want of time"]


def test_a_round_with_failures_counts_for_nobody() -> None:
    failures = iter([1, 0, 0])
    allowance = Allowance(60)
    turns = take_turns(
        "it",
        {"a": lambda: next(failures), "b": lambda: 0},
        allowance,
        rounds=2,
        is_void=lambda failed: failed > 0,
    )
    assert turns.seen == {"a": [0, 0], "b": [0, 0]}
    assert allowance.notes == ["it: a round was void, because sends failed"]


def test_who_always_fails_is_given_up() -> None:
    turns = take_turns("it", {"a": lambda: 1}, Allowance(60), rounds=2, is_void=bool)
    assert turns.seen == {"a": []}
