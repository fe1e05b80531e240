"""What a LIKE pattern matches."""

import itertools
import re
import timeit

import pytest

from tanist.broker.sql.like import BadPattern, compile_like


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", [""], ["a"]),
        ("abc", ["abc"], ["", "ab", "abcd", "ABC"]),
        ("%", ["", "a", "a\nb"], []),
        ("_", ["a", "\n", "🚀"], ["", "ab"]),
        ("a%", ["a", "ab"], ["", "ba"]),
        ("%a", ["a", "ba", "aa"], ["", "ab"]),
        ("a%a", ["aa", "aba"], ["a", "ab"]),
        ("ab%b", ["abb", "abab"], ["ab", "b"]),
        ("%a%b%", ["ab", "xaxbx"], ["ba", "a"]),
        ("%ab%ab%", ["abab", "xabxabx"], ["ab", "aba"]),
        ("a%b%c", ["abc", "aXbXc", "abcbc"], ["ac", "acb"]),
        ("%a_c%", ["abc", "xxabcxx", "aacc"], ["ac", "abbc"]),
        ("_%_", ["ab", "abc"], ["", "a"]),
        ("%%", ["", "a"], []),
        (".*[a]", [".*[a]"], ["a", "xxa"]),
    ],
)
def test_a_pattern_matches_whole_texts(pattern: str, matching: list[str], others: list[str]) -> None:
    is_like = compile_like(pattern, None)
    assert [text for text in [*matching, *others] if is_like(text)] == matching


@pytest.mark.parametrize(
    ("pattern", "escape", "matching", "others"),
    [
        ("50!%", "!", ["50%"], ["500", "50!%"]),
        ("a!_c", "!", ["a_c"], ["abc"]),
        ("!!%", "!", ["!", "!x"], ["x"]),
        ("a__b", "_", ["a_b"], ["axb", "axxb"]),
        (r"50\%", "\\", ["50%"], ["50x"]),
    ],
)
def test_an_escape_character_takes_the_meaning_away(
    pattern: str, escape: str, matching: list[str], others: list[str]
) -> None:
    is_like = compile_like(pattern, escape)
    assert [text for text in [*matching, *others] if is_like(text)] == matching


@pytest.mark.parametrize("pattern", ["!", "a!", "!a", "!!!"])
def test_an_escape_character_stands_before_what_needs_it(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compile_like(pattern, "!")


def test_every_short_pattern_matches_what_a_regular_expression_does() -> None:
    texts = ["".join(letters) for size in range(5) for letters in itertools.product("ab", repeat=size)]
    for size in range(5):
        for letters in itertools.product("ab%_", repeat=size):
            pattern = "".join(letters)
            plain = re.compile(pattern.replace("%", ".*").replace("_", "."))
            is_like = compile_like(pattern, None)
            for text in texts:
                assert is_like(text) == (plain.fullmatch(text) is not None), (pattern, text)


def test_many_wildcards_on_a_long_text_take_no_more_than_a_walk_each() -> None:
    """One regular expression for the whole pattern would not come back from here."""
    assert not compile_like("%a" * 200 + "%b", None)("a" * 30_000)


@pytest.mark.parametrize(
    "pattern", ["%" + "_" * 480 + "x%", "%" + "y" * 480 + "x%", "%" + "y_" * 7 + "x%", "%y" * 200 + "x%"]
)
def test_no_pattern_takes_long_for_the_longest_property(pattern: str) -> None:
    is_like, text = compile_like(pattern, None), "y" * 32_767
    best_s = min(timeit.repeat(lambda: is_like(text), number=1, repeat=20))
    assert not is_like(text)
    assert best_s < 0.005


def test_a_long_piece_with_a_gap_inside_is_refused_and_one_with_gaps_at_its_edges_is_not() -> None:
    compile_like("%" + "_" * 100 + "a" * 100 + "_" * 100 + "%", None)
    compile_like("a_" * 100 + "%" + "_a" * 100, None)
    with pytest.raises(BadPattern, match="at most 16 characters"):
        compile_like("%a" + "_" * 20 + "a%", None)
