"""What an expression says of a message: true, false, unknown, or that it fails."""

from tanist.broker.sql import compile_condition
from tanist.broker.sql.compiler import Condition
from tanist.broker.sql.values import Unjudgeable

U = None
FAILS = "fails"
MESSAGE = {
    "n": "5",
    "minus": "-7",
    "big": "3000000000",
    "d": "2.5",
    "s": "abc",
    "yes": "True",
    "zero": "0",
    "blank": " 5 ",
    "nan": "NaN",
}


def judged(text: str) -> bool | str | None:
    try:
        return compile_condition(text).evaluate(MESSAGE)
    except Unjudgeable:
        return FAILS


def check(table: str) -> None:
    """Each line is an expression and what it says, behind an arrow."""
    names = {"true": True, "false": False, "unknown": U, "fails": FAILS}
    lines = [line.rpartition("->") for line in table.strip().splitlines()]
    found = {expression.strip(): judged(expression) for expression, _, _ in lines}
    assert found == {expression.strip(): names[answer.strip()] for expression, _, answer in lines}


def test_numbers_are_compared_as_numbers() -> None:
    check("""
        n = 5           -> true
        n = 5.0         -> true
        n <> 5          -> false
        n > 4           -> true
        n > 5           -> false
        n >= 5          -> true
        n < 10          -> true
        n <= 4          -> false
        minus < -6      -> true
        minus = -7      -> true
        big > 2999999999 -> true
        d > 2.0         -> true
        5 = n           -> true
        4 < n           -> true
        d < n           -> true
        blank = 5.0     -> true
        5 = 5.0         -> true
        nan > 1e300     -> true
    """)


def test_a_text_that_is_not_the_number_wanted_fails_the_whole_expression() -> None:
    check("""
        s > 5           -> fails
        s = 5           -> fails
        s <> 5          -> fails
        5 = s           -> fails
        d > 2           -> fails
        blank = 5       -> fails
        big > 5         -> fails
        s > d           -> fails
        NOT (s = 5)     -> fails
        s = 5 OR n = 5  -> fails
        n = 5 OR s = 5  -> true
        n = 6 AND s = 5 -> false
        s = 5 IS NULL   -> fails
        - (s = 5) IS NULL -> fails
    """)


def test_texts_are_equal_or_not() -> None:
    check("""
        s = 'abc'       -> true
        s = 'ABC'       -> false
        s <> 'x'        -> true
        'abc' = s       -> true
        s = n           -> false
        n = '5'         -> true
        n = '5.0'       -> false
    """)


def test_truth_values_are_compared_with_texts_on_their_left() -> None:
    check("""
        yes = TRUE      -> true
        yes = FALSE     -> false
        s = FALSE       -> true
        TRUE = yes      -> fails
        n = (d > 2.0)   -> false
        (d > 2.0) = n   -> fails
        (n = 5) = TRUE  -> true
        (n = 5) = (n = 6) -> false
        5 = TRUE        -> false
        (n = 5) <> 5    -> true
        TRUE            -> true
        FALSE           -> false
        NULL            -> unknown
    """)


def test_what_is_not_there_is_unknown() -> None:
    check("""
        x = 5           -> unknown
        x <> 5          -> unknown
        x > 5           -> unknown
        5 > x           -> unknown
        x = 'abc'       -> unknown
        x = s           -> unknown
        x IN ('abc')    -> unknown
        x NOT IN ('abc') -> unknown
        x LIKE '%'      -> unknown
        x NOT LIKE '%'  -> unknown
        x BETWEEN 1 AND 2 -> unknown
        x NOT BETWEEN 1 AND 2 -> unknown
        n BETWEEN x AND 4 -> false
        n BETWEEN x AND 6 -> unknown
        x + 1 = 5       -> unknown
        x IS NULL       -> true
        x IS NOT NULL   -> false
        s IS NULL       -> false
        s IS NOT NULL   -> true
        (x = 5) IS NULL -> true
        (s = 'x') IS NULL -> false
    """)


def test_a_missing_property_on_the_right_follows_rocketmq_and_not_sql() -> None:
    check("""
        5 = x           -> false
        5 <> x          -> true
        s = x           -> false
        x = y           -> true
        x <> y          -> false
    """)


def test_the_unknown_goes_through_and_or_and_not_as_sql_has_it() -> None:
    sides = {"true": "n = 5", "false": "n = 6", "unknown": "x = 5"}
    conjunction = {
        ("true", "true"): True,
        ("true", "false"): False,
        ("true", "unknown"): U,
        ("false", "true"): False,
        ("false", "false"): False,
        ("false", "unknown"): False,
        ("unknown", "true"): U,
        ("unknown", "false"): False,
        ("unknown", "unknown"): U,
    }
    opposite = {"true": "false", "false": "true", "unknown": "unknown"}
    for (left, right), expected in conjunction.items():
        assert judged(f"{sides[left]} AND {sides[right]}") is expected
        # De Morgan: the table of OR is that of AND with all turned round.
        turned = f"{sides[opposite[left]]} OR {sides[opposite[right]]}"
        assert judged(f"NOT ({turned})") is expected
    assert judged("x = 5 OR x = 6 OR n = 5") is True
    assert judged("n = 5 AND x = 5 AND n = 6") is False


