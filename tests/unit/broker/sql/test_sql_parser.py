"""Which tree an expression is, and where it goes wrong."""

import pytest

from tanist.broker.sql.nodes import (
    And,
    Arithmetic,
    Between,
    Comparator,
    Comparison,
    Computation,
    Find,
    Fraction,
    In,
    IsNull,
    Like,
    Negative,
    Node,
    Not,
    Or,
    Property,
    Search,
    Text,
    Truth,
    Whole,
)
from tanist.broker.sql.parser import MAX_COST, MAX_DEPTH, parse
from tanist.broker.sql.tokens import BadExpression

A, B, C = Property("a"), Property("b"), Property("c")
EQ, GT, LT = Comparator.EQUAL, Comparator.GREATER, Comparator.LESS
PLUS, MINUS, TIMES, DIVIDED_BY = Arithmetic


def test_a_property_alone_is_a_condition_and_its_name_keeps_its_case() -> None:
    assert parse("someName") == Property("someName")
    assert parse("(( a ))") == A


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", Text("it's")),
        ("''", Text("")),
        ("5", Whole(5)),
        ("5L", Whole(5)),
        ("9223372036854775807", Whole(2**63 - 1)),
        ("5.", Fraction(5.0)),
        (".5e1", Fraction(5.0)),
        ("0.0", Fraction(0.0)),
        ("TRUE", Truth(True)),
        ("false", Truth(False)),
        ("-5", Negative(Whole(5))),
        ("- -a", Negative(Negative(A))),
        ("+5", Whole(5)),
        ("+'x'", Text("x")),
    ],
)
def test_a_value_is_read_as_it_stands(text: str, value: Node) -> None:
    found = parse(f"a = {text}")
    assert found == Comparison(EQ, A, value)
    assert isinstance(found, Comparison)
    assert type(getattr(found.right, "value", None)) is type(getattr(value, "value", None))


@pytest.mark.parametrize("sign", list(Comparator))
def test_every_sign_compares(sign: Comparator) -> None:
    assert parse(f"a{sign.value}5") == Comparison(sign, A, Whole(5))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a IS NULL", IsNull(A, False)),
        ("a is not null", IsNull(A, True)),
        ("5 IS NULL", IsNull(Whole(5), False)),
        ("a BETWEEN 1 AND b", Between(A, Whole(1), B, False)),
        ("a NOT BETWEEN 3 AND 1", Between(A, Whole(3), Whole(1), True)),
        ("a BETWEEN -1 AND -3", Between(A, Negative(Whole(1)), Negative(Whole(3)), False)),
        ("a IN ('x')", In(A, ("x",), False)),
        ("(a) NOT IN ( 'x' , 'y','' )", In(A, ("x", "y", ""), True)),
        ("a CONTAINS 'x'", Find(Search.CONTAINS, A, "x", False)),
        ("5 STARTSWITH 'x'", Find(Search.STARTSWITH, Whole(5), "x", False)),
        ("a NOT ENDSWITH ''", Find(Search.ENDSWITH, A, "", True)),
        ("a LIKE 'x%'", Like(A, "x%", None, False)),
        ("a NOT LIKE 'x!%' ESCAPE '!'", Like(A, "x!%", "!", True)),
    ],
)
def test_every_question_is_understood(text: str, tree: Node) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a OR b AND c", Or((A, And((B, C))))),
        ("a AND b OR c", Or((And((A, B)), C))),
        ("a AND b AND c", And((A, B, C))),
        ("(a AND b) AND c", And((And((A, B)), C))),
        ("a AND (b OR c)", And((A, Or((B, C))))),
        ("NOT a AND b", And((Not(A), B))),
        ("NOT a = b", Comparison(EQ, Not(A), B)),
        ("NOT a IS NULL", IsNull(Not(A), False)),
        ("a = b = c", Comparison(EQ, Comparison(EQ, A, B), C)),
        ("a > 1 = b < 2", Comparison(EQ, Comparison(GT, A, Whole(1)), Comparison(LT, B, Whole(2)))),
        ("a = b IS NULL", IsNull(Comparison(EQ, A, B), False)),
        ("a BETWEEN 1 AND 2 AND b", And((Between(A, Whole(1), Whole(2), False), B))),
        ("a > b + 1", Comparison(GT, A, Computation(PLUS, B, Whole(1)))),
        ("a + b * c > 1", Comparison(GT, Computation(PLUS, A, Computation(TIMES, B, C)), Whole(1))),
        ("(a + b) * c > 1", Comparison(GT, Computation(TIMES, Computation(PLUS, A, B), C), Whole(1))),
        ("a - b - c > 1", Comparison(GT, Computation(MINUS, Computation(MINUS, A, B), C), Whole(1))),
        (
            "a / b / c > 1",
            Comparison(GT, Computation(DIVIDED_BY, Computation(DIVIDED_BY, A, B), C), Whole(1)),
        ),
        ("a - -b > 1", Comparison(GT, Computation(MINUS, A, Negative(B)), Whole(1))),
        ("-a * b > 1", Comparison(GT, Computation(TIMES, Negative(A), B), Whole(1))),
        (
            "a BETWEEN b - 1 AND b + 1",
            Between(A, Computation(MINUS, B, Whole(1)), Computation(PLUS, B, Whole(1)), False),
        ),
    ],
)
def test_what_binds_more_tightly_is_taken_first(text: str, tree: Node) -> None:
    assert parse(text) == tree


