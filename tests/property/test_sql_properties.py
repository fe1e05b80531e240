"""Filter expressions of any shape: what is printed is read back, and what is read says what logic says."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.sql import BadExpression, compile_condition
from tanist.broker.sql.compiler import Condition
from tanist.broker.sql.nodes import And, Comparator, Comparison, IsNull, Node, Not, Or, Property, Whole
from tanist.broker.sql.parser import parse
from tanist.broker.sql.values import Unjudgeable
from tests.support.sql_trees import random_claim, to_text

RANDOM = st.randoms(use_true_random=False)
NAMES = ("a", "b", "c")
MESSAGES = st.dictionaries(st.sampled_from(NAMES), st.integers(-3, 3).map(str))
WORDS = st.sampled_from(
    (
        *(
            "a",
            "b",
            "5",
            "5.5",
            "'x'",
            "''",
            "NULL",
            "TRUE",
            "NOT",
            "AND",
            "OR",
            "IS",
            "IN",
            "BETWEEN",
            "LIKE",
        ),
        *(
            "ESCAPE",
            "CONTAINS",
            "=",
            "<>",
            "<",
            ">=",
            "(",
            ")",
            ",",
            "+",
            "-",
            "*",
            "/",
            "'",
            "--",
            "/*",
            "\n",
        ),
    )
)


@st.composite
def claims(draw: st.DrawFn, depth: int = 3) -> Node:
    """Trees of comparisons by size, questions for null, and logic."""
    inner = claims(depth - 1)
    kinds = ["comparison", "null", "not", "and", "or"] if depth > 0 else ["comparison", "null"]
    match draw(st.sampled_from(kinds)):
        case "comparison":
            sign = draw(st.sampled_from([sign for sign in Comparator if sign.value not in ("=", "<>")]))
            return Comparison(sign, Property(draw(st.sampled_from(NAMES))), Whole(draw(st.integers(0, 3))))
        case "null":
            return IsNull(Property(draw(st.sampled_from(NAMES))), draw(st.booleans()))
        case "not":
            return Not(draw(inner))
        case "and":
            return And(tuple(draw(st.lists(inner, min_size=2, max_size=3))))
        case _:
            return Or(tuple(draw(st.lists(inner, min_size=2, max_size=3))))


TRUE, UNKNOWN, FALSE = 1.0, 0.5, 0.0


def worth(node: Node, message: dict[str, str]) -> float:
    """Kleene's logic by numbers: AND is the least of its terms, OR the greatest, NOT what is left of 1."""
    match node:
        case And(terms):
            return min(worth(term, message) for term in terms)
        case Or(terms):
            return max(worth(term, message) for term in terms)
        case Not(operand):
            return 1 - worth(operand, message)
        case IsNull(Property(name), is_negated):
            return float((name in message) is is_negated)
        case Comparison(sign, Property(name), Whole(value)):
            if name not in message:
                return UNKNOWN
            found = int(message[name])
            return float(
                {
                    Comparator.GREATER: found > value,
                    Comparator.GREATER_OR_EQUAL: found >= value,
                    Comparator.LESS: found < value,
                    Comparator.LESS_OR_EQUAL: found <= value,
                }[sign]
            )
        case _:
            raise AssertionError(node)


@given(claims(), MESSAGES)
def test_every_message_is_judged_as_three_valued_logic_has_it(root: Node, message: dict[str, str]) -> None:
    found = {TRUE: True, UNKNOWN: None, FALSE: False}[worth(root, message)]
    assert Condition(root).evaluate(message) is found
    assert Condition(root).holds(message) is (found is True)


@given(claims(), RANDOM)
def test_what_is_printed_is_read_back(root: Node, rng: random.Random) -> None:
    assert parse(to_text(root, rng)) == root


@given(RANDOM, RANDOM)
def test_what_is_understood_of_a_wild_tree_is_the_tree(wild: random.Random, rng: random.Random) -> None:
    root = random_claim(wild, 3, is_extended=True)
    try:
        found = parse(to_text(root, rng))
    except BadExpression:
        return  # Not every tree makes sense.
    assert repr(found) == repr(root)


@given(st.text() | st.lists(WORDS).map(" ".join), MESSAGES)
def test_any_text_is_understood_or_refused_and_any_message_judged(text: str, message: dict[str, str]) -> None:
    assert outcome(text, message) in ("refused", "failed", True, False, None)


def outcome(text: str, message: dict[str, str]) -> bool | str | None:
    try:
        return compile_condition(text).evaluate(message)
    except BadExpression as error:
        return "refused" if error.position <= len(text) else f"refused at {error.position}"
    except Unjudgeable:
        return "failed"


@given(RANDOM, st.dictionaries(st.sampled_from(("a", "b", "c", "like", "Escape")), st.text(min_size=1)))
def test_a_wild_expression_never_fails_in_another_way(wild: random.Random, message: dict[str, str]) -> None:
    root = random_claim(wild, 4, is_extended=True)
    try:
        condition = compile_condition(to_text(root, wild))
    except BadExpression:
        return
    assert condition.holds(message) in (True, False)
