"""Filters by SQL mean to Tanist what they mean to RocketMQ: its own classes are asked the same questions."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from tanist.broker.sql import BadExpression, compile_condition
from tanist.broker.sql.nodes import Computation, Fraction, Like, Node, children
from tanist.broker.sql.parser import parse
from tanist.broker.sql.values import Unjudgeable
from tests.support import partners
from tests.support.rocketmq import install
from tests.support.rocketmq.client import ask
from tests.support.sql_trees import NAMES, random_claim, to_text

pytestmark = pytest.mark.partner("java", "maven")

VALUES = (
    *("0", "5", "7", "+5", "-5", "007", "2147483647", "2147483648", "-2147483648", "9223372036854775807"),
    *(
        "9223372036854775808",
        "5.0",
        "5.5",
        "-0.0",
        "1e3",
        "5d",
        "5f",
        "5l",
        " 5 ",
        "5 ",
        "0x1p3",
        "-0X.8P-1f",
    ),
    *("NaN", "-NaN", "Infinity", "-Infinity", "inf", "1e999", "1_000", ".5", "5.", ".", "٣", "five"),
    *("true", "TRUE", "false", "abc", "it's", "Größe 🚀", "a%b_c", "'", "--"),
)
EDGES = (
    *("", " ", "a", "NULL", "TRUE", "5", "'x'", "-a", "(a)", "()", "a =", "= 5", "a = b", "b = a", "a <> b"),
    *("a = NULL", "NULL = a", "a IS NULL", "a IS NOT NULL", "a IS TRUE", "a = TRUE", "TRUE = a", "a = FALSE"),
    *("TRUE = 5", "5 = TRUE", "5 = '5'", "'5' = 5", "5 = 5.0", "5.0 = 5", "a > '5'", "a > TRUE", "a > NULL"),
    *("NOT a = 5", "NOT (a = 5)", "NOT a > 5", "NOT a IS NULL", "NOT NOT a", "NOT 5", "NOT - a IS NULL"),
    *("a > 5 > b", "a = b = c", "a > 5 = TRUE", "(a > 5) = b", "b = (a > 5)", "(a > 5) = (b > 5)"),
    *("a BETWEEN 1 AND 7", "a BETWEEN 7 AND 1", "a BETWEEN -1 AND -7", "a NOT BETWEEN 7 AND 1"),
    *("a BETWEEN b AND c", "a BETWEEN 1 AND NULL", "a BETWEEN '1' AND '7'", "5 BETWEEN a AND b"),
    *("a BETWEEN 1 AND 7 AND b = 5", "a BETWEEN 1 AND 7.5", "a BETWEEN 7.5 AND 1", "NOT a BETWEEN 1 AND 7"),
    *("a IN ('5')", "a IN (5)", "a IN ()", "a IN ('5',)", "(a) IN ('5')", "+a IN ('5')", "-a IN ('5')"),
    *("'5' IN ('5')", "NOT a IN ('5')", "a NOT IN ('5','7','x','y','z','w')", "a NOT NULL", "a NOT 5"),
    *("a CONTAINS 'b'", "a CONTAINS ''", "a NOT CONTAINS ''", "a CONTAINS b", "5 CONTAINS '5'"),
    *(
        "a STARTSWITH 'a'",
        "a ENDSWITH 'c'",
        "a NOT STARTSWITH 'a'",
        "a NOT ENDSWITH 'c'",
        "'abc' CONTAINS 'b'",
    ),
    *("a = 5L", "a = 5l", "a = 5.", "a = .5", "a = 5E0", "a = 5e+0", "a = 0.5e1", "a = 007.5"),
    *("a = 9223372036854775807", "a = 9223372036854775808", "a = -9223372036854775808", "a = 1e308"),
    *(
        "a = 1e309",
        "a = 1e-400",
        "a = -2147483648",
        "a = - -5",
        "a = --5",
        "a = --5\n5",
        "a = +5",
        "a = +'5'",
    ),
    *("a /* x */ = 5", "a /* * / ** */ = 5", "a /* x = 5", "a = 5 /**/", "a = 5 /***/ ", "a = 5 -- x\n"),
    *("a == 5", "a != 5", "a => 5", "a < > 5", "a = #5", 'a = "5"', "a = 'x", "a = 'it''s'", "a = ''''"),
    *("größe = 5", "a.b = 5", "_x = 5", "$x IS NULL", "nOt a iS nOt nUlL", "AND", "a AND", "AND a"),
    *("a AND b", "a OR 5", "a = 5 AND b", "a = 'x' OR b = 5", "b = 5 OR a = 'x'", "a = 5 AND b = 5 OR c = 5"),
    *("a = 'five' AND b = 5", "(((((a = 5)))))", "a = 5)", "((a = 5)", "like = 5", "escape = 5 AND like = 7"),
)
UNLIKE = {
    # What follows a whole expression is ignored there, and refused here.
    "a = 5)": "refused",
    "a = b c": "refused",
    "a = 0L": "refused",
    "a = 007": "refused",
    "a = 5 5": "refused",
    "a LIKE '5'": "true",
    "a > 4 + 4": "false",
    "a > 2 * 3": "false",
    # There, 0.0 is below the least double.
    "a > 0.0": "true",
}
"""Where Tanist differs from RocketMQ on purpose, and what it says of a message whose a is 5."""


class Question(msgspec.Struct, frozen=True):
    expression: str
    properties: dict[str, str]


def answer(question: Question) -> str:
    try:
        found = compile_condition(question.expression).evaluate(question.properties)
    except BadExpression:
        return "refused"
    except Unjudgeable:
        return "fails"
    return "unknown" if found is None else str(found).lower()


def answers_of_rocketmq(home: Path, questions: Sequence[Question]) -> list[str]:
    try:
        installation = install()
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    file = home / "questions"
    file.write_bytes(b"".join(msgspec.json.encode(question) + b"\n" for question in questions))
    return [line["answer"] for line in ask(installation, "judge", home=home, questions=str(file))]


def differences(home: Path, questions: Sequence[Question]) -> list[tuple[Question, str, str]]:
    """The questions with other answers here than there, with both."""
    theirs = answers_of_rocketmq(home, questions)
    pairs = zip(questions, map(answer, questions), theirs, strict=True)
    return [(question, ours, their) for question, ours, their in pairs if ours != their]


def random_properties(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(VALUES) for name in NAMES if rng.random() < 0.7}


def nodes(root: Node) -> Iterator[Node]:
    yield root
    for child in children(root):
        yield from nodes(child)


def test_random_expressions_mean_the_same_to_rocketmq(tmp_path: Path) -> None:
    rng = random.Random(92)
    questions = [
        Question(
            to_text(random_claim(rng, rng.randint(1, 3), is_extended=False), rng), random_properties(rng)
        )
        for _ in range(6000)
    ]
    assert not differences(tmp_path, questions)
    # All kinds of answers were compared, and many of each.
    counts = {
        kind: sum(answer(question) == kind for question in questions)
        for kind in ("true", "false", "unknown", "fails", "refused")
    }
    assert min(counts.values()) > 50, counts


def test_every_comparison_of_every_value_means_the_same_to_rocketmq(tmp_path: Path) -> None:
    literals = ("0", "5", "-5", "2147483648", "5.5", "-5.0", "1e300", "'5'", "'abc'", "TRUE", "FALSE", "b")
    questions = [
        Question(expression, {"a": value, "b": "5.5"})
        for value in VALUES
        for literal in literals
        for sign in ("=", "<>", "<", ">=")
        for expression in (f"a {sign} {literal}", f"{literal} {sign} a")
    ]
    assert not differences(tmp_path, questions)


def test_edges_of_the_language_are_where_rocketmq_has_them(tmp_path: Path) -> None:
    known: Sequence[dict[str, str]] = (
        {},
        {"a": "5"},
        {"a": "5", "b": "5", "like": "7"},
        {"a": "abc", "b": "true"},
        {"b": "7", "c": "9"},
    )
    questions = [Question(text, properties) for text in EDGES if text not in UNLIKE for properties in known]
    assert not differences(tmp_path, questions)


def test_random_words_that_are_understood_mean_the_same_to_rocketmq(tmp_path: Path) -> None:
    """What is refused here may be understood there: the end of an expression is not looked at."""
    rng = random.Random(1)
    words = (
        *("a", "a", "b", "5", "5.5", "'5'", "'x'", "NULL", "TRUE", "NOT", "AND", "OR", "IS", "IN", "BETWEEN"),
        *("CONTAINS", "=", "<>", "<", ">=", "(", ")", ",", "-", "+", "IN ('5', 'x')", "IS NULL", "AND 7"),
    )
    texts = {" ".join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(60_000)}
    questions = [
        Question(text, properties)
        for text in sorted(texts)
        for properties in ({"a": "5"}, {"a": "x", "b": "5"})
        if is_understood_by_both(text)
    ]
    assert len(questions) > 200
    assert not differences(tmp_path, questions)


def is_understood_by_both(text: str) -> bool:
    try:
        root = parse(text)
    except BadExpression:
        return False
    return not any(isinstance(node, Computation | Like) or node == Fraction(0.0) for node in nodes(root))


def test_what_differs_from_rocketmq_differs_on_purpose(tmp_path: Path) -> None:
    questions = [Question(text, {"a": "5", "b": "5"}) for text in UNLIKE]
    found = {question.expression: ours for question, ours, _ in differences(tmp_path, questions)}
    assert found == UNLIKE