def test_a_property_where_a_truth_value_is_wanted_is_never_true() -> None:
    check("""
        yes             -> false
        x               -> unknown
        NOT yes         -> true
        NOT x           -> unknown
        yes OR n = 5    -> true
        yes = TRUE AND n = 5 -> true
        NOT n = 5       -> false
    """)


def test_ranges_have_both_their_ends() -> None:
    check("""
        n BETWEEN 5 AND 6       -> true
        n BETWEEN 4 AND 5       -> true
        n BETWEEN 6 AND 7       -> false
        n NOT BETWEEN 5 AND 6   -> false
        n NOT BETWEEN 6 AND 7   -> true
        n NOT BETWEEN 7 AND 6   -> true
        n BETWEEN 4.5 AND 5.5   -> true
        n BETWEEN minus AND d   -> false
        5 BETWEEN zero AND n    -> true
        s BETWEEN 1 AND 2       -> fails
    """)


def test_lists_hold_texts() -> None:
    check("""
        n IN ('4', '5')         -> true
        n IN ('5.0')            -> false
        n NOT IN ('4', '5')     -> false
        s NOT IN ('4', '5')     -> true
        s IN ('a', 'b', 'c', 'd', 'e', 'abc') -> true
    """)


def test_texts_are_searched_and_what_is_no_text_is_never_found() -> None:
    check("""
        s CONTAINS 'b'          -> true
        s CONTAINS 'x'          -> false
        s NOT CONTAINS 'x'      -> true
        s STARTSWITH 'ab'       -> true
        s NOT STARTSWITH 'ab'   -> false
        s ENDSWITH 'bc'         -> true
        s NOT ENDSWITH 'b'      -> true
        s CONTAINS ''           -> false
        s NOT CONTAINS ''       -> false
        x CONTAINS 'b'          -> false
        x NOT CONTAINS 'b'      -> false
        5 CONTAINS '5'          -> false
        (n = 5) NOT CONTAINS 't' -> false
        'abc' CONTAINS 'b'      -> true
    """)


def test_patterns_match_whole_texts() -> None:
    check("""
        s LIKE 'abc'            -> true
        s LIKE 'ab'             -> false
        s LIKE 'a%'             -> true
        s LIKE '%c'             -> true
        s LIKE 'a_c'            -> true
        s NOT LIKE 'a_c'        -> false
        s NOT LIKE 'x%'         -> true
        n LIKE '_'              -> true
    """)


def test_arithmetic_is_javas() -> None:
    check("""
        n + 1 = 6               -> true
        n - 6 = -1              -> true
        n * minus = -35         -> true
        n / 2 = 2               -> true
        minus / 2 = -3          -> true
        n / -2 = -2             -> true
        n / 2.0 = 2.5           -> true
        d * 2 = n               -> true
        d + d = 5               -> true
        n + 1 = '6'             -> true
        n + 1 > d               -> fails
        n + 1.0 > d             -> true
        s <> n + 1              -> fails
        big * 2 > big           -> true
        -(n + 1) = -6           -> true
        n - -1 = 6              -> true
        s + 1 > 0               -> fails
        n / 0 = 1               -> fails
        n / zero = 1            -> fails
        n / 0.0 > 1e300         -> true
        minus / 0.0 < -1e300    -> true
        zero / 0.0 > 1e300      -> true
        9223372036854775807 + 1 > 0  -> fails
        -(0 - 9223372036854775807 - 1) > 0 -> fails
        9223372036854775807 + 1.0 > 0 -> true
        (x + 1) IS NULL         -> true
    """)


def test_the_minus_of_a_text_is_unknown_as_in_rocketmq() -> None:
    check("""
        -n = -5                 -> unknown
        -n IS NULL              -> true
        -'5' = 5                -> unknown
        0 - n = -5              -> true
        -(n = 6) IS NULL        -> true
    """)


def test_only_what_is_known_to_be_true_is_wanted() -> None:
    wanted = [text for text in ("n = 5", "n = 6", "x = 5", "s = 5") if compile_condition(text).holds(MESSAGE)]
    assert wanted == ["n = 5"]


def test_an_expression_is_compiled_once() -> None:
    first = compile_condition("n = 5 AND compiled IS NULL")
    assert isinstance(first, Condition)
    assert compile_condition("n = 5 AND compiled IS NULL") is first
    assert compile_condition.cache_info().maxsize == 256
