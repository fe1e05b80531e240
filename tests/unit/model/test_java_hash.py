"""Java's string hash."""

import pytest

from tanist.model.java_hash import java_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("TagA", 2598919),
        ("中文", 646394),
        ("zzzzzzzzzz", -1580979136),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_the_hash_is_the_one_java_computes(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_a_character_outside_the_first_plane_counts_as_two_code_units() -> None:
    assert java_hash("😀") == 31 * 0xD83D + 0xDE00


def test_a_lone_surrogate_is_a_code_unit_like_any_other() -> None:
    assert java_hash("\ud83d") == 0xD83D


def test_a_long_text_still_gives_32_bits() -> None:
    assert -(2**31) <= java_hash("x" * 32_767) < 2**31