def test_words_that_rocketmq_does_not_know_can_still_be_names() -> None:
    assert parse("like = 1") == Comparison(EQ, Property("like"), Whole(1))
    assert parse("LIKE LIKE 'ESCAPE' AND escape") == And(
        (Like(Property("LIKE"), "ESCAPE", None, False), Property("escape"))
    )


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "a property or a value"),
        ("a >", 3, "a property or a value"),
        ("a AND", 5, "a property or a value"),
        ("AND a", 0, "a property or a value"),
        ("()", 1, "a property or a value"),
        ("(a", 2, ")"),
        ("a)", 1, "an operator or the end of the expression"),
        ("a = 1 b", 6, "an operator or the end of the expression"),
        ("a = 007", 5, "an operator or the end of the expression"),
        ("a NOT b", 6, "BETWEEN, IN, LIKE, CONTAINS, STARTSWITH or ENDSWITH"),
        ("a NOT", 5, "BETWEEN, IN, LIKE, CONTAINS, STARTSWITH or ENDSWITH"),
        ("a IS 5", 5, "NULL"),
        ("a IN 'x'", 5, "("),
        ("a IN ()", 6, "a string in single quotes"),
        ("a IN (5)", 6, "a string in single quotes"),
        ("a IN ('x'", 9, ")"),
        ("5 IN ('x')", 0, "a property before IN"),
        ("-a LIKE 'x'", 0, "a property before LIKE"),
        ("a CONTAINS b", 11, "a string in single quotes"),
        ("a LIKE b", 7, "a string in single quotes"),
        ("a LIKE 'x' ESCAPE '!!'", 18, "one character"),
        ("a LIKE 'x!y' ESCAPE '!'", 7, "%, _ or another '!' behind every '!'"),
        ("a BETWEEN 1 OR 2", 12, "AND"),
        ("a BETWEEN 2 AND 1", 16, "2 or more"),
        ("a BETWEEN 1.5 AND 1", 18, "1.5 or more"),
        ("a = NULL", 4, "a value; ask for IS NULL instead"),
        ("NULL <> a", 0, "a value; ask for IS NULL instead"),
        ("TRUE = 5", 7, "TRUE, FALSE or a property"),
        ("5", 0, "something true or false"),
        ("a AND 'x'", 6, "something true or false"),
        ("NOT -a", 4, "something true or false"),
        ("a + 1", 0, "something true or false"),
        ("9223372036854775808 = a", 0, "a whole number of at most 9223372036854775807"),
        ("a = 1e309", 4, "a number that fits a double"),
        ("a = 0.1e-400", 4, "a number that fits a double"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_expected(
    text: str, position: int, expected: str
) -> None:
    with pytest.raises(BadExpression) as refused:
        parse(text)
    assert (refused.value.position, refused.value.expected) == (position, expected)


@pytest.mark.parametrize("text", ["a > 'x'", "a > TRUE", "NULL > a", "a > (b = 1)", "a BETWEEN 1 AND 'x'"])
def test_only_numbers_and_properties_are_compared_by_size(text: str) -> None:
    with pytest.raises(BadExpression, match="to be compared by size"):
        parse(text)


@pytest.mark.parametrize("text", ["a + 'x' > 1", "TRUE * 2 > 1", "a - (b = 1) > 1", "NULL + 1 > a"])
def test_only_numbers_and_properties_are_computed_with(text: str) -> None:
    with pytest.raises(BadExpression, match="to be computed with"):
        parse(text)


def test_who_forgets_the_parentheses_of_a_not_is_reminded() -> None:
    with pytest.raises(BadExpression, match="put it in parentheses"):
        parse("NOT a > 5")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4000 + "a" + ")" * 4000,
        "(" * 8000,
        "NOT " * 2000 + "a",
        "-" * 8000 + "a = 1",
        "a = " * 2000 + "a",
        "1 + " * 2000 + "1 = a",
        "1 * (" * 1600,
        "a > 1 = (" * 900,
        "a IS NULL" + " IS NULL" * 1000,
        "a OR a AND a = a > a + a * (" * 200,
        "a BETWEEN (" * 600,
    ],
)
def test_what_is_nested_too_deeply_is_refused_and_nothing_overflows(text: str) -> None:
    with pytest.raises(BadExpression):
        parse(text)


def test_as_many_levels_are_taken_as_are_promised() -> None:
    deep = "(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1)
    assert parse(deep) == A
    parse("NOT " * (MAX_DEPTH - 1) + "a")
    with pytest.raises(BadExpression, match="at most 64 levels"):
        parse(f"({deep})")
    with pytest.raises(BadExpression, match="at most 64 levels"):
        parse("NOT " * MAX_DEPTH + "a")


def test_a_chain_is_not_deep_but_it_may_not_be_endless() -> None:
    count = MAX_COST // 3
    assert parse(" OR ".join(["a = 1"] * count)) == Or((Comparison(EQ, A, Whole(1)),) * count)
    with pytest.raises(BadExpression, match="at most 500 operators and values"):
        parse(" OR ".join(["a = 1"] * (count + 1)))
    with pytest.raises(BadExpression, match="at most 500 operators and values"):
        parse("a LIKE '" + "_" * MAX_COST + "'")
